"""Copies of a model with re-initialised parameters or slightly perturbed embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.errors import unknown
from assay.models.hf_body import Body
from assay.models.network import Network
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel
from assay.types import Batch, TokenModel

# Parameter randomisation: copies of a model with some parts re-initialised.


Model = TypeVar("Model", bound=TextModel)


@runtime_checkable
class Redrawn(Protocol):
    """A model that can re-initialise itself."""

    def redrawn(self, seed: int) -> TextModel:
        """A model of the same kind with all weights random."""


def randomised(model: Model, parts: Sequence[str], seed: int) -> Model:
    """A copy with the named parts re-initialised (Adebayo et al., 2018).

    They go down the model's cascade, from its output.

    With the same seed a part is drawn alike whatever other parts are. Word vectors that a model started from are drawn
    too: what they tell of words is learnt as well.
    """
    for part in parts:
        if part not in model.cascade:
            raise unknown("part of a model", part, model.cascade)
    return _mixed(model, _fresh(model, seed), parts)


def cascade(model: Model, seed: int) -> dict[str, Model]:
    """Cascading randomisation: the model with more and more parts re-initialised, from the output down."""
    fresh = _fresh(model, seed)
    return {part: _mixed(model, fresh, model.cascade[: depth + 1]) for depth, part in enumerate(model.cascade)}


def _fresh(model: TextModel, seed: int) -> TextModel:
    """A model of the same kind with all weights random."""
    if isinstance(model, Network):
        return drawn(model.architecture, len(model.vectors), model.classes, seed)
    assert isinstance(model, Redrawn)
    return model.redrawn(seed)


def _mixed(model: Model, fresh: TextModel, parts: Sequence[str]) -> Model:
    """The model with some parts of another; modules outside all parts go with the lowest of them."""
    if isinstance(model, Body):
        drawn = {id(weight) for part in parts for weight in model.part(part).parameters()}
        named = {id(weight) for part in model.cascade for weight in model.part(part).parameters()}
        rest = model.cascade[-1] in parts
        return _sharing(model, fresh, lambda weight: id(weight) in drawn or (rest and id(weight) not in named))
    other = copied(model)
    for part in parts:
        other.part(part).load_state_dict(fresh.part(part).state_dict())
    return other


def _sharing(model: Model, other: TextModel, taken: Callable[[Tensor], bool]) -> Model:
    """A copy of the model with some weights of the other one.

    It holds the very weights of both, not copies: these models are large, and nothing writes into them.
    """
    theirs = dict(other.named_parameters())
    weights = {id(mine): theirs[name] if taken(mine) else mine for name, mine in model.named_parameters()}
    return deepcopy(model, weights)


def copied(model: Model) -> Model:
    """A deep copy whose recurrent weights are contiguous, as cuDNN wants them."""
    other = deepcopy(model)
    for part in other.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return other


# Copies of a model with slightly perturbed embeddings; a transformer's perturbations share one model.


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
