"""The figures of Jain and Wallace (2019), table 2: mean τ (standard deviation), for predicted class 0 and 1."""

from __future__ import annotations

Pair = tuple[tuple[float, float], tuple[float, float]]

PUBLISHED: dict[tuple[str, str, str], Pair] = {
    ("sst", "lstm", "gradient"): ((0.40, 0.21), (0.38, 0.19)),
    ("sst", "average", "gradient"): ((0.69, 0.15), (0.69, 0.14)),
    ("sst", "lstm", "leave_one_out"): ((0.34, 0.20), (0.33, 0.19)),
    ("newsgroups", "lstm", "gradient"): ((0.08, 0.15), (0.13, 0.16)),
    ("newsgroups", "average", "gradient"): ((0.65, 0.09), (0.66, 0.09)),
    ("newsgroups", "lstm", "leave_one_out"): ((0.05, 0.15), (0.14, 0.14)),
    ("agnews", "lstm", "gradient"): ((0.42, 0.11), (0.35, 0.13)),
    ("agnews", "average", "gradient"): ((0.77, 0.08), (0.75, 0.07)),
    ("agnews", "lstm", "leave_one_out"): ((0.35, 0.13), (0.32, 0.13)),
}
