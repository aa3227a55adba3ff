"""Hugging Face transformers: classifiers as they are, and encoders to build on.

A text is read in subwords. What is explained are the words: the embedding of a word is that of all its subwords
side by side, so a gradient of a word is that of its subwords, a deleted word is gone with all of them, and nothing is
ever tokenised twice.
"""
