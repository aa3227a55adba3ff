"""Paired comparison of several columns over the same examples: which may equal the best."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri, stdtr

from assay.metrics.intervals import LEVEL, NOTHING, Moments, moments

DRAWS = 10_000


def tied(values: Float[np.ndarray, "n k"], best: int, seed: int = 0, level: float = LEVEL) -> Bool[np.ndarray, " k"]:
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


def _behind(gaps: Moments) -> Float[np.ndarray, " k"]:
    """Student's t of mean differences below 0, as far out as a normal number that is as rare; 0 for others."""
    freedom = np.maximum(gaps.n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = gaps.mean * np.sqrt(freedom) / gaps.std
    return np.where(gaps.mean < -NOTHING, -ndtri(stdtr(freedom, t)), 0)


def _chance(
    values: Float[np.ndarray, "n k"], ones: Int[np.ndarray, " p"], others: Int[np.ndarray, " p"], seed: int
) -> Float[np.ndarray, "draws p"]:
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


def _short(values: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, "m 1+k"], Bool[np.ndarray, "m k"]]:
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
