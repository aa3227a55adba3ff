"""Scores that were computed elsewhere, in the place of an explainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.types import Batch, Explainer, Model

LACKING = "The given scores are of whole texts; to explain others, give a function of a model, a batch and the classes."


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Scores that were given, one array a text."""

    scores: Sequence[Any]

    def of(self, rows: Sequence[Tokenised], numbers: Sequence[int]) -> Explainer:
        """The explainer of these texts, each with its number among those that scores were given for."""
        if max(numbers) >= len(self.scores):
            raise AssayError(f"Scores are given for {len(self.scores):,} texts, and text {max(numbers):,} has none.")
        return _Lookup({_key(row.ids): self._one(row, number) for row, number in zip(rows, numbers, strict=True)})

    def _one(self, row: Tokenised, number: int) -> Tensor:
        try:
            scores = np.asarray(self.scores[number], dtype=np.float32)
        except (TypeError, ValueError):
            raise AssayError(f"The scores given for text {number:,} are no list of numbers.") from None
        if scores.shape != (len(row.ids),):
            raise AssayError(f"Text {number:,} has {len(row.ids)} words, and scores of shape {scores.shape} are given.")
        return torch.from_numpy(scores)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        raise AssayError(LACKING)


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Scores that were given, found by the ids of each text."""

    scores: Mapping[tuple[int, ...], Tensor]

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        found = torch.zeros(batch.ids.shape)
        for row, (ids, mask) in enumerate(zip(batch.ids, batch.mask, strict=True)):
            scores = self.scores.get(_key(ids[mask]))
            if scores is None:
                raise AssayError(LACKING)
            found[row, : len(scores)] = scores
        return found.to(batch.ids.device)


def looked_up(
    explainers: Mapping[str, Explainer], rows: Sequence[Tokenised], numbers: Sequence[int]
) -> dict[str, Explainer]:
    """The explainers of these texts: those that are scores find them by text."""
    return {
        name: each.of(rows, numbers) if isinstance(each, GivenScores) else each for name, each in explainers.items()
    }


def computing(explainers: Mapping[str, Explainer]) -> dict[str, Explainer]:
    """The explainers that can explain other models and texts: all but scores that were given."""
    return {name: each for name, each in explainers.items() if not isinstance(each, _Lookup)}


def _key(ids: Int[Tensor, " T"]) -> tuple[int, ...]:
    return tuple(ids.tolist())
