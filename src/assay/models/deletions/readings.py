"""How attention reads a hidden state: its score, and the value of which the weighted mean is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.models.deletions.means import Kept, Means, Pooled
from assay.models.encoders import Additive, Dot, Encoder
from assay.models.network import BARRED, Classifier, Network, Paired
from assay.models.networks import Hierarchical
from assay.models.projections import Projection, softmax
from assay.types import Batch

Partly = Callable[[Float[Tensor, "R N P"], Float[Tensor, "R 1 K"]], Float[Tensor, "R N K"]]
"""What is read of states of which one part varies; what is read of the rest of them comes second."""


@dataclass(frozen=True)
class Affine:
    """The affine map W h + c, shared by all rows or with weights and constants per row."""

    weight: Float[Tensor, "*W K M"]
    constant: Float[Tensor, "*C K"]

    def __call__(self, states: Float[Tensor, "R N M"]) -> Float[Tensor, "R N K"]:
        return _added(self.weight.mT, states, self.constant[..., None, :])

    def partly(self, own: slice) -> Partly:
        return partial(_added, self.weight[..., own].mT)


@dataclass(frozen=True)
class Itself:
    """The identity map."""

    def __call__(self, states: Float[Tensor, "R N M"]) -> Float[Tensor, "R N M"]:
        return states

    def partly(self, own: slice) -> Partly:
        return partial(_placed, own)


def _added(weight: Float[Tensor, "*W P K"], part: Float[Tensor, "R N P"], rest: Tensor) -> Float[Tensor, "R N K"]:
    return (part @ weight).add_(rest)


def _placed(own: slice, part: Float[Tensor, "R N P"], rest: Float[Tensor, "R 1 M"]) -> Float[Tensor, "R N M"]:
    whole = rest.repeat(1, part.shape[1], 1)
    whole[..., own] += part
    return whole


@dataclass(frozen=True)
class Reading:
    """An encoder with its attention: `aligned` projects hidden states, `finish` turns projections into scores."""

    network: Network
    encoder: Encoder
    aligned: Affine
    finish: Callable[[Tensor], Tensor]
    value: Affine | Itself

    @property
    def project(self) -> Projection:
        return self.network.project

    def states(self, x: Float[Tensor, "R S D"], mask: Bool[Tensor, "R S"]) -> Float[Tensor, "R S M"]:
        return self.network.beside(self.encoder(x, mask), x, mask)

    def score(self, states: Float[Tensor, "R N M"]) -> Float[Tensor, "R N"]:
        return self.finish(self.aligned(states))

    def mean(self, states: Float[Tensor, "R N M"], seen: Bool[Tensor, "R N"]) -> Float[Tensor, "R P"]:
        """The attention-weighted mean of the values of unmasked items."""
        return (self.project(self.score(states), seen)[:, None] @ self.value(states)).squeeze(1)

    def nothing_yet(self, lanes: int, like: Float[Tensor, "R 1 P"]) -> Pooled:
        """An empty accumulator for so many lanes per row."""
        if self.project is softmax:
            return Means.of_nothing(len(like), lanes, like)
        return Kept(self.project, lanes)


@dataclass(frozen=True)
class Text:
    """Rows of tokens: those in the mask are encoded, those in `seen` are attended to."""

    x: Float[Tensor, "R S D"]
    mask: Bool[Tensor, "R S"]
    seen: Bool[Tensor, "R S"]
    states: Float[Tensor, "R S M"]


def of_words(model: Hierarchical) -> Reading:
    """The reading of words within sentences: the value is the hidden state itself."""
    alignment = model.word_alignment
    return Reading(model, model.word_encoder, _aligned(alignment), alignment.finish, Itself())


def of_text(model: Classifier | Paired, batch: Batch) -> Reading:
    """The reading of the words of a text: the values are logits."""
    if isinstance(model, Paired):
        return _of_pair(model, batch)
    value = Affine(model.decoder.weight, model.decoder.bias)
    return Reading(model, model.encoder, _aligned(model.alignment), model.alignment.finish, value)


def _aligned(alignment: Additive | Dot) -> Affine:
    weight, bias = alignment.project.weight, alignment.project.bias
    return Affine(weight, weight.new_zeros(len(weight)) if bias is None else bias)


def _of_pair(model: Paired, batch: Batch) -> Reading:
    """The reading of a pair: the query and its product with the state become weights and constants per row."""
    query = model.query_encoding(batch)
    alone, beside, times = model.decoder.weight.chunk(3, dim=1)
    constant = query @ beside.T + model.decoder.bias
    if batch.candidates is not None:
        constant = constant + (~batch.candidates).to(constant.dtype) * BARRED
    value = Affine(alone + times * query[:, None], constant)
    if isinstance(model.alignment, Additive):
        own, other = model.alignment.project.weight.chunk(2, dim=1)
        aligned = Affine(own, query @ other.T + model.alignment.project.bias)
        return Reading(model, model.encoder, aligned, model.alignment.finish, value)
    aligned = Affine(query[:, None] / math.sqrt(query.shape[1]), torch.zeros_like(query[:, :1]))
    return Reading(model, model.encoder, aligned, _alone, value)


def _alone(scores: Float[Tensor, "R N 1"]) -> Float[Tensor, "R N"]:
    return scores.squeeze(-1)
