"""Confidence intervals of means, and the p-values that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import stdtr, stdtrit

LEVEL = 0.95
NOTHING = 1e-7  # a smaller mean difference of probabilities is rounding


@dataclass(frozen=True)
class Interval:
    """The mean of each column, its interval, and the standard deviation (over n) of the n values in it.

    `p` is the two-sided p-value of a mean of 0 by the procedure of the interval: it is below 1 - level where, and only
    where, 0 lies outside. It is nan where no test belongs to the interval.
    """

    mean: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]
    n: Int[np.ndarray, " k"]
    p: Float[np.ndarray, " k"]


@dataclass(frozen=True)
class Moments:
    """The mean, the standard deviation (over n), the number and the skewness of what each column has."""

    mean: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]
    n: Int[np.ndarray, " k"]
    skewness: Float[np.ndarray, " k"]


def means(values: Float[np.ndarray, "n k"], level: float = LEVEL) -> Interval:
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


def moments(values: Float[np.ndarray, "n k"]) -> Moments:
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


def _ratio(above: Float[np.ndarray, " k"], below: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """One by the other, 0 where that is 0."""
    found: np.ndarray = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found


def _bent(t: Float[np.ndarray, " k"], bend: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Hall's cubic of Student's t, c being the skewness over √n: t + c (t² / 3 + 1 / 6) + c² t³ / 27."""
    return np.asarray(t + bend * (t**2 / 3 + 1 / 6) + bend**2 * t**3 / 27)


def _unbent(value: Float[np.ndarray, " k"], bend: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """The t of which Hall's cubic is this value, as (1 + c t / 3)³ = 1 + c (value - c / 6)."""
    some = np.where(np.abs(bend) > 1e-9, bend, 1)  # a smaller one bends nothing and loses all digits
    return np.where(some == bend, 3 / some * (np.cbrt(1 + some * (value - some / 6)) - 1), value)
