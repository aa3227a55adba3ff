"""Agreement between predicted effects of removing training examples and retraining."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from assay.metrics.performance import auc

RESAMPLES, LEVEL = 500, 0.95


@dataclass(frozen=True)
class Bounded:
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def spearman(x: Float[np.ndarray, "Q S"], y: Float[np.ndarray, "Q S"]) -> Float[np.ndarray, " Q"]:
    """Spearman's rank correlation of each row; nan where a row is constant."""
    from scipy.stats import rankdata  # slow to import, and only needed here

    return pearson(rankdata(x, axis=1), rankdata(y, axis=1))


def pearson(x: Float[np.ndarray, "Q S"], y: Float[np.ndarray, "Q S"]) -> Float[np.ndarray, " Q"]:
    """The linear correlation of each row; nan where a row is constant."""
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: np.ndarray = (x * y).sum(1) / np.sqrt((x**2).sum(1) * (y**2).sum(1))
    return np.asarray(found.clip(-1, 1))


def predicted(scores: Float[np.ndarray, "Q N"], removed: Bool[np.ndarray, "S N"]) -> Float[np.ndarray, "S Q"]:
    """The change of each target when some examples are removed together, as the sum of what each would do alone."""
    return np.asarray(removed.astype(np.float64) @ scores.T)


def lds(
    scores: Float[np.ndarray, "Q N"], removed: Bool[np.ndarray, "S N"], targets: Float[np.ndarray, "S Q"]
) -> Float[np.ndarray, " Q"]:
    """The linear datamodelling score of each query: the rank correlation over subsets of predicted and real targets.

    Park et al. (2023), TRAK, definition 2.3; there subsets are kept, here they are removed, which is the same.
    """
    return spearman(predicted(scores, removed).T, targets.T)


def lds_interval(
    scores: Float[np.ndarray, "Q N"], removed: Bool[np.ndarray, "S N"], targets: Float[np.ndarray, "S Q"], seed: int = 0
) -> Bounded:
    """The mean of that score over queries, with an interval for the choice of both queries and subsets."""
    return _bounded(predicted(scores, removed), targets, seed)


def ceiling(targets: Float[np.ndarray, "seeds S Q"], seed: int = 0) -> Bounded:
    """How well the targets of one training predict those of another with other luck, by the same score.

    What is said of one model cannot be expected to agree better with another.
    """
    first, second = np.triu_indices(len(targets), 1)
    return _bounded(np.concatenate(list(targets[first]), axis=1), np.concatenate(list(targets[second]), axis=1), seed)


def _bounded(x: Float[np.ndarray, "S Q"], y: Float[np.ndarray, "S Q"], seed: int) -> Bounded:
    """The mean rank correlation of the columns; rows and columns are drawn again."""
    random, (subsets, queries) = np.random.default_rng(seed), x.shape
    found = [_mean(spearman(x.T, y.T))]
    for _ in range(RESAMPLES):
        cells = np.ix_(random.integers(subsets, size=subsets), random.integers(queries, size=queries))
        found.append(_mean(spearman(x[cells].T, y[cells].T)))
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(found[1:], [tail, 1 - tail]) if np.isfinite(found[1:]).any() else (np.nan, np.nan)
    return Bounded(found[0], float(low), float(high))


def _mean(values: Float[np.ndarray, " Q"]) -> float:
    """The mean of those that are defined."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan


def leave_one_out(scores: Float[np.ndarray, "Q R"], changes: Float[np.ndarray, "R Q"]) -> Float[np.ndarray, " Q"]:
    """The linear correlation, for each query, of predicted and real changes when single examples are removed."""
    return pearson(scores, changes.T)


def mislabel_auc(suspicion: Float[np.ndarray, " N"], wrong: Bool[np.ndarray, " N"]) -> float:
    """The chance that an example with a wrong label is more suspicious than one with the right label."""
    return auc(wrong.astype(np.int64), np.stack([-suspicion, suspicion], axis=1))


def removal_gain(real: Float[np.ndarray, "K Q"], chance: Float[np.ndarray, "D K Q"]) -> Float[np.ndarray, "K Q"]:
    """How much further targets moved than when as many examples were removed by chance, for each number removed."""
    return np.asarray(real - chance.mean(0))


def slope(expected: Float[np.ndarray, " n"], real: Float[np.ndarray, " n"]) -> float:
    """What a predicted change of 1 really comes to, by least squares through 0; nan where nothing is predicted."""
    size = float(expected @ expected)
    return float(expected @ real) / size if size else np.nan
