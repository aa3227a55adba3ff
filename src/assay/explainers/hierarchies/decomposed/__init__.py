"""Contextual decomposition: what a model computes, divided into what comes from some words and what comes from others.

The model's own code runs, on texts stacked with their parts; each step is divided as it is taken.
"""
