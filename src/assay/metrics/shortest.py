"""How few of its highest words a ranking needs, beside the fewest that known rankings need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

REACHED = 0.75
"""The share of what the whole text adds to the probability of its decision that a set of words has to account for."""


def shortest(
    curve: Float[np.ndarray, "B R K"], sizes: Sequence[int], reached: float = REACHED
) -> Int[np.ndarray, "B R"]:
    """The smallest of these numbers of words at which each curve has risen so far; twice the largest if it never has.

    A curve that has once risen so far counts as risen from there on.
    """
    there = curve >= reached
    first: np.ndarray = np.asarray(sizes)[there.argmax(-1)]
    return np.where(there.any(-1), first, 2 * max(sizes))


def economy(needed: Int[np.ndarray, "B R"], known: Int[np.ndarray, "B S"]) -> Float[np.ndarray, "B R"]:
    """The fewest words that a known ranking needs, as a share of what each ranking needs: 1 where it needs no more."""
    fewest = np.minimum(known.min(-1, keepdims=True), needed)
    return np.asarray(fewest / needed)
