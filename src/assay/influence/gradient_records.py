"""The gradient of one parameter for each example, in the form in which it arises."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Outer:
    """Of a linear map: sums of outer products of what came out and what went in."""

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
    """Of a table: the gradients of the rows that were looked up."""

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
    """Of anything else: the gradient itself."""

    gradients: Float[Tensor, "B ..."]

    def of(self, index: int) -> Whole:
        """The record of one example."""
        return Whole(self.gradients[index : index + 1])

    def dense(self) -> Float[Tensor, "B P"]:
        return self.gradients.flatten(1)


Record = Outer | Rows | Whole
