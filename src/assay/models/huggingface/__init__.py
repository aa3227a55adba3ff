"""Transformers of the Hugging Face library: classifiers as they are, and encoders to build on.

A text is read in pieces of words. What is explained are the words: the embedding of a word is that of all its pieces
side by side, so a gradient of a word is that of its pieces, a deleted word is gone with all of them, and nothing is
ever tokenised twice.
"""
