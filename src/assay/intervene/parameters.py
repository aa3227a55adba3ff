"""Copies of a model whose parameters are others: drawn anew, or moved a little."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from assay.errors import unknown
from assay.models.huggingface.body import Body
from assay.models.network import Network
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel

Model = TypeVar("Model", bound=TextModel)


@runtime_checkable
class Redrawn(Protocol):
    """A model that knows how to begin anew."""

    def redrawn(self, seed: int) -> TextModel:
        """A model of the same kind in which every weight is random."""


def randomised(model: Model, parts: Sequence[str], seed: int) -> Model:
    """A copy in which the named parts are as in a network before any training; Adebayo et al. (2018).

    They go down the model's cascade, from its output.

    With the same seed a part is drawn alike whatever other parts are. Word vectors that a model started from are drawn
    too: what they tell of words is learnt as well.
    """
    for part in parts:
        if part not in model.cascade:
            raise unknown("part of a model", part, model.cascade)
    return _mixed(model, _fresh(model, seed), parts)


def cascade(model: Model, seed: int) -> dict[str, Model]:
    """The model with more and more parts drawn anew, from its output down, by the name of the lowest one."""
    fresh = _fresh(model, seed)
    return {part: _mixed(model, fresh, model.cascade[: depth + 1]) for depth, part in enumerate(model.cascade)}


def _fresh(model: TextModel, seed: int) -> TextModel:
    """A model of the same kind in which every weight is random."""
    if isinstance(model, Network):
        return drawn(model.architecture, len(model.vectors), model.classes, seed)
    assert isinstance(model, Redrawn)
    return model.redrawn(seed)


def _mixed(model: Model, fresh: TextModel, parts: Sequence[str]) -> Model:
    """The model with some parts of another; what a transformer has beside its parts goes with the lowest of them."""
    if isinstance(model, Body):
        drawn = {id(weight) for part in parts for weight in model.part(part).parameters()}
        named = {id(weight) for part in model.cascade for weight in model.part(part).parameters()}
        rest = model.cascade[-1] in parts
        return _sharing(model, fresh, lambda weight: id(weight) in drawn or (rest and id(weight) not in named))
    other = _copied(model)
    for part in parts:
        other.part(part).load_state_dict(fresh.part(part).state_dict())
    return other


def _sharing(model: Model, other: TextModel, taken: Callable[[Tensor], bool]) -> Model:
    """A copy of the model with some weights of the other one.

    It holds the very weights of both, not copies: these models are large, and nothing writes into them.
    """
    theirs = dict(other.named_parameters())
    weights = {id(mine): theirs[name] if taken(mine) else mine for name, mine in model.named_parameters()}
    return copy.deepcopy(model, weights)


@torch.no_grad()
def nudged(model: Model, share: float, seed: int) -> Model:
    """A copy in which each embedding is moved in a random direction, by a share of the distance usual between them.

    That distance is the root mean square of how far words lie from their mean; the padding's embedding stays. All that
    reads the table sees the same change, baselines included, so any explainer can be put to it. A transformer's other
    weights are the very ones of the model.
    """
    other = _beside_table(model) if isinstance(model, Body) else _copied(model)
    table, padding = other.embedding.weight, model.traits.pad if isinstance(model, Body) else 0
    assert isinstance(table, Tensor)
    words = table[model.ordinary :]
    spread = (words - words.mean(0)).square().sum(-1).mean().sqrt()
    directions = torch.randn(table.shape, generator=torch.Generator().manual_seed(seed))
    directions = (directions / directions.norm(dim=-1, keepdim=True)).to(table)
    directions[padding] = 0
    table += share * spread * directions
    return other


def _beside_table(model: Model) -> Model:
    """A copy that shares all weights but the table of embeddings: these models are large."""
    table = model.embedding.weight
    return copy.deepcopy(model, {id(weight): weight for weight in model.parameters() if weight is not table})


def _copied(model: Model) -> Model:
    """A copy whose recurrent weights lie in one piece, as a GPU wants them."""
    other = copy.deepcopy(model)
    for part in other.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return other
