"""Differences with confidence intervals: t-tests, paired bootstrap, corrections for multiple comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri, stdtr, stdtrit

from assay.metrics import Columns, PerColumn, Sample
from assay.metrics.intervals import LEVEL, NOTHING, Moments, moments

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


def student(values: Sample) -> tuple[float, float, float]:
    """The mean and its 95 % t interval; Student (1908).

    The ends are nan where there are fewer than two values: one says nothing of how others would lie.
    """
    size = len(values)
    mean = float(values.mean()) if size else math.nan
    if size < 2:
        return mean, math.nan, math.nan
    reach = _reach(size - 1) * float(values.std(ddof=1)) / math.sqrt(size)
    return mean, mean - reach, mean + reach


def paired(first: Sample, second: Sample) -> Contrast | None:
    """The paired t-test (Student, 1908); texts with a missing value (nan) are left out.

    None where fewer than two are left.
    """
    gaps = first - second
    gaps = gaps[~np.isnan(gaps)]
    size = len(gaps)
    if size < 2:
        return None
    return _judged(float(gaps.mean()), float(gaps.std(ddof=1)) / math.sqrt(size), size - 1, (size, size))


def by_example(examples: Int[np.ndarray, " n"], gaps: Sample) -> Contrast | None:
    """The one-sample t-test over differences, averaged per example first.

    Of an example that stands there several times, as where models of several seeds read it, the mean difference
    counts: the same text twice is not two texts.
    """
    known = ~np.isnan(gaps)
    _, indices, times = np.unique(examples[known], return_inverse=True, return_counts=True)
    means = np.bincount(indices, weights=gaps[known], minlength=len(times)) / times
    return paired(means, np.zeros_like(means))


def apart(first: Sample, second: Float[np.ndarray, " m"]) -> Contrast | None:
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


def alone(single: float, many: Sample) -> Contrast | None:
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


# Paired comparison of several columns over the same examples: which may equal the best

DRAWS = 10_000
Indices = Int[np.ndarray, " p"]  # of the columns of P pairs


def tied(values: Columns, best: int, seed: int = 0, level: float = LEVEL) -> Bool[np.ndarray, " k"]:
    """The columns not significantly worse than the column `best`, with a simultaneous test.

    A model confidence set, Hansen, Lunde and Nason (2011): a column leaves when it lies further behind the best, by
    Student's t of the paired differences, than the furthest of all pairs still in the set lies apart by chance, until
    none does. So where all columns are equally good, and the best is whichever came out highest, any is called worse
    in 1 - level of cases at most. Differences are those of the examples that have both numbers. A column that shares no
    example with the best is not tied with it; one that shares a single example is.
    """
    gaps = moments(values - values[:, best : best + 1])
    behind = np.where(gaps.n > 1, _behind(gaps), 0)
    ones, others = np.triu_indices(values.shape[1], 1)
    chance = _chance(values, ones, others, seed)
    inside = gaps.n > 0
    while (still := inside[ones] & inside[others]).any():
        leaving = inside & (behind > np.quantile(chance[:, still].max(1), level))
        if not leaving.any():
            break
        inside &= ~leaving
    return np.asarray(inside)


def _behind(gaps: Moments) -> PerColumn:
    """Student's t of mean differences below 0, as far out as a normal number that is as rare; 0 for others."""
    freedom = np.maximum(gaps.n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = gaps.mean * np.sqrt(freedom) / gaps.std
    return np.where(gaps.mean < -NOTHING, -ndtri(stdtr(freedom, t)), 0)


def _chance(values: Columns, ones: Indices, others: Indices, seed: int) -> Float[np.ndarray, "draws p"]:
    """The null distribution of the pairwise t statistics, drawn jointly for all pairs.

    The draws are normal and depend on each other as the differences do, which are weighted at random (multipliers).
    """
    rows, present = _short(values)
    shared = present[:, ones] & present[:, others]
    whole, apart = rows[:, :1] * shared, (rows[:, 1 + ones] - rows[:, 1 + others]) * shared
    count = (whole**2).sum(0)
    apart -= whole * ((whole * apart).sum(0) / np.maximum(count, 1))
    if len(apart) > len(ones):
        apart = np.linalg.qr(apart, mode="r")
    size = np.sqrt((apart**2).sum(0))
    unit = np.divide(apart, size, out=np.zeros_like(apart), where=size > NOTHING * np.sqrt(count))
    drawn = np.random.default_rng(seed).normal(size=(DRAWS, len(unit))) @ unit
    return np.asarray(np.abs(drawn))


def _short(values: Columns) -> tuple[Float[np.ndarray, "m 1+k"], Bool[np.ndarray, "m k"]]:
    """Fewer rows with the same column products, a column of ones included, and the columns that vary.

    Examples that lack the same numbers become as many rows as there are columns (the R of QR).
    """
    present = ~np.isnan(values)
    rows = np.concatenate([np.ones((len(values), 1)), np.where(present, values, 0)], axis=1)
    number = present @ np.random.default_rng(0).integers(2**62, size=values.shape[1])  # its own for each pattern
    _, first, own = np.unique(number, return_index=True, return_inverse=True)
    many = np.flatnonzero(np.bincount(own, minlength=len(first)) > rows.shape[1])
    alone = ~np.isin(own, many)
    shorter = [np.linalg.qr(rows[own == index], mode="r") for index in many]
    patterns = np.repeat(present[first[many]], rows.shape[1], axis=0)
    return np.concatenate([rows[alone], *shorter]), np.concatenate([present[alone], patterns])
