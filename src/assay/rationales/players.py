"""Modules that are trained in a game: readers, and the head that scores units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.models.hf_models import Attentive
from assay.models.network import WordNetwork
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel
from assay.rationales.units import Grouping
from assay.types import Batch

Reader = WordNetwork | Attentive
"""A network with a state for each word, one attention that pools them, and a linear decoder."""


def redrawn(reader: Reader, seed: int) -> Reader:
    """The same reader with random weights."""
    if isinstance(reader, WordNetwork):
        fresh: TextModel = drawn(reader.architecture, len(reader.vectors), reader.classes, seed)
    else:
        fresh = reader.redrawn(seed)
    assert isinstance(fresh, WordNetwork | Attentive)
    return fresh


class Head(nn.Module):
    """Linear head of the selector: `masks` times `parameters` numbers a unit, optionally conditioned on a class."""

    def __init__(self, size: int, masks: int, parameters: int, conditions: int = 0) -> None:
        super().__init__()
        self.shape = masks, parameters
        self.norm = nn.LayerNorm(size)  # without it, a head soon says yes or no to all
        self.score = nn.Linear(size, masks * parameters)
        self.condition = nn.Embedding(conditions, size) if conditions else None

    def forward(
        self, states: Float[Tensor, "B T M"], grouping: Grouping, condition: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B K U P"]:
        normed = self.norm(states)
        if self.condition is not None and condition is not None:
            normed = normed * (1 + self.condition(condition)[:, None])
        scores: Tensor = self.score(grouping.pooled(normed))
        return scores.reshape(*scores.shape[:2], *self.shape).transpose(1, 2)


class Players(nn.Module):
    """Readers by name, all over the embeddings of the "predictor", and the selector's head.

    The selector reads with the reader of that name, or with the predictor's where there is none (Liu et al., 2022).
    `extras` are other things that learn.
    """

    baseline: Tensor

    def __init__(self, readers: Mapping[str, Reader], head: Head, extras: Mapping[str, nn.Module] | None = None):
        super().__init__()
        self.readers = nn.ModuleDict(dict(readers))
        self.head = head
        self.extras = nn.ModuleDict(dict(extras or {}))
        self.register_buffer("baseline", torch.zeros(2))  # sum and weight of the costs so far, for the score function

    @property
    def predictor(self) -> Reader:
        return self.reader("predictor")

    def reader(self, name: str) -> Reader:
        found = self.readers[name]
        assert isinstance(found, WordNetwork | Attentive)
        return found

    def theta(
        self, x: Float[Tensor, "B T D"], batch: Batch, grouping: Grouping, condition: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B K U P"]:
        """Scores of the units, from the embeddings."""
        reader = self.reader("selector" if "selector" in self.readers else "predictor")
        scores: Tensor = self.head(reader.states(x, batch), grouping, condition)
        return scores

    def of(self, player: str) -> Iterator[nn.Parameter]:
        """The parameters that are updated when that player moves; embeddings belong to the predictor.

        Where they do not, the "embedding" is a player by itself, and the "body" is the predictor without it.
        """
        table = {id(each) for each in self.predictor.embedding.parameters()}
        if player in ("embedding", "body"):
            everything = (each for each in self.predictor.parameters() if each.requires_grad)
            yield from (each for each in everything if (id(each) in table) == (player == "embedding"))
        parts: list[nn.Module] = [self.head] if player == "selector" else []
        parts += [rooms[player] for rooms in (self.readers, self.extras) if player in rooms]
        for part in parts:
            yield from (each for each in part.parameters() if each.requires_grad)
