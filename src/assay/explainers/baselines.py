"""Scores that need no method: random ones, given ones, and those that a model computes itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.batches import Tokenised
from assay.errors import AssayError
from assay.explainers.needs import Choosy, Scores, Target
from assay.types import Batch, Explainer, Model, SelectingModel, at_least_float32

# Random scores: the baseline for every explainer.


@dataclass(frozen=True)
class Random:
    """Uniform scores that depend on the text and the seed alone, not on the batch or the device."""

    class_free: ClassVar[bool] = True

    seed: int = 0

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        text = mixed(text_numbers(batch)[:, None] + self.seed)
        bits = mixed(text + mixed(positions + 1)) & ((1 << 24) - 1)
        return (bits + 1).float() / (1 << 24) * batch.mask


def text_numbers(batch: Batch) -> Int[Tensor, " B"]:
    """A hash of each text's words and their order: the seed of everything drawn for that text."""
    return (mixed(batch.ids + _places(batch.ids.shape[1], batch.ids.device)) * batch.mask).sum(-1)


@lru_cache(maxsize=256)
def _places(count: int, device: torch.device) -> Int[Tensor, " T"]:
    """A hash of each position."""
    with torch.inference_mode(False):
        return mixed(torch.arange(1, count + 1, device=device))


def mixed(numbers: Int[Tensor, "*N"]) -> Int[Tensor, "*N"]:
    """The finaliser of splitmix64, an integer hash (Steele et al., 2014)."""
    numbers = numbers * -7046029254386353131
    numbers = (numbers ^ ((numbers >> 30) & ((1 << 34) - 1))) * -4658895280553007687
    numbers = (numbers ^ ((numbers >> 27) & ((1 << 37) - 1))) * -7723592293110705685
    return numbers ^ ((numbers >> 31) & ((1 << 33) - 1))


# Scores that were computed elsewhere, in the place of an explainer.


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

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        raise AssayError(LACKING)


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Scores that were given, found by the ids of each text."""

    scores: Mapping[tuple[int, ...], Tensor]

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
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


# The attribution of a self-explaining model, as the model itself computes it.


@runtime_checkable
class ExplainingModel(Model, Protocol):
    """A model that computes each word's contribution to each logit."""

    def relevance(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]: ...


@dataclass(frozen=True)
class OwnRelevance(Choosy):
    """Each word's contribution to the class's logit as computed by a self-explaining model."""

    def unfit(self, model: Model) -> str | None:
        return None if isinstance(model, ExplainingModel) else "the model does not explain itself"

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        assert isinstance(model, ExplainingModel)
        relevance = model.relevance(model.embed(batch), batch)
        chosen = target[:, None, None].expand(-1, relevance.shape[1], 1)
        return at_least_float32(relevance.gather(2, chosen)[..., 0]) * batch.mask


# The rationale of a model that selects words, as an explanation.


@dataclass(frozen=True)
class Rationale(Choosy):
    """The model's selected words, ranked by selection probability, above all others; for any class."""

    class_free: ClassVar[bool] = True

    def unfit(self, model: Model) -> str | None:
        selecting = isinstance(model, SelectingModel)
        return None if selecting else "the model does not select the words that it reads"

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        assert isinstance(model, SelectingModel)
        selection = model.selection(model.embed(batch), batch)
        return (selection.kept + selection.chance.float()) / 2 * batch.mask
