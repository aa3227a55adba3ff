"""Copies of a model with slightly perturbed embeddings; a transformer's perturbations share one model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.intervene.parameters import copied
from assay.models.hf_body import Body
from assay.models.textmodel import TextModel
from assay.types import Batch, TokenModel

Model = TypeVar("Model", bound=TextModel)


@dataclass(frozen=True)
class Reading:
    """A model and the batch it is applied to: all texts, repeated once per perturbation."""

    network: TextModel
    batch: Batch
    times: int


@runtime_checkable
class Nudges(Protocol):
    """A set of perturbed models."""

    def readings(self, batch: Batch, at_once: int) -> Iterator[Reading]:
        """The batches for all perturbed models, several at once where possible."""


def nudges(model: TextModel, share: float, seeds: Sequence[int]) -> Nudges:
    """The model with its embeddings perturbed by each of the seeds."""
    spread = bool(getattr(model, "others", ()))  # over several devices
    if spread or not isinstance(model, Body) or isinstance(model, TokenModel):  # whose table is looked through
        return Apart([nudged(model, share, seed) for seed in seeds])
    return Together.of(model, share, seeds)


@torch.no_grad()
def nudged(model: Model, share: float, seed: int) -> Model:
    """A copy with each embedding moved in a random direction, by a share of the typical distance between them.

    That distance is the root mean square of how far words lie from their mean. The padding's embedding stays, and so do
    all special subwords of a transformer, which are no words. All that reads the table sees the same change, baselines
    included, so any explainer can be put to it. A transformer's other weights are the very ones of the model.
    """
    other = _beside_table(model) if isinstance(model, Body) else copied(model)
    _table(other).add_(_moves(model, share, seed))
    return other


@dataclass(frozen=True)
class Apart:
    """One model per perturbation."""

    models: Sequence[TextModel]

    def readings(self, batch: Batch, at_once: int) -> Iterator[Reading]:
        return (Reading(model, batch, 1) for model in self.models)


@dataclass(frozen=True)
class Together:
    """One transformer whose embedding table holds all perturbed tables below each other, chosen by id.

    Blanks are those of its own table.
    """

    network: Body
    rows: int
    count: int

    @classmethod
    @torch.no_grad()
    def of(cls, model: Body, share: float, seeds: Sequence[int]) -> Together:
        """The transformer with all perturbed tables; other weights are shared."""
        network, table = _beside_table(model), _table(model)
        moved = [table + _moves(model, share, seed) for seed in seeds]
        network.embedding.weight = nn.Parameter(torch.cat([table, *moved]), requires_grad=table.requires_grad)
        return cls(network, len(table), len(seeds))

    def readings(self, batch: Batch, at_once: int) -> Iterator[Reading]:
        examples = torch.arange(len(batch), device=batch.ids.device)
        for first in range(1, self.count + 1, max(1, at_once)):
            tables = torch.arange(first, min(first + max(1, at_once), self.count + 1), device=batch.ids.device)
            rows, numbers = examples.repeat(len(tables)), tables.repeat_interleave(len(batch))
            yield Reading(self.network, self._moved(batch[rows], numbers), len(tables))

    def _moved(self, batch: Batch, tables: Int[Tensor, " B"]) -> Batch:
        """The texts with ids shifted to the table of their perturbation."""
        subwords = batch.ids[..., None] if batch.subwords is None else batch.subwords
        shifts = tables[:, None] * self.rows
        query = None if batch.query is None else replace(batch.query, ids=batch.query.ids + shifts)
        return replace(batch, subwords=torch.where(subwords >= 0, subwords + shifts[..., None], subwords), query=query)


def _moves(model: TextModel, share: float, seed: int) -> Float[Tensor, "V D"]:
    """The displacement of each row of the table."""
    table = _table(model)
    words = table[model.ordinary :]
    spread = (words - words.mean(0)).square().sum(-1).mean().sqrt()
    directions = torch.randn(table.shape, generator=torch.Generator().manual_seed(seed))
    directions = (directions / directions.norm(dim=-1, keepdim=True)).to(table)
    directions[_special(model)] = 0
    moves: Tensor = share * spread * directions
    return moves


def _special(model: TextModel) -> list[int]:
    """The rows of the table that are special tokens."""
    if not isinstance(model, Body):
        return [0]
    known = model.traits
    around = (each for each in (known.single, known.pair) if each is not None)
    return [known.pad, known.mask, *(subword for each in around for subword in each.subwords)]


def _table(model: TextModel) -> Float[Tensor, "V D"]:
    table = model.embedding.weight
    assert isinstance(table, Tensor)
    return table


def _beside_table(model: Model) -> Model:
    """A copy that shares all weights except the embedding table."""
    table = model.embedding.weight
    return deepcopy(model, {id(weight): weight for weight in model.parameters() if weight is not table})
