"""Mislabelled training examples: signals that rank them, and their grade where errors were planted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.influence.neighbours import Neighbours, labels
from assay.influence.setting import Setting
from assay.metrics.performance import auc
from assay.models.textmodel import predict

Signal = Callable[[Setting], Float[np.ndarray, " N"]]
"""How suspicious each training example is; the `own` of every method that has it is one."""

RESAMPLES = 1000
CELLS = 2**22


def plain_loss(setting: Setting) -> Float[np.ndarray, " N"]:
    """The loss of each training example: the baseline of every other signal."""
    chosen = predict(setting.network, setting.train)[np.arange(len(setting.train)), labels(setting)]
    return np.asarray(-np.log(np.maximum(chosen, 1e-30)))


def margin(setting: Setting) -> Float[np.ndarray, " N"]:
    """The probability of the likeliest other class less that of the label (Northcutt et al., 2021)."""
    probabilities, own = predict(setting.network, setting.train), labels(setting)
    chosen = probabilities[np.arange(len(own)), own].copy()
    probabilities[np.arange(len(own)), own] = -1
    return np.asarray(probabilities.max(1) - chosen)


SIGNALS: dict[str, Signal] = {"loss": plain_loss, "margin": margin, "neighbours": Neighbours().own}
"""Signals that need no gradient."""


def flipped(
    rows: Sequence[Tokenised], share: float, seed: int = 0, classes: int | None = None
) -> tuple[list[Tokenised], Bool[np.ndarray, " N"]]:
    """The rows with random other labels for that share of them, and which these are."""
    if not 0 <= share <= 1:
        raise AssayError(f"The share of labels to flip must be from 0 to 1, got {share}.")
    known = classes or max(row.label for row in rows) + 1
    if known < 2:
        raise AssayError("Labels can be flipped where there are two classes or more.")
    random = np.random.default_rng(seed)
    chosen = np.zeros(len(rows), bool)
    chosen[random.permutation(len(rows))[: round(share * len(rows))]] = True
    steps = random.integers(1, known, len(rows))
    changed = [
        replace(row, label=int((row.label + step) % known)) if wrong else row
        for row, step, wrong in zip(rows, steps, chosen, strict=True)
    ]
    return changed, chosen


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


def graded(
    suspicion: Float[np.ndarray, " N"], wrong: Bool[np.ndarray, " N"], k: int | None = None, seed: int = 0
) -> Grade:
    """The grade of a signal, with bootstrap intervals over examples (95 %); k is the number of wrong labels."""
    k = k or int(wrong.sum())
    area = auc(wrong.astype(int), np.stack([-suspicion, suspicion], 1))
    areas, precisions = _resampled(suspicion, wrong, k, seed)
    top = np.argsort(-suspicion, kind="stable")[:k]
    low, high = np.quantile(areas, [0.025, 0.975])
    worst, best = np.quantile(precisions, [0.025, 0.975])
    return Grade(area, float(low), float(high), float(wrong[top].mean()), float(worst), float(best), k)


def _resampled(
    suspicion: Float[np.ndarray, " N"], wrong: Bool[np.ndarray, " N"], k: int, seed: int
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


def _levels(counts: Float[np.ndarray, "R N"], level: Int[np.ndarray, " N"]) -> Float[np.ndarray, "R L"]:
    """The sum of the counts at each level of suspicion, highest first."""
    size = int(level.max()) + 1
    indices = level + size * np.arange(len(counts))[:, None]
    return np.bincount(indices.ravel(), counts.ravel(), minlength=size * len(counts)).reshape(len(counts), size)


def ranked(setting: Setting, signals: Mapping[str, Signal] | None = None) -> dict[str, Float[np.ndarray, " N"]]:
    """The suspicion of each training example by each signal, higher for more."""
    found = {}
    for name, signal in (signals or SIGNALS).items():
        values = signal(setting)
        if not np.isfinite(values).all():
            raise AssayError(f"The signal {name!r} is no number for some training example; choose a higher damping.")
        found[name] = values
    return found
