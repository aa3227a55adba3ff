"""Confidence intervals of proportions, and of paired differences of proportions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Num
from scipy.special import betainc, betaincc, betaincinv, ndtr, ndtri

from assay.metrics.intervals import LEVEL, Interval

HALVINGS = 60
Ends = Float[np.ndarray, " k"]


def shares(values: Float[np.ndarray, "n k"], level: float = LEVEL) -> Interval:
    """Exact confidence intervals of the proportion of ones per column; Blaker (2000).

    Each lies within that of Clopper and Pearson (1934), yet holds the true share at least as often as the level says,
    whatever the share and however few the values. Where none or all are 1 it has a width. Missing values (nan) are left
    out; a column without values has nan.
    """
    n, ones = (~np.isnan(values)).sum(0), np.nansum(values, axis=0)
    with np.errstate(invalid="ignore"):
        mean = ones / n
    low, high = share(ones, n, level)
    return Interval(mean, low, high, np.sqrt(mean * (1 - mean)), n, np.full_like(mean, np.nan))


def share(ones: Num[np.ndarray, " k"], n: Int[np.ndarray, " k"], level: float = LEVEL) -> tuple[Ends, Ends]:
    """Blaker's interval of a number of ones among n."""
    some = np.maximum(n, 1)
    low, high = _lowest(ones, some, 1 - level), 1 - _lowest(some - ones, some, 1 - level)
    return np.where(n, low, np.nan), np.where(n, high, np.nan)


def _lowest(ones: Num[np.ndarray, " k"], n: Int[np.ndarray, " k"], alpha: float) -> Ends:
    """The lower end: the lowest proportion whose acceptability exceeds alpha.

    It is sought from the end of Clopper and Pearson on, where so many ones or more have half of alpha. Fewer ones than
    that which are no likelier count too; once they are one more, the chance is beyond alpha for certain.
    """

    def as_many(p: Ends) -> Ends:
        return np.where(ones > 0, betainc(np.maximum(ones, 1), n - ones + 1, p), 1)

    def at_most(few: Ends, p: Ends) -> Ends:
        return np.where(few >= 0, betaincc(np.maximum(few, 0) + 1, n - np.maximum(few, 0), p), 0)

    from scipy.stats import binom  # slow to import, and only needed here

    first = np.where(ones > 0, betaincinv(np.maximum(ones, 1), n - ones + 1, alpha / 2), 0)
    few = binom.ppf(alpha / 2, n, first) - 1
    last = _before(lambda p: as_many(p) > at_most(few + 1, p), first, ones / n)
    return _before(lambda p: as_many(p) + at_most(few, p) > alpha, first, last)


def share_differences(values: Float[np.ndarray, "n k"], level: float = LEVEL) -> Interval:
    """Score intervals of the difference of two paired proportions; Tango (1998).

    Columns hold 1 where an example counts in the first share alone, -1 where in the second alone, else 0. The p-value
    is McNemar's (1947), whose score is that of no difference. Where all are 0, the interval still has a width. Missing
    values (nan) are left out; a column without values has nan.
    """
    n, more, less = (~np.isnan(values)).sum(0), (values == 1).sum(0), (values == -1).sum(0)
    with np.errstate(invalid="ignore"):
        mean = (more - less) / n
        std = np.sqrt((more + less) / n - mean**2)
    reach, none = ndtri((1 + level) / 2), np.zeros_like(mean)
    one, other, of = np.concatenate([more, less]), np.concatenate([less, more]), np.concatenate([n, n])
    means = np.concatenate([mean, -mean])
    ends = _before(lambda gap: _score(one, other, of, gap) < reach, -np.ones_like(means), means)
    low, high = ends[: len(mean)], -ends[len(mean) :]
    p = np.where(n, 2 * ndtr(-np.abs(_score(more, less, n, none))), np.nan)
    return Interval(mean, np.where(n, low, np.nan), np.where(n, high, np.nan), std, n, p)


def _score(more: Int[np.ndarray, " k"], less: Int[np.ndarray, " k"], n: Int[np.ndarray, " k"], gap: Ends) -> Ends:
    """The score statistic of the difference against `gap`; it decreases with `gap`."""
    across = more + less - (2 * n - more + less) * gap
    least = (np.sqrt(across**2 + 8 * n * less * gap * (1 - gap)) + across) / (4 * np.maximum(n, 1))
    error = np.sqrt(np.maximum(n * (2 * least + gap * (1 - gap)), 0))
    above = more - less - n * gap
    sure = np.where(above == 0, 0, np.copysign(np.inf, above))
    return np.where(error > 0, above / np.where(error > 0, error, 1), sure)


def _before(reached: Callable[[Ends], Float[np.ndarray, " k"]], low: Ends, high: Ends) -> Ends:
    """Bisection per column: the last value between `low` and `high` at which `reached` is still false, else `high`."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        there = reached(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return low
