"""Mislabelled training examples: signals that rank them, their grade where errors were planted, and their repair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from assay.data.batches import Tokenised
from assay.errors import AssayError, unknown
from assay.influence.neighbours import Neighbours
from assay.influence.setting import Indices, Labels, Method, PerExample, Setting, Texts, labels_of, refuse
from assay.influence.training_run import TrainingRun
from assay.metrics.intervals import measured
from assay.metrics.performance import auc
from assay.models.textmodel import TextModel, predict

Signal = Callable[[Setting], PerExample]
"""How suspicious each training example is; the `own` of every method that has it is one."""

RESAMPLES = 1000
CELLS = 2**22


def plain_loss(setting: Setting) -> PerExample:
    """The loss of each training example: the baseline of every other signal."""
    chosen = predict(setting.network, setting.train)[np.arange(len(setting.train)), setting.labels]
    return np.asarray(-np.log(np.maximum(chosen, 1e-30)))


def margin(setting: Setting) -> PerExample:
    """The probability of the likeliest other class less that of the label (Northcutt et al., 2021)."""
    probabilities, own = predict(setting.network, setting.train), setting.labels
    chosen = probabilities[np.arange(len(own)), own].copy()
    probabilities[np.arange(len(own)), own] = -1
    return np.asarray(probabilities.max(1) - chosen)


SIGNALS: dict[str, Signal] = {"loss": plain_loss, "margin": margin, "neighbours": Neighbours().own}
"""Signals that need no gradient."""


@dataclass(frozen=True)
class Grade:
    """How well a signal finds wrong labels: the area under the ROC curve, and precision among the top k."""

    auc: float
    auc_low: float
    auc_high: float
    precision: float
    precision_low: float
    precision_high: float
    k: int


def graded(suspicion: PerExample, wrong: Bool[np.ndarray, " N"], k: int | None = None, seed: int = 0) -> Grade:
    """The grade of a signal, with bootstrap intervals over examples (95 %); k is the number of wrong labels."""
    k = k or int(wrong.sum())
    area = auc(wrong.astype(int), np.stack([-suspicion, suspicion], 1))
    areas, precisions = _resampled(suspicion, wrong, k, seed)
    top = np.argsort(-suspicion, kind="stable")[:k]
    low, high = np.quantile(areas, [0.025, 0.975])
    worst, best = np.quantile(precisions, [0.025, 0.975])
    return Grade(area, float(low), float(high), float(wrong[top].mean()), float(worst), float(best), k)


def _resampled(
    suspicion: PerExample, wrong: Bool[np.ndarray, " N"], k: int, seed: int
) -> tuple[Float[np.ndarray, " R"], Float[np.ndarray, " R"]]:
    """The area and the precision in resamples of right and of wrong labels, each of their number."""
    order = np.argsort(-suspicion, kind="stable")
    _, level = np.unique(-suspicion, return_inverse=True)  # equal ones share a level
    random, total = np.random.default_rng(seed), len(wrong)
    groups = np.flatnonzero(wrong), np.flatnonzero(~wrong)
    areas, precisions = [], []
    step = max(1, CELLS // total)
    for start in range(0, RESAMPLES, step):
        rows = min(step, RESAMPLES - start)
        drawn = np.zeros((rows, total))
        for group in groups:
            picks = group[random.integers(len(group), size=(rows, len(group)))] + total * np.arange(rows)[:, None]
            drawn += np.bincount(picks.ravel(), minlength=drawn.size).reshape(drawn.shape)
        found, other = _levels(drawn * wrong, level), _levels(drawn * ~wrong, level)
        below = other.sum(1, keepdims=True) - other.cumsum(1)
        areas.append((found * (below + other / 2)).sum(1) / (len(groups[0]) * len(groups[1])))
        counts = drawn[:, order]
        room = np.clip(k - (counts.cumsum(1) - counts), 0, counts)
        precisions.append((room * wrong[order]).sum(1) / k)
    return np.concatenate(areas), np.concatenate(precisions)


def _levels(counts: Float[np.ndarray, "R N"], level: Labels) -> Float[np.ndarray, "R L"]:
    """The sum of the counts at each level of suspicion, highest first."""
    size = int(level.max()) + 1
    indices = level + size * np.arange(len(counts))[:, None]
    return np.bincount(indices.ravel(), counts.ravel(), minlength=size * len(counts)).reshape(len(counts), size)


def suspicion(setting: Setting, name: str, signal: Signal) -> PerExample:
    """The suspicion of each training example by a signal, higher for more."""
    found = signal(setting)
    if not np.isfinite(found).all():
        raise AssayError(f"The signal {name!r} is no number for some training example; choose a higher damping.")
    return found


WAYS = ("relabel", "remove")


@dataclass(frozen=True)
class Repair:
    """Accuracy on test texts before and after, and the difference, each with its interval; and the rows changed."""

    before: tuple[float, float, float]
    after: tuple[float, float, float]
    gained: tuple[float, float, float]
    indices: Indices
    network: TextModel


@dataclass(frozen=True)
class Harmful:
    """The training examples that harm dev texts most.

    The harm of an example is the predicted fall of the loss, without it, summed over the dev texts that are classified
    wrongly, or over `every` one. Only examples that are predicted to harm are named.
    """

    method: Method
    count: int = 20
    every: bool = False

    def __call__(self, network: TextModel, training_run: TrainingRun, dev: Texts) -> Indices:
        """Their indices, most harmful first."""
        chosen = [row for row, good in zip(dev, right(network, dev), strict=True) if self.every or not good]
        if not chosen:
            return np.zeros(0, int)
        setting = Setting.of(network, training_run.rows, chosen, "loss", training_run=training_run)
        refuse(self.method.unfit(setting))
        scores = self.method(setting).scores.sum(0)
        order = np.argsort(scores, kind="stable")[: self.count]
        return np.asarray(order[scores[order] < 0])


def repaired(
    network: TextModel,
    training_run: TrainingRun,
    indices: Indices,
    test: Texts,
    way: str = "relabel",
) -> Repair:
    """Trains again without some training examples, or with the likeliest other labels for them."""
    if way not in WAYS:
        raise unknown("way to fix", way, WAYS)
    if way == "remove":
        shares = np.ones(len(training_run.rows))
        shares[indices] = 0
        mended = training_run.learn(shares)
    else:
        mended = replace(training_run, rows=relabelled(network, training_run.rows, indices)).learn()
    good = [right(each, test) * 1.0 for each in (network, mended)]
    found = measured(("right", "right", "right_gain"), np.stack([*good, good[1] - good[0]], 1))
    before, after, gained = zip(found.mean.tolist(), found.low.tolist(), found.high.tolist(), strict=True)
    return Repair(before, after, gained, indices, mended)


def right(network: TextModel, rows: Texts) -> Bool[np.ndarray, " N"]:
    """Which texts are classified as labelled."""
    return np.asarray(predict(network, rows).argmax(1) == labels_of(rows))


def relabelled(network: TextModel, rows: Texts, indices: Indices) -> list[Tokenised]:
    """The rows with some labels replaced by the likeliest other class."""
    changed = list(rows)
    if len(indices):
        some = [rows[index] for index in indices]
        probabilities = predict(network, some)
        probabilities[np.arange(len(some)), labels_of(some)] = -1
        for index, label in zip(indices.tolist(), probabilities.argmax(1).tolist(), strict=True):
            changed[index] = replace(rows[index], label=label)
    return changed
