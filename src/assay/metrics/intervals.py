"""Means and proportions with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from scipy.special import betainc, betaincc, betaincinv, ndtr, ndtri, stdtr, stdtrit

from assay.metrics import ColumnCounts, ColumnNumbers, Columns, PerColumn, Sample

LEVEL = 0.95
NOTHING = 1e-7  # a smaller mean difference of probabilities is rounding


@dataclass(frozen=True)
class Interval:
    """The mean of each column, its interval, and the standard deviation (over n) of the n values in it.

    `p` is the two-sided p-value of a mean of 0 by the procedure of the interval: it is below 1 - level where, and only
    where, 0 lies outside. It is nan where no test belongs to the interval.
    """

    mean: PerColumn
    low: PerColumn
    high: PerColumn
    std: PerColumn
    n: ColumnCounts
    p: PerColumn


@dataclass(frozen=True)
class Moments:
    """The mean, the standard deviation (over n), the number and the skewness of what each column has."""

    mean: PerColumn
    std: PerColumn
    n: ColumnCounts
    skewness: PerColumn


def means(values: Columns, level: float = LEVEL) -> Interval:
    """Intervals of the mean of each column by Student's t with its skewness taken out by a cubic; Hall (1992).

    The cubic rises everywhere, so its inverse gives the ends, and what it makes of t at a mean of 0 gives the p-value.
    Missing values (nan) are left out column by column; a column without values has nan. A single value has no interval
    and says nothing against 0; values that are all the same have an interval without width.
    """
    found = moments(values)
    mean, n, freedom = found.mean, found.n, np.maximum(found.n - 1, 1)
    error, bend = found.std / np.sqrt(freedom), found.skewness / np.sqrt(np.maximum(n, 1))
    # differs from Hall (1992): quantiles of Student's t, not the normal ones, which are too short for few values
    reach = stdtrit(freedom, (1 + level) / 2)
    low, high = (mean - error * _unbent(end, bend) for end in (reach, -reach))
    p = np.where(error > 0, 2 * stdtr(freedom, -np.abs(_bent(_ratio(mean, error), bend))), 0)
    nothing = np.abs(mean) <= NOTHING
    low, high = np.where(nothing, np.minimum(low, 0), low), np.where(nothing, np.maximum(high, 0), high)
    p = np.where(nothing | (n == 1), 1, p)
    low, high = np.where(n > 1, low, np.nan), np.where(n > 1, high, np.nan)
    return Interval(mean, low, high, found.std, n, np.where(n, p, np.nan))


def moments(values: Columns) -> Moments:
    """Those of each column; missing values (nan) are left out."""
    present = ~np.isnan(values)
    n = present.sum(0)
    filled = np.where(present, values, 0).astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean = filled.sum(0) / n
        # around the mean, sums lose fewer digits, and a single value comes back as it is
        centred = np.where(present, filled - mean, 0)
        squares = centred**2
        std, third = np.sqrt(squares.sum(0) / n), (squares * centred).sum(0) / n
    return Moments(mean, std, n, _ratio(third, std**3))


def _ratio(above: PerColumn, below: PerColumn) -> PerColumn:
    """One by the other, 0 where that is 0."""
    found: np.ndarray = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found


def _bent(t: PerColumn, bend: PerColumn) -> PerColumn:
    """Hall's cubic of Student's t, c being the skewness over √n: t + c (t² / 3 + 1 / 6) + c² t³ / 27."""
    return np.asarray(t + bend * (t**2 / 3 + 1 / 6) + bend**2 * t**3 / 27)


def _unbent(value: PerColumn, bend: PerColumn) -> PerColumn:
    """The t of which Hall's cubic is this value, as (1 + c t / 3)³ = 1 + c (value - c / 6)."""
    some = np.where(np.abs(bend) > 1e-9, bend, 1)  # a smaller one bends nothing and loses all digits
    return np.where(some == bend, 3 / some * (np.cbrt(1 + some * (value - some / 6)) - 1), value)


# Confidence intervals of proportions, and of paired differences of proportions

HALVINGS = 60


def shares(values: Columns, level: float = LEVEL) -> Interval:
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


def share(ones: ColumnNumbers, n: ColumnCounts, level: float = LEVEL) -> tuple[PerColumn, PerColumn]:
    """Blaker's interval of a number of ones among n."""
    some = np.maximum(n, 1)
    low, high = _lowest(ones, some, 1 - level), 1 - _lowest(some - ones, some, 1 - level)
    return np.where(n, low, np.nan), np.where(n, high, np.nan)


def _lowest(ones: ColumnNumbers, n: ColumnCounts, alpha: float) -> PerColumn:
    """The lower end: the lowest proportion whose acceptability exceeds alpha.

    It is sought from the end of Clopper and Pearson on, where so many ones or more have half of alpha. Fewer ones than
    that which are no likelier count too; once they are one more, the chance is beyond alpha for certain.
    """

    def as_many(p: PerColumn) -> PerColumn:
        return np.where(ones > 0, betainc(np.maximum(ones, 1), n - ones + 1, p), 1)

    def at_most(few: PerColumn, p: PerColumn) -> PerColumn:
        return np.where(few >= 0, betaincc(np.maximum(few, 0) + 1, n - np.maximum(few, 0), p), 0)

    from scipy.stats import binom  # slow to import, and only needed here

    first = np.where(ones > 0, betaincinv(np.maximum(ones, 1), n - ones + 1, alpha / 2), 0)
    few = binom.ppf(alpha / 2, n, first) - 1
    last = _before(lambda p: as_many(p) > at_most(few + 1, p), first, ones / n)
    return _before(lambda p: as_many(p) + at_most(few, p) > alpha, first, last)


def share_differences(values: Columns, level: float = LEVEL) -> Interval:
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


def _score(more: ColumnCounts, less: ColumnCounts, n: ColumnCounts, gap: PerColumn) -> PerColumn:
    """The score statistic of the difference against `gap`; it decreases with `gap`."""
    across = more + less - (2 * n - more + less) * gap
    least = (np.sqrt(across**2 + 8 * n * less * gap * (1 - gap)) + across) / (4 * np.maximum(n, 1))
    error = np.sqrt(np.maximum(n * (2 * least + gap * (1 - gap)), 0))
    above = more - less - n * gap
    sure = np.where(above == 0, 0, np.copysign(np.inf, above))
    return np.where(error > 0, above / np.where(error > 0, error, 1), sure)


def _before(reached: Callable[[PerColumn], PerColumn], low: PerColumn, high: PerColumn) -> PerColumn:
    """Bisection per column: the last value between `low` and `high` at which `reached` is still false, else `high`."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        there = reached(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return low


# Which procedure gives the interval of which measure

SHARES = (
    *("right", "same", "used", "reached", "accuracy", "complement_accuracy"),
    *("optimal", "never", "wins", "both", "top_only", "other_only", "neither", "smaller"),
)
"""Measures that are 1 or 0 in each text."""

DIFFERENCES = ("right_gain", "fall_gain")
"""Differences of two such measures: 1, 0 or -1, unless they are means of several."""

PROCEDURES = (means, shares, share_differences)


def measured(names: Sequence[str], values: Columns) -> Interval:
    """Intervals of columns that are named as in audits ("measure", "measure:subject", "measure@threshold:subject").

    Shares and differences of shares have the exact and the score interval, everything else that of a mean.
    """
    chosen = np.array([_procedure(name, column) for name, column in zip(names, values.T, strict=True)], dtype=int)
    there = np.unique(chosen) if len(chosen) else (0,)  # exact intervals are slow, and most audits have no shares
    found = [PROCEDURES[index](values[:, chosen == index]) for index in there]
    own = np.argsort(np.argsort(chosen, kind="stable"))  # where each column stands when they are sorted by procedure
    return Interval(*(np.concatenate(parts)[own] for parts in zip(*map(astuple, found), strict=True)))


def _procedure(name: str, values: Sample) -> int:
    """The index of its procedure."""
    measure, present = name.partition(":")[0].partition("@")[0], values[~np.isnan(values)]
    if measure in SHARES and np.isin(present, (0, 1)).all():
        return 1
    return 2 if measure in DIFFERENCES and np.isin(present, (-1, 0, 1)).all() else 0
