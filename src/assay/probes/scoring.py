"""Accuracies with confidence intervals, and the choice of a head on other data than it is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

QUANTILE = 1.959963984540054  # of the normal distribution, for 95 %
DRAWS = 40  # random labellings of a control task


@dataclass(frozen=True)
class Share:
    """A proportion with its 95 % interval."""

    share: float
    low: float
    high: float


def wilson(right: Bool[np.ndarray, " n"], group: Int[np.ndarray, " n"]) -> Share:
    """The proportion of correct answers; answers within a group, such as a sentence, may be correlated.

    Wilson's (1927) interval for as many independent answers as have the same variance as these; none of 0.
    """
    count = len(right)
    if not count:
        return Share(np.nan, np.nan, np.nan)
    share = float(right.mean())
    _, numbers = np.unique(group, return_inverse=True)
    variance = float((np.bincount(numbers, right - share) ** 2).sum()) / count**2
    alone = min(count, share * (1 - share) / variance) if variance > 0 else count
    weight = QUANTILE**2 / alone
    middle = (share + weight / 2) / (1 + weight)
    half = QUANTILE * np.sqrt(share * (1 - share) / alone + weight / (4 * alone)) / (1 + weight)
    low, high = max(0.0, float(middle - half)), min(1.0, float(middle + half))
    return Share(share, min(low, share), max(high, share))  # whatever the rounding


def spread(shares: Sequence[float] | Float[np.ndarray, " n"]) -> Share:
    """The mean over the random labellings of a control task, with the range of 95 % of them."""
    low, high = np.quantile(shares, [0.025, 0.975])
    return Share(float(np.mean(shares)), float(low), float(high))


def grid(values: np.ndarray, layers: int) -> list[list[float]]:
    """The numbers of all heads, layer by layer."""
    rows: list[list[float]] = np.round(values.astype(np.float64), 6).reshape(layers, -1).tolist()
    return rows


def named(head: int, heads: int, layers: int) -> dict[str, int]:
    """The layer and the head within it, both counted from 0."""
    return {"layer": head // (heads // layers), "head": head % (heads // layers)}
