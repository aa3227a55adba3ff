"""Leakage-adjusted simulatability of explanations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

STRATA = ("leaked", "nonleaked")


@dataclass(frozen=True)
class Simulatability:
    """LAS with its confidence interval, the gain and size of both strata, and the raw gain."""

    las: float
    low: float
    high: float
    gain: tuple[float, float]  # of leaked, of nonleaked; nan where there is none
    count: tuple[int, int]
    raw: float  # the gain over all examples, without control of leakage

    @property
    def empty(self) -> tuple[str, ...]:
        """The strata without an example, left out of LAS."""
        return tuple(name for name, count in zip(STRATA, self.count, strict=True) if not count)


def simulatability(
    both: Bool[np.ndarray, " n"],
    example: Bool[np.ndarray, " n"],
    explanation: Bool[np.ndarray, " n"],
    seed: int = 0,
    resamples: int = 2000,
    level: float = 0.95,
) -> Simulatability:
    """Leakage-adjusted simulatability; Hase et al. (2020), equation 1.

    The arguments say where a simulator foresees the model's answer from the example with its explanation, from the
    example alone, and from the explanation alone, where it leaks. LAS is the plain mean, over leaked and nonleaked
    examples, of the accuracy that the explanation adds; its interval is a percentile bootstrap over examples.
    """
    # differs from Hase et al. (2020): a stratum without examples is left out and named, where theirs makes LAS nan
    gains = both.astype(int) - example.astype(int) + 1
    cells = np.bincount(np.where(explanation, 0, 3) + gains, minlength=6)  # leaked and nonleaked: lost, same, gained
    if not len(both):
        return Simulatability(np.nan, np.nan, np.nan, (np.nan, np.nan), (0, 0), np.nan)
    # all that counts of an example is its cell, so resampling examples is drawing how many there are of each
    drawn = np.random.default_rng(seed).multinomial(len(both), cells / len(both), size=resamples)
    tail = (1 - level) / 2
    low, high = np.quantile(_las(drawn), [tail, 1 - tail])
    gain, count = _gains(cells[None])[0], cells.reshape(2, 3).sum(-1)
    leaked, nonleaked = map(float, gain)
    raw = float((both.astype(int) - example).mean())
    return Simulatability(
        float(_las(cells[None])[0]), float(low), float(high), (leaked, nonleaked), (int(count[0]), int(count[1])), raw
    )


def _gains(cells: Int[np.ndarray, "r 6"]) -> Float[np.ndarray, "r 2"]:
    """The accuracy gain in each stratum, nan where empty."""
    counts = cells.reshape(-1, 2, 3)
    total = counts.sum(-1)
    added = (counts[..., 2] - counts[..., 0]).astype(np.float64)
    gains = np.full(total.shape, np.nan)
    np.divide(added, total, out=gains, where=total > 0)
    return gains


def _las(cells: Int[np.ndarray, "r 6"]) -> Float[np.ndarray, " r"]:
    """The mean gain over nonempty strata."""
    gains = _gains(cells)
    present = ~np.isnan(gains)
    las: Float[np.ndarray, " r"] = np.where(present, gains, 0).sum(-1) / present.sum(-1)
    return las
