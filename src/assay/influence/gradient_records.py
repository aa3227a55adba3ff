"""Per-example gradients of one parameter in factored form: outer products, table rows, or dense."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Outer:
    """Of a linear map: sums over positions of outer products of output gradients and inputs."""

    inputs: Float[Tensor, "B T I"]
    gradients: Float[Tensor, "B T O"]
    shape: torch.Size  # of the parameter
    transposed: bool = False  # the parameter has its inputs in rows

    def of(self, index: int) -> Outer:
        """The record of one example."""
        own = slice(index, index + 1)
        return replace(self, inputs=self.inputs[own], gradients=self.gradients[own])

    def dense(self) -> Float[Tensor, "B P"]:
        left, right = (self.inputs, self.gradients) if self.transposed else (self.gradients, self.inputs)
        return (left.mT @ right).flatten(1)


@dataclass(frozen=True)
class Rows:
    """Of an embedding table: the gradients of the rows that were looked up."""

    ids: Int[Tensor, "B K"]
    gradients: Float[Tensor, "B K D"]
    shape: torch.Size

    def of(self, index: int) -> Rows:
        """The record of one example."""
        own = slice(index, index + 1)
        return replace(self, ids=self.ids[own], gradients=self.gradients[own])

    def dense(self) -> Float[Tensor, "B P"]:
        batch, size = len(self.ids), self.shape[1]
        whole = self.gradients.new_zeros(batch, *self.shape)
        return whole.scatter_add_(1, self.ids[..., None].expand(-1, -1, size), self.gradients).flatten(1)


@dataclass(frozen=True)
class Whole:
    """Of any other parameter: the dense gradient."""

    gradients: Float[Tensor, "B ..."]

    def of(self, index: int) -> Whole:
        """The record of one example."""
        return Whole(self.gradients[index : index + 1])

    def dense(self) -> Float[Tensor, "B P"]:
        return self.gradients.flatten(1)


Record = Outer | Rows | Whole
