"""The figures of Jain and Wallace (2019), table 2: mean τ (standard deviation) by predicted class, or over all.

The classes are in our order: of SNLI contradiction, entailment, neutral.
"""

from __future__ import annotations

Figures = tuple[tuple[float, float], ...]

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
    ("sst", "lstm", "gradient"): ((0.40, 0.21), (0.38, 0.19)),
    ("sst", "average", "gradient"): ((0.69, 0.15), (0.69, 0.14)),
    ("sst", "lstm", "leave_one_out"): ((0.34, 0.20), (0.33, 0.19)),
    ("imdb", "lstm", "gradient"): ((0.37, 0.07), (0.37, 0.08)),
    ("imdb", "average", "gradient"): ((0.65, 0.05), (0.66, 0.05)),
    ("imdb", "lstm", "leave_one_out"): ((0.30, 0.07), (0.31, 0.07)),
    ("newsgroups", "lstm", "gradient"): ((0.08, 0.15), (0.13, 0.16)),
    ("newsgroups", "average", "gradient"): ((0.65, 0.09), (0.66, 0.09)),
    ("newsgroups", "lstm", "leave_one_out"): ((0.05, 0.15), (0.14, 0.14)),
    ("agnews", "lstm", "gradient"): ((0.42, 0.11), (0.35, 0.13)),
    ("agnews", "average", "gradient"): ((0.77, 0.08), (0.75, 0.07)),
    ("agnews", "lstm", "leave_one_out"): ((0.35, 0.13), (0.32, 0.13)),
    ("snli", "lstm", "gradient"): ((0.42, 0.19), (0.40, 0.20), (0.36, 0.22)),
    ("snli", "average", "gradient"): ((0.59, 0.18), (0.53, 0.19), (0.54, 0.20)),
    ("snli", "lstm", "leave_one_out"): ((0.43, 0.17), (0.44, 0.17), (0.44, 0.18)),
    ("babi1", "lstm", "gradient"): ((0.23, 0.19),),
    ("babi1", "average", "gradient"): ((0.66, 0.17),),
    ("babi1", "lstm", "leave_one_out"): ((0.23, 0.18),),
    ("babi2", "lstm", "gradient"): ((0.17, 0.12),),
    ("babi2", "average", "gradient"): ((0.84, 0.09),),
    ("babi2", "lstm", "leave_one_out"): ((0.11, 0.13),),
    ("babi3", "lstm", "gradient"): ((0.30, 0.11),),
    ("babi3", "average", "gradient"): ((0.76, 0.12),),
    ("babi3", "lstm", "leave_one_out"): ((0.31, 0.11),),
}
