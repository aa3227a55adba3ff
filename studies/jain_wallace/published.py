"""The figures of Jain and Wallace (2019): those of the paper, and those that its authors released beside it.

A figure is a mean of τ, its standard deviation over texts, and the share of texts in which it is significant (p ≤ .05).
"""

from __future__ import annotations

Figure = tuple[float, float, float]
Figures = tuple[Figure, ...]

CORPORA = {
    "sst": "SST",
    "imdb": "IMDB",
    "newsgroups": "20News",
    "newsgroups-bodies": "20News, bodies",
    "agnews": "AG News",
    "snli": "SNLI",
    "babi1": "bAbI 1",
    "babi2": "bAbI 2",
    "babi3": "bAbI 3",
}
ENCODERS = {"lstm": "BiLSTM", "average": "Average"}  # of table 2
PAIRS = ("attention~gradient", "attention~leave_one_out", "gradient~leave_one_out")

ACCURACY = {
    "sst": 0.81,
    "imdb": 0.88,
    "newsgroups": 0.94,
    "agnews": 0.96,
    "snli": 0.78,
    "babi1": 1.0,
    "babi2": 0.48,
    "babi3": 0.62,
}
"""Table 1, for the BiLSTM; F1 where there are two classes."""

PUBLISHED: dict[tuple[str, str, str], Figures] = {
    ("sst", "lstm", "gradient"): ((0.40, 0.21, 0.59), (0.38, 0.19, 0.58)),
    ("sst", "average", "gradient"): ((0.69, 0.15, 0.93), (0.69, 0.14, 0.94)),
    ("sst", "lstm", "leave_one_out"): ((0.34, 0.20, 0.47), (0.33, 0.19, 0.47)),
    ("imdb", "lstm", "gradient"): ((0.37, 0.07, 1.00), (0.37, 0.08, 0.99)),
    ("imdb", "average", "gradient"): ((0.65, 0.05, 1.00), (0.66, 0.05, 1.00)),
    ("imdb", "lstm", "leave_one_out"): ((0.30, 0.07, 0.99), (0.31, 0.07, 0.98)),
    ("newsgroups", "lstm", "gradient"): ((0.08, 0.15, 0.31), (0.13, 0.16, 0.48)),
    ("newsgroups", "average", "gradient"): ((0.65, 0.09, 0.99), (0.66, 0.09, 1.00)),
    ("newsgroups", "lstm", "leave_one_out"): ((0.05, 0.15, 0.28), (0.14, 0.14, 0.51)),
    ("agnews", "lstm", "gradient"): ((0.42, 0.11, 0.93), (0.35, 0.13, 0.81)),
    ("agnews", "average", "gradient"): ((0.77, 0.08, 1.00), (0.75, 0.07, 1.00)),
    ("agnews", "lstm", "leave_one_out"): ((0.35, 0.13, 0.80), (0.32, 0.13, 0.73)),
    ("snli", "lstm", "gradient"): ((0.42, 0.19, 0.57), (0.40, 0.20, 0.52), (0.36, 0.22, 0.46)),
    ("snli", "average", "gradient"): ((0.59, 0.18, 0.84), (0.53, 0.19, 0.75), (0.54, 0.20, 0.76)),
    ("snli", "lstm", "leave_one_out"): ((0.43, 0.17, 0.59), (0.44, 0.17, 0.61), (0.44, 0.18, 0.60)),
    ("babi1", "lstm", "gradient"): ((0.23, 0.19, 0.46),),
    ("babi1", "average", "gradient"): ((0.66, 0.17, 0.97),),
    ("babi1", "lstm", "leave_one_out"): ((0.23, 0.18, 0.45),),
    ("babi2", "lstm", "gradient"): ((0.17, 0.12, 0.57),),
    ("babi2", "average", "gradient"): ((0.84, 0.09, 1.00),),
    ("babi2", "lstm", "leave_one_out"): ((0.11, 0.13, 0.40),),
    ("babi3", "lstm", "gradient"): ((0.30, 0.11, 0.93),),
    ("babi3", "average", "gradient"): ((0.76, 0.12, 1.00),),
    ("babi3", "lstm", "leave_one_out"): ((0.31, 0.11, 0.94),),
}
"""Table 2, additive attention, by predicted class or over all; of SNLI contradiction, entailment, neutral."""

RELEASED: dict[tuple[str, str, str], tuple[Figure | None, Figure | None, Figure | None]] = {
    ("sst", "lstm", "additive"): ((0.351, 0.211, 0.49), (0.291, 0.191, 0.36), (0.656, 0.163, 0.91)),
    ("sst", "lstm", "dot"): ((0.073, 0.205, 0.09), (0.064, 0.200, 0.07), (0.708, 0.137, 0.94)),
    ("sst", "cnn", "additive"): ((0.477, 0.167, 0.75), (0.352, 0.174, 0.51), (0.488, 0.176, 0.74)),
    ("sst", "cnn", "dot"): ((0.240, 0.196, 0.25), (0.215, 0.193, 0.21), (0.636, 0.209, 0.82)),
    ("sst", "average", "additive"): ((0.606, 0.201, 0.85), (0.623, 0.155, 0.88), (0.558, 0.250, 0.73)),
    ("sst", "average", "dot"): ((0.347, 0.217, 0.50), (0.314, 0.175, 0.42), (0.661, 0.236, 0.82)),
    ("imdb", "lstm", "additive"): ((0.437, 0.061, 1.00), (0.341, 0.070, 0.99), (0.517, 0.100, 1.00)),
    ("imdb", "lstm", "dot"): ((0.122, 0.063, 0.62), (0.092, 0.071, 0.45), (0.602, 0.142, 1.00)),
    ("imdb", "cnn", "additive"): ((0.452, 0.054, 1.00), (0.295, 0.057, 0.98), (0.513, 0.069, 1.00)),
    ("imdb", "cnn", "dot"): ((0.346, 0.067, 0.99), (0.365, 0.066, 0.99), (0.595, 0.105, 1.00)),
    ("imdb", "average", "additive"): ((0.675, 0.050, 1.00), (0.576, 0.098, 1.00), (0.639, 0.187, 1.00)),
    ("imdb", "average", "dot"): (None, (0.201, 0.083, 0.87), None),
    ("newsgroups", "lstm", "additive"): ((0.131, 0.206, 0.48), (0.123, 0.189, 0.44), (0.534, 0.165, 0.99)),
    ("newsgroups", "lstm", "dot"): ((0.132, 0.156, 0.48), (0.067, 0.154, 0.38), (0.499, 0.155, 0.99)),
    ("newsgroups", "cnn", "additive"): ((0.447, 0.125, 0.94), (0.322, 0.130, 0.85), (0.549, 0.120, 0.97)),
    ("newsgroups", "cnn", "dot"): (None, (0.185, 0.116, 0.61), None),
    ("newsgroups", "average", "additive"): ((0.772, 0.077, 1.00), (0.721, 0.137, 0.99), (0.622, 0.197, 0.96)),
    ("newsgroups", "average", "dot"): ((0.036, 0.167, 0.31), (-0.175, 0.230, 0.71), (0.352, 0.297, 0.77)),
    ("agnews", "lstm", "additive"): ((0.389, 0.134, 0.86), (0.367, 0.149, 0.80), (0.612, 0.121, 0.99)),
    ("agnews", "lstm", "dot"): ((0.305, 0.150, 0.69), (0.175, 0.127, 0.31), (0.456, 0.137, 0.93)),
    ("agnews", "cnn", "additive"): ((0.491, 0.106, 0.98), (0.360, 0.125, 0.83), (0.462, 0.131, 0.94)),
    ("agnews", "cnn", "dot"): ((0.391, 0.118, 0.88), (0.367, 0.115, 0.86), (0.421, 0.174, 0.85)),
    ("agnews", "average", "additive"): ((0.770, 0.071, 1.00), (0.507, 0.130, 0.97), (0.494, 0.171, 0.94)),
    ("agnews", "average", "dot"): ((0.638, 0.107, 1.00), (0.461, 0.200, 0.84), (0.445, 0.190, 0.86)),
    ("snli", "lstm", "additive"): ((0.314, 0.216, 0.37), (0.289, 0.237, 0.35), (0.240, 0.220, 0.25)),
    ("snli", "lstm", "dot"): ((0.116, 0.235, 0.11), (0.156, 0.238, 0.13), (0.310, 0.208, 0.35)),
    ("snli", "cnn", "additive"): ((0.235, 0.236, 0.25), (0.264, 0.227, 0.29), (0.340, 0.221, 0.43)),
    ("snli", "cnn", "dot"): ((0.271, 0.222, 0.30), (0.288, 0.212, 0.32), (0.294, 0.228, 0.35)),
    ("snli", "average", "additive"): ((0.582, 0.185, 0.80), (0.593, 0.189, 0.81), (0.587, 0.218, 0.78)),
    ("snli", "average", "dot"): ((0.500, 0.182, 0.70), (0.527, 0.179, 0.75), (0.434, 0.223, 0.59)),
    ("babi1", "lstm", "additive"): ((0.251, 0.156, 0.55), (0.160, 0.141, 0.28), (0.499, 0.158, 0.84)),
    ("babi1", "lstm", "dot"): ((0.437, 0.155, 0.83), (0.421, 0.132, 0.80), (0.413, 0.158, 0.78)),
    ("babi1", "cnn", "additive"): ((0.245, 0.141, 0.51), (0.160, 0.127, 0.23), (0.304, 0.161, 0.65)),
    ("babi1", "cnn", "dot"): ((0.169, 0.125, 0.27), (0.110, 0.128, 0.13), (0.548, 0.144, 0.93)),
    ("babi1", "average", "additive"): ((0.717, 0.118, 0.99), (0.735, 0.099, 0.99), (0.691, 0.141, 0.99)),
    ("babi1", "average", "dot"): ((0.713, 0.136, 0.99), (0.817, 0.135, 0.98), (0.684, 0.147, 0.98)),
    ("babi2", "lstm", "additive"): ((-0.017, 0.137, 0.27), (-0.014, 0.134, 0.27), (0.437, 0.188, 0.91)),
    ("babi2", "lstm", "dot"): ((0.170, 0.147, 0.57), (0.220, 0.136, 0.68), (0.280, 0.114, 0.83)),
    ("babi2", "cnn", "additive"): ((0.180, 0.079, 0.66), (0.186, 0.074, 0.71), (0.374, 0.102, 0.98)),
    ("babi2", "cnn", "dot"): ((0.152, 0.077, 0.53), (0.244, 0.062, 0.88), (0.413, 0.093, 0.99)),
    ("babi2", "average", "additive"): ((0.678, 0.057, 1.00), (0.647, 0.065, 1.00), (0.474, 0.058, 0.99)),
    ("babi2", "average", "dot"): ((0.600, 0.179, 0.99), (0.886, 0.067, 1.00), (0.575, 0.161, 0.99)),
    ("babi3", "lstm", "additive"): ((0.239, 0.113, 0.87), (0.256, 0.103, 0.89), (0.499, 0.171, 0.97)),
    ("babi3", "lstm", "dot"): ((0.299, 0.148, 0.89), (0.343, 0.152, 0.92), (0.395, 0.120, 0.97)),
    ("babi3", "cnn", "additive"): ((0.180, 0.058, 0.91), (0.178, 0.050, 0.91), (0.465, 0.080, 1.00)),
    ("babi3", "cnn", "dot"): ((0.014, 0.054, 0.12), (0.082, 0.053, 0.44), (0.525, 0.126, 1.00)),
    ("babi3", "average", "additive"): ((0.607, 0.127, 1.00), (0.725, 0.092, 1.00), (0.546, 0.119, 1.00)),
    ("babi3", "average", "dot"): ((0.480, 0.137, 1.00), (0.748, 0.067, 1.00), (0.411, 0.146, 0.98)),
}
"""Of attention with gradients, of attention with leave-one-out, and of these two, over all texts.

From graph_outputs/CorrStats_kendalltau of https://github.com/successar/AttentionExplanation at 752b779, where the
alignment "additive" is called tanh and τ of attention with gradients "al"; None where the file has no number. These
are other trainings than those of table 2.
"""


def same(corpus: str) -> str:
    """The corpus of the paper that one of ours stands beside: of 20 Newsgroups there are two."""
    return corpus.removesuffix("-bodies")
