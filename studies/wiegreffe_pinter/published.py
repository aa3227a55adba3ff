"""Figures of Wiegreffe and Pinter (2019), F1 of the second class, by corpus.

The paper is not at hand: they are quoted from memory, and nobody has compared them with the page. Check them before
you cite them.
"""

from __future__ import annotations

# Table 2: the base model as reproduced there, and with uniform attention.
UNIFORM = {
    "sst": (0.831, 0.822),
    "imdb": (0.902, 0.879),
    "newsgroups": (0.942, 0.934),
    "agnews": (0.964, 0.960),
}

# Table 3: the network without context under attention that it learns, uniform, the base LSTM's, and an adversary's.
GUIDES = {
    "sst": (0.817, 0.812, 0.824, 0.592),
    "imdb": (0.888, 0.863, 0.905, 0.700),
}
