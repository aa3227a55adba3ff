"""Copies of a model whose parameters are others: drawn anew, or moved a little."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from assay.errors import unknown
from assay.models.huggingface.body import Body
from assay.models.network import Network
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel

Model = TypeVar("Model", bound=TextModel)


def randomised(model: Model, parts: Sequence[str], seed: int) -> Model:
    """A copy in which the named parts are as in a network before any training; Adebayo et al. (2018).

    They go down the model's cascade, from its output.

    With the same seed a part is drawn alike whatever other parts are. Word vectors that a model started from are drawn
    too: what they tell of words is learnt as well.
    """
    other = _copied(model)
    fresh = _fresh(model, seed)
    for part in parts:
        if part not in model.cascade:
            raise unknown("part of a model", part, model.cascade)
        other.part(part).load_state_dict(fresh.part(part).state_dict())
    return other


def _fresh(model: TextModel, seed: int) -> TextModel:
    """A model of the same kind in which every weight is random."""
    if isinstance(model, Network):
        return drawn(model.architecture, len(model.vectors), model.classes, seed)
    assert isinstance(model, Body)
    return model.redrawn(seed)


@torch.no_grad()
def nudged(model: Model, share: float, seed: int) -> Model:
    """A copy in which each embedding is moved in a random direction, by a share of the distance usual between them.

    That distance is the root mean square of how far words lie from their mean; the padding's embedding stays. All that
    reads the table sees the same change, baselines included, so any explainer can be put to it.
    """
    other = _copied(model)
    table = other.embedding.weight
    assert isinstance(table, Tensor)
    words = table[model.ordinary :]
    spread = (words - words.mean(0)).square().sum(-1).mean().sqrt()
    directions = torch.randn(table.shape, generator=torch.Generator().manual_seed(seed))
    directions = (directions / directions.norm(dim=-1, keepdim=True)).to(table)
    table[1:] += share * spread * directions[1:]
    return other


def _copied(model: Model) -> Model:
    """A copy whose recurrent weights lie in one piece, as a GPU wants them."""
    other = copy.deepcopy(model)
    for part in other.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return other
