"""Whether numbers for the same examples differ: a test against no difference, and ties with the best."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata, wilcoxon

from assay.metrics import bootstrap

NOTHING = 1e-7  # a smaller difference of probabilities is rounding
FEW = 13  # so many differences can be given signs in all ways


def signed_rank(differences: Float[np.ndarray, " n"]) -> float:
    """The two-sided p-value of differences that are as likely above as below 0; Wilcoxon (1945).

    Missing ones (nan) are left out, and so are those of no more than NOTHING, as Wilcoxon does. It is 1 where all are
    nothing, and nan where all are missing.
    """
    present = differences[~np.isnan(differences)]
    moved = present[np.abs(present) > NOTHING]
    if not len(moved):
        return 1.0 if len(present) else np.nan
    return _enumerated(moved) if len(moved) <= FEW else float(wilcoxon(moved).pvalue)


def _enumerated(moved: Float[np.ndarray, " n"]) -> float:
    """The share of all ways to give signs whose sum of ranks is as far from the middle.

    Scipy does the same where ranks are tied, a thousand times slower.
    """
    ranks = rankdata(np.abs(moved))
    signs = np.arange(1 << len(ranks))[:, None] >> np.arange(len(ranks)) & 1
    distance = np.abs(np.append(signs @ ranks, ranks[moved > 0].sum()) - ranks.sum() / 2)
    return float(np.mean(distance[:-1] >= distance[-1] - 1e-9))


def tied(
    values: Float[np.ndarray, "n k"], best: int, seed: int = 0, resamples: int = 2000, level: float = 0.95
) -> Bool[np.ndarray, " k"]:
    """Which columns cannot be told from the column `best`: the interval of their mean difference from it holds 0.

    The differences are those of the same example, and their percentile interval is a bootstrap over the examples
    that have both numbers; Efron (1979). A column that shares no example with the best is not tied with it.
    """
    interval = bootstrap.means(values - values[:, best : best + 1], seed, resamples, level)
    return (interval.low <= 0) & (interval.high >= 0)
