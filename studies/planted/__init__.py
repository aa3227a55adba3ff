"""Models that have learnt every planted corpus: which explainers find the words that decide?"""
