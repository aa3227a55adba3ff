"""Which procedure gives the interval of which measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

import numpy as np
from jaxtyping import Float

from assay.metrics.intervals import Interval, means
from assay.metrics.shares import share_differences, shares

SHARES = (
    *("right", "same", "used", "reached", "accuracy", "complement_accuracy"),
    *("optimal", "never", "wins", "both", "top_only", "other_only", "neither", "smaller"),
)
"""Measures that are 1 or 0 in each text."""

DIFFERENCES = ("right_gain", "fall_gain")
"""Differences of two such measures: 1, 0 or -1, unless they are means of several."""

PROCEDURES = (means, shares, share_differences)


def measured(names: Sequence[str], values: Float[np.ndarray, "n k"]) -> Interval:
    """Intervals of columns that are named as in audits ("measure", "measure:subject", "measure@threshold:subject").

    Shares and differences of shares have the exact and the score interval, everything else that of a mean.
    """
    chosen = np.array([_procedure(name, column) for name, column in zip(names, values.T, strict=True)], dtype=int)
    there = np.unique(chosen) if len(chosen) else (0,)  # exact intervals are slow, and most audits have no shares
    found = [PROCEDURES[index](values[:, chosen == index]) for index in there]
    own = np.argsort(np.argsort(chosen, kind="stable"))  # where each column stands when they are sorted by procedure
    return Interval(*(np.concatenate(parts)[own] for parts in zip(*map(astuple, found), strict=True)))


def _procedure(name: str, values: Float[np.ndarray, " n"]) -> int:
    """The index of its procedure."""
    measure, present = name.partition(":")[0].partition("@")[0], values[~np.isnan(values)]
    if measure in SHARES and np.isin(present, (0, 1)).all():
        return 1
    return 2 if measure in DIFFERENCES and np.isin(present, (-1, 0, 1)).all() else 0
