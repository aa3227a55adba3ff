"""HateXplain, ERASER movies and e-SNLI: do explanations agree with people, and with the model?"""
