"""Criteria that select the best epoch of a training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from assay.data.batches import Tokenised
from assay.models.textmodel import graded, groups
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.terms.answers import AnswerCrossEntropy


@runtime_checkable
class EpochScore(Protocol):
    """Score (above −1) of the deterministic selections on dev texts, and a loss that breaks ties.

    Of epochs equal in both, the latest is the best.

    Of epochs that are equal in both, the latest is the best.
    """

    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]: ...


@dataclass(frozen=True)
class Answers:
    """Accuracy of the predictor on its selections."""

    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(model, rows)


@dataclass(frozen=True)
class CriticGap:
    """Accuracy; ties go to the epoch in which a critic, who reads the rest, does worst.

    A text on which it is surer than a blind guess, but wrong, counts like that guess.
    """

    critic: str = "critic"

    @torch.no_grad()
    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        score, loss = graded(model, rows)
        was_training = model.training
        model.eval()
        costs = [AnswerCrossEntropy(self.critic, "rest")(model.play(batch)) for _, batch in groups(model, rows)]
        model.train(was_training)
        return score, loss - float(torch.cat(costs).clamp(max=log(model.classes)).mean())


@dataclass(frozen=True)
class LatestAccurate:
    """Accuracy rounded to hundredths; ties go to the latest epoch.

    In a game in which one player gains what another loses, no cost of either says who has come further.
    """

    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return round(graded(model, rows)[0], 2), 0.0


@dataclass(frozen=True)
class Sparsest:
    """The share of unselected words, if the prediction stays within `limit` of that on all words; else below 0.

    How far it is, is KL(P(all) ‖ P(selected)), on average; De Cao et al. (2020) choose their epoch in that way.
    """

    limit: float

    @torch.no_grad()
    def __call__(self, model: Rationaliser, rows: Sequence[Tokenised]) -> tuple[float, float]:
        was_training = model.training
        model.eval()
        sums = np.zeros(3)
        for _, batch in groups(model, rows):
            play = model.play(batch)
            whole, seen = (play.read("predictor", view).logits.log_softmax(-1) for view in ("all", "selected"))
            lost = (whole.exp() * (whole - seen)).sum()
            sums += float(play.z[:, 0].sum()), float(batch.mask.sum()), float(lost)
        model.train(was_training)
        lost = sums[2] / len(rows)
        return (1 - sums[0] / sums[1] if lost <= self.limit else float(np.exp(-lost)) - 1), lost
