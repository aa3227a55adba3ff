"""Economy: the fewest words that a ranking needs, relative to known rankings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

REACHED = 0.75
"""The share of what the whole text adds to the probability of its decision that a set of words has to account for."""


def shortest(
    curve: Float[np.ndarray, "B R K"], sizes: Sequence[int], reached: float = REACHED
) -> Int[np.ndarray, "B R"]:
    """The least number of words at which each curve reaches the threshold; twice the maximum if it never does.

    A curve that has once risen so far counts as risen from there on.
    """
    there = curve >= reached
    first: np.ndarray = np.asarray(sizes)[there.argmax(-1)]
    return np.where(there.any(-1), first, 2 * max(sizes))


def economy(needed: Int[np.ndarray, "B R"], known: Int[np.ndarray, "B S"]) -> Float[np.ndarray, "B R"]:
    """The ratio of the fewest words of known rankings to those of each ranking; at most 1."""
    fewest = np.minimum(known.min(-1, keepdims=True), needed)
    return np.asarray(fewest / needed)
