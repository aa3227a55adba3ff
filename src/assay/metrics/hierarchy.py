"""Metrics of hierarchical explanations."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def cohesion(whole: Float[np.ndarray, " B"], scattered: Float[np.ndarray, "B Q"]) -> Float[np.ndarray, " B"]:
    """The mean drop in p(class) when the words of a phrase are scattered over the text.

    The cohesion score of Chen et al. (2020); it is large where the phrase counts by its words being together.
    """
    return np.asarray(whole - scattered.mean(-1))
