"""The attention of every layer of a stack: observed, aggregated to tokens, and replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.intervene.attention import Permute, Replace
from assay.types import Batch, Edit, StackedModel, at_least_float32, of_tokens

Layers = Sequence[Float[Tensor, "B H S S"]]


@dataclass(frozen=True)
class Stack:
    """The attention of a model on a batch, layer by layer, and its output.

    A query position counts where the output can depend on what it attends to: all real ones do, and of the last
    layer those that are read.
    """

    weights: Layers
    allowed: Sequence[Bool[Tensor, "B S S"]]
    counted: Sequence[Bool[Tensor, "B S"]]
    reading: Float[Tensor, "B S"]
    token_index: Int[Tensor, "B S"]
    probabilities: Float[Tensor, "B C"]

    @classmethod
    @torch.no_grad()
    def of(cls, model: StackedModel, batch: Batch) -> Stack:
        x, seen = model.embed(batch), Seen()
        output = model(x, batch, seen)
        reading = model.layered(x, batch).attention[-1]
        real = [layer.any(1) for layer in seen.allowed]  # each real position is attended to, be it by itself alone
        counted = [*real[:-1], real[-1] & (reading > 0)]
        return cls(output.attention, seen.allowed, counted, reading, model.token_index(batch), output.probabilities)

    @property
    def rows(self) -> Int[Tensor, " B"]:
        """The number of attention distributions of each text: layers × heads × counted positions."""
        return torch.stack([which.sum(-1) for which in self.counted]).sum(0) * self.weights[0].shape[1]

    def mean(self, values: Sequence[Float[Tensor, "B H S"]]) -> Float[Tensor, " B"]:
        """The mean over layers, heads and counted positions."""
        kept = [layer * which[:, None] for layer, which in zip(values, self.counted, strict=True)]
        return torch.stack([layer.sum((1, 2)) for layer in kept]).sum(0) / self.rows

    @property
    def peak(self) -> Float[Tensor, " B"]:
        """The largest weight, averaged over layers, heads and positions."""
        return self.mean([at_least_float32(layer).amax(-1) for layer in self.weights])

    def read(self, weights: Layers, tokens: int) -> Float[Tensor, "B T"]:
        """The weight of each token at the readout: the mean over heads of the last layer, special tokens left out."""
        reading = at_least_float32(self.reading)
        row = (reading[:, None] @ weights[-1].mean(1, dtype=reading.dtype)).squeeze(1)
        return of_tokens(row, self.token_index, tokens)


@dataclass
class Seen:
    """An edit that changes nothing, and records which positions each layer may attend to."""

    allowed: list[Bool[Tensor, "B S S"]] = field(default_factory=list)

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        positions = weights.shape[-1]
        together = weights.ndim == 4  # else each attending position is a row of its own
        square = mask[:, None].expand(-1, positions, -1) if together else mask.reshape(-1, positions, positions)
        self.allowed.append(square)
        return weights


@dataclass(frozen=True, eq=False)
class Given:
    """Fixed weights for every layer."""

    weights: Layers

    def at(self, layer: int) -> Edit:
        return Replace(self.weights[layer])

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return self.at(0)(weights, mask)


@dataclass(frozen=True)
class Shuffled:
    """The weights of every query position randomly permuted over its keys, independently per layer."""

    seed: int = 0

    def at(self, layer: int) -> Edit:
        return Permute(1000 * self.seed + layer, local=True)

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return self.at(0)(weights, mask)
