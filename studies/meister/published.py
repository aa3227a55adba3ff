"""The figures of Meister et al. (2021) that our copy of the paper holds."""

from __future__ import annotations

# Table 1: mean and standard deviation of the normalised entropy of inputs' influence on a state.
STATE_ENTROPY = {
    ("imdb", "lstm", "softmax"): (0.71, 0.09),
    ("newsgroups", "lstm", "softmax"): (0.75, 0.12),
    ("sst", "lstm", "softmax"): (0.93, 0.05),
    ("imdb", "lstm", "sparsemax"): (0.72, 0.10),
    ("newsgroups", "lstm", "sparsemax"): (0.68, 0.12),
    ("sst", "lstm", "sparsemax"): (0.91, 0.07),
    ("imdb", "transformer", "softmax"): (0.76, 0.08),
    ("newsgroups", "transformer", "softmax"): (0.48, 0.06),
    ("sst", "transformer", "softmax"): (0.73, 0.09),
    ("imdb", "transformer", "sparsemax"): (0.72, 0.09),
    ("newsgroups", "transformer", "sparsemax"): (0.46, 0.06),
    ("sst", "transformer", "sparsemax"): (0.63, 0.08),
}

# Table 2: correlation of λ with the entropy of inputs' influence on the output.
TREND = {
    ("imdb", "lstm"): -0.935,
    ("newsgroups", "lstm"): -0.675,
    ("sst", "lstm"): -0.866,
    ("imdb", "transformer"): -0.830,
    ("newsgroups", "transformer"): -0.409,
    ("sst", "transformer"): -0.810,
}
