"""Is sparse attention more interpretable?"""
