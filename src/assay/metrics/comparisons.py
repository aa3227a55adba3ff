"""Differences of means with confidence intervals, and corrections for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import stdtr, stdtrit

LEVEL = 0.95
SURE = 0.05
"""A difference holds when its p-value, adjusted for all that were tested together, is at most this."""

FEWEST = 10
"""Of fewer texts no difference is judged: their spread is not known well enough."""

ENOUGH = 3
"""From so many seeds on, models that differ only by their seed are judged together, by the spread over them."""

ROUNDING = 1e-6
"""Means that lie no further apart are the same number, computed on two machines."""


@dataclass(frozen=True)
class Contrast:
    """A difference of means, its 95 % interval, two-sided p-value and sample sizes."""

    gap: float
    low: float
    high: float
    p: float
    sizes: tuple[int, int]


def student(values: Float[np.ndarray, " n"]) -> tuple[float, float, float]:
    """The mean and its 95 % t interval; Student (1908).

    The ends are nan where there are fewer than two values: one says nothing of how others would lie.
    """
    size = len(values)
    mean = float(values.mean()) if size else math.nan
    if size < 2:
        return mean, math.nan, math.nan
    reach = _reach(size - 1) * float(values.std(ddof=1)) / math.sqrt(size)
    return mean, mean - reach, mean + reach


def paired(first: Float[np.ndarray, " n"], second: Float[np.ndarray, " n"]) -> Contrast | None:
    """The paired t-test (Student, 1908); texts with a missing value (nan) are left out.

    None where fewer than two are left.
    """
    gaps = first - second
    gaps = gaps[~np.isnan(gaps)]
    size = len(gaps)
    if size < 2:
        return None
    return _judged(float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(size), size - 1, (size, size))


def by_example(examples: Int[np.ndarray, " n"], gaps: Float[np.ndarray, " n"]) -> Contrast | None:
    """The one-sample t-test over differences, averaged per example first.

    Of an example that stands there several times, as where models of several seeds read it, the mean difference
    counts: the same text twice is not two texts.
    """
    known = ~np.isnan(gaps)
    _, indices, times = np.unique(examples[known], return_inverse=True, return_counts=True)
    means = np.bincount(indices, weights=gaps[known], minlength=len(times)) / times
    return paired(means, np.zeros_like(means))


def apart(first: Float[np.ndarray, " n"], second: Float[np.ndarray, " m"]) -> Contrast | None:
    """Welch's t-test (1947) of two independent samples; missing values (nan) are left out.

    None where a side has fewer than two.
    """
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    sizes = len(first), len(second)
    if min(sizes) < 2:
        return None
    shares = [float(side.var(ddof=1)) / len(side) for side in (first, second)]
    error = math.sqrt(sum(shares))
    if not error:
        return _judged(float(first.mean() - second.mean()), 0.0, sum(sizes) - 2, sizes)
    freedom = error**4 / sum(share**2 / (size - 1) for share, size in zip(shares, sizes, strict=True))
    return _judged(float(first.mean() - second.mean()), error, freedom, sizes)


def alone(single: float, many: Float[np.ndarray, " n"]) -> Contrast | None:
    """The t-test of one value against a sample with the same variance; Crawford and Howell (1998).

    None where there are fewer than two of the many.
    """
    size = len(many)
    if size < 2:
        return None
    error = float(many.std(ddof=1)) * math.sqrt(1 + 1 / size)
    return _judged(single - float(many.mean()), error, size - 1, (1, size))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, which control the family-wise error rate.

    Holm (1979): the smallest counts as often as there are values, the next once less, and none below one before it.
    """
    adjusted, reached = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=lambda index: values[index])):
        reached = max(reached, min(1.0, (len(values) - rank) * values[index]))
        adjusted[index] = reached
    return adjusted


def _judged(gap: float, error: float, freedom: float | int, sizes: tuple[int, int]) -> Contrast:
    reach = _reach(freedom) * error
    if abs(gap) <= ROUNDING:
        return Contrast(gap, min(gap - reach, 0.0), max(gap + reach, 0.0), 1.0, sizes)
    p = 2 * float(stdtr(freedom, -abs(gap) / error)) if error else 0.0
    return Contrast(gap, gap - reach, gap + reach, p, sizes)


def _reach(freedom: float | int) -> float:
    """The half-width of a 95 % interval in standard errors."""
    return float(stdtrit(freedom, (1 + LEVEL) / 2))
