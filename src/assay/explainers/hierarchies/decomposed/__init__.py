"""Contextual decomposition: splits all activations into β, from chosen words, and γ, from the rest.

The model's own code runs, on texts stacked with their parts; each step is divided as it is taken.
"""
