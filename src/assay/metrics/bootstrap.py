"""Confidence intervals of means, by resampling examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

CELLS = 1 << 21  # resampling weights held at a time: 16 MB


@dataclass(frozen=True)
class Interval:
    """The mean of each column, its interval, and the standard deviation (over n) of the n values in it."""

    mean: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]
    n: Int[np.ndarray, " k"]


def means(values: Float[np.ndarray, "n k"], seed: int = 0, resamples: int = 2000, level: float = 0.95) -> Interval:
    """Percentile bootstrap intervals of the mean of each column; Efron (1979).

    All columns share the resampled examples. Missing values (nan) are left out column by
    column; a column without values has nan.
    """
    present = ~np.isnan(values)
    n = present.sum(0)
    filled = np.where(present, values, 0).astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean = filled.sum(0) / n
        # around the mean, sums lose fewer digits, and a single value comes back as it is
        centred = np.where(present, filled - mean, 0)
        std = np.sqrt((centred**2).sum(0) / n)
    low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    some = n > 0
    if some.any():
        drawn = _resampled(centred[:, some], present[:, some], seed, resamples)
        tail = (1 - level) / 2
        low[some], high[some] = mean[some] + np.nanquantile(drawn, [tail, 1 - tail], axis=0)
    return Interval(mean, low, high, std, n)


def _resampled(
    centred: Float[np.ndarray, "n k"], present: Bool[np.ndarray, "n k"], seed: int, resamples: int
) -> Float[np.ndarray, "resamples k"]:
    """The mean of each column in each resample; nan where a resample holds none of a column's values."""
    both = np.concatenate([centred, present], axis=1)
    sums = np.concatenate([weights @ both for weights in _weights(len(both), seed, resamples)])
    total, count = np.split(sums, 2, axis=1)
    drawn = np.full_like(total, np.nan)
    np.divide(total, count, out=drawn, where=count > 0)
    return drawn


def _weights(n: int, seed: int, resamples: int) -> Iterator[Float[np.ndarray, "chunk n"]]:
    """How often each of n examples is drawn in each resample, in chunks of resamples."""
    generator = np.random.default_rng(seed)
    chunk = max(1, CELLS // n)
    for start in range(0, resamples, chunk):
        rows = min(chunk, resamples - start)
        # counting draws is many times faster than numpy's multinomial
        draws = generator.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(draws.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)
