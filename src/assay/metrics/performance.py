"""Performance: of classifiers, of influence estimates, and of simulators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.metrics import Sample

Labels = Int[np.ndarray, " N"]

# Performance of classifiers; nan without examples


def accuracy(labels: Labels, predicted: Labels) -> float:
    """The share of correct predictions."""
    return float((labels == predicted).mean()) if len(labels) else np.nan


def macro_f1(labels: Labels, predicted: Labels, classes: int) -> float:
    """F1 averaged over the classes that are labelled or predicted at least once."""
    hits = np.bincount(labels[labels == predicted], minlength=classes)
    # 2 TP / (2 TP + FP + FN): the denominator counts a class in labels and in predictions
    seen = np.bincount(labels, minlength=classes) + np.bincount(predicted, minlength=classes)
    occurs = seen > 0
    return float((2 * hits[occurs] / seen[occurs]).mean()) if occurs.any() else np.nan


def auc(labels: Labels, probabilities: Float[np.ndarray, "N C"]) -> float:
    """The area under the ROC curve; with more than two classes, the one-vs-rest mean.

    It is the chance that an example of the class ranks above one of the rest, equal ones counted half; Mann
    and Whitney (1947). Classes without an example are left out, and so is one that holds them all.
    """
    from scipy.stats import rankdata  # slow to import, and only needed here

    examples, classes = probabilities.shape
    # of two classes, one column says all; the other may be rounded to ties near 1
    measured = np.arange(1 if classes == 2 else 0, classes)
    positive = labels[:, None] == measured
    count = positive.sum(0)
    defined = (count > 0) & (count < examples)
    if not defined.any():
        return np.nan
    positive, count = positive[:, defined], count[defined]
    ranks = rankdata(probabilities[:, measured[defined]], axis=0)
    wins = (ranks * positive).sum(0) - count * (count + 1) / 2
    return float((wins / (count * (examples - count))).mean())


# Agreement between predicted effects of removing training examples and retraining

Influences = Float[np.ndarray, "Q N"]
Removed = Bool[np.ndarray, "S N"]  # which examples each subset lacks
Targets = Float[np.ndarray, "S Q"]
QueryTargets = Float[np.ndarray, "Q S"]
PerQuery = Float[np.ndarray, " Q"]
RESAMPLES, LEVEL = 500, 0.95


@dataclass(frozen=True)
class Bounded:
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def spearman(x: QueryTargets, y: QueryTargets) -> PerQuery:
    """Spearman's rank correlation of each row; nan where a row is constant."""
    from scipy.stats import rankdata  # slow to import, and only needed here

    return pearson(rankdata(x, axis=1), rankdata(y, axis=1))


def pearson(x: QueryTargets, y: QueryTargets) -> PerQuery:
    """The linear correlation of each row; nan where a row is constant."""
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: np.ndarray = (x * y).sum(1) / np.sqrt((x**2).sum(1) * (y**2).sum(1))
    return np.asarray(found.clip(-1, 1))


def predicted(scores: Influences, removed: Removed) -> Targets:
    """The change of each target when some examples are removed together, as the sum of what each would do alone."""
    return np.asarray(removed.astype(np.float64) @ scores.T)


def lds(scores: Influences, removed: Removed, targets: Targets) -> PerQuery:
    """The linear datamodelling score of each query: the rank correlation over subsets of predicted and real targets.

    Park et al. (2023), TRAK, definition 2.3; there subsets are kept, here they are removed, which is the same.
    """
    return spearman(predicted(scores, removed).T, targets.T)


def lds_interval(scores: Influences, removed: Removed, targets: Targets, seed: int = 0) -> Bounded:
    """The mean of that score over queries, with an interval for the choice of both queries and subsets."""
    return _bounded(predicted(scores, removed), targets, seed)


def ceiling(targets: Float[np.ndarray, "seeds S Q"], seed: int = 0) -> Bounded:
    """How well the targets of one training predict those of another with other luck, by the same score.

    What is said of one model cannot be expected to agree better with another.
    """
    first, second = np.triu_indices(len(targets), 1)
    return _bounded(np.concatenate(list(targets[first]), axis=1), np.concatenate(list(targets[second]), axis=1), seed)


def _bounded(x: Targets, y: Targets, seed: int) -> Bounded:
    """The mean rank correlation of the columns; rows and columns are drawn again."""
    random, (subsets, queries) = np.random.default_rng(seed), x.shape
    found = [_mean(spearman(x.T, y.T))]
    for _ in range(RESAMPLES):
        cells = np.ix_(random.integers(subsets, size=subsets), random.integers(queries, size=queries))
        found.append(_mean(spearman(x[cells].T, y[cells].T)))
    tail = (1 - LEVEL) / 2
    low, high = np.nanquantile(found[1:], [tail, 1 - tail]) if np.isfinite(found[1:]).any() else (np.nan, np.nan)
    return Bounded(found[0], float(low), float(high))


def _mean(values: PerQuery) -> float:
    """The mean of those that are defined."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan


def leave_one_out(scores: Float[np.ndarray, "Q R"], changes: Float[np.ndarray, "R Q"]) -> PerQuery:
    """The linear correlation, for each query, of predicted and real changes when single examples are removed."""
    return pearson(scores, changes.T)


def removal_gain(real: Float[np.ndarray, "K Q"], chance: Float[np.ndarray, "D K Q"]) -> Float[np.ndarray, "K Q"]:
    """How much further targets moved than when as many examples were removed by chance, for each number removed."""
    return np.asarray(real - chance.mean(0))


def slope(expected: Sample, real: Sample) -> float:
    """What a predicted change of 1 really comes to, by least squares through 0; nan where nothing is predicted."""
    size = float(expected @ expected)
    return float(expected @ real) / size if size else np.nan


# Leakage-adjusted simulatability of explanations

Answers = Bool[np.ndarray, " n"]
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
    both: Answers, example: Answers, explanation: Answers, seed: int = 0, resamples: int = 2000, level: float = 0.95
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
