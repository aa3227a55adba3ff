"""How well the phrases of a hierarchy hold together."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float


def cohesion(whole: Float[np.ndarray, " B"], scattered: Float[np.ndarray, "B Q"]) -> Float[np.ndarray, " B"]:
    """How much p(class) drops, on average, when the words of a text's phrase are scattered over the text.

    The cohesion score of Chen et al. (2020); it is large where the phrase counts by its words being together.
    """
    return np.asarray(whole - scattered.mean(-1))
