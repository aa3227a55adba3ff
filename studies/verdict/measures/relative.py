"""Where a measure stands between chance and the best that can be had, so that texts and models compare."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

SMALLEST = 0.05  # between chance and the best, or their difference divides nothing


def relative(
    values: Float[np.ndarray, "*B"],
    null: Float[np.ndarray, "*#B"],
    ceiling: Float[np.ndarray, "*#B"],
    smallest: float = SMALLEST,
) -> Float[np.ndarray, "*B"]:
    """The values as shares of the way from chance to the ceiling: 0 is chance and 1 what can be had.

    `null` is what random scores get on the same text, `ceiling` what the best known ranking of it gets. Below 0 is
    worse than chance, above 1 better than the best that was known. It is nan where the ceiling is less than
    `smallest` above chance, because the text then tells no ranking from another. Of a measure whose low values are the
    good ones give all three negated.
    """
    room = ceiling - null
    defined = room >= smallest
    return np.asarray(np.where(defined, (values - null) / np.where(defined, room, 1), np.nan), dtype=np.float64)
