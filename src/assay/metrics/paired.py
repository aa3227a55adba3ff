"""Whether numbers for the same examples differ: a test against no difference, and ties with the best."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import wilcoxon

from assay.metrics import bootstrap

NOTHING = 1e-7  # a smaller difference of probabilities is rounding


def signed_rank(differences: Float[np.ndarray, " n"]) -> float:
    """The two-sided p-value of differences that are as likely above as below 0; Wilcoxon (1945).

    Missing ones (nan) are left out, and so are those of no more than NOTHING, as Wilcoxon does. It is 1 where all are
    nothing, and nan where all are missing.
    """
    present = differences[~np.isnan(differences)]
    moved = present[np.abs(present) > NOTHING]
    if not len(moved):
        return 1.0 if len(present) else np.nan
    return float(wilcoxon(moved).pvalue)


def tied(
    values: Float[np.ndarray, "n k"], best: int, seed: int = 0, resamples: int = 2000, level: float = 0.95
) -> Bool[np.ndarray, " k"]:
    """Which columns cannot be told from the column `best`: the interval of their mean difference from it holds 0.

    The differences are those of the same example, and their percentile interval is a bootstrap over the examples
    that have both numbers; Efron (1979). A column that shares no example with the best is not tied with it.
    """
    interval = bootstrap.means(values - values[:, best : best + 1], seed, resamples, level)
    return (interval.low <= 0) & (interval.high >= 0)
