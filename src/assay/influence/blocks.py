"""Blocks of a block-diagonal curvature, each diagonal in a basis of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.influence.gradient_records import Rows
from assay.influence.gradients import Gradients
from assay.influence.products import Vectors

WHOLE = 1_024  # numbers of a parameter up to which its block is a whole matrix


class Block(ABC):
    """The curvature over some parameters, estimated in order: gather, decompose, correct, damp; then solved."""

    names: tuple[str, ...]
    values: Tensor  # of the curvature in its basis
    inverse: Tensor

    def __init__(self, decay: float) -> None:
        self.decay = decay

    def damp(self, damping: float) -> None:
        """Adds the strength of L2 and the damping."""
        self.inverse = 1 / (self.values + self.decay + damping)

    @abstractmethod
    def gather(self, gradients: Gradients) -> None:
        """Accumulates second moments of a batch, which the basis is made from."""

    @abstractmethod
    def decompose(self) -> None:
        """Computes the eigenbasis."""

    @abstractmethod
    def correct(self, gradients: Gradients, total: int) -> None:
        """Accumulates the values in the basis (the eigenvalue correction) from a batch; `total` examples in all."""

    @abstractmethod
    def squares(self, gradients: Gradients, scale: Tensor) -> Float[Tensor, " B"]:
        """The sum of the squares of each gradient in the basis, each times its scale."""

    @abstractmethod
    def solved(self, vectors: Vectors) -> dict[str, Tensor]:
        """The inverse of the curvature times the vectors."""


class Vector(Block):
    """A parameter without further structure: the full matrix where it is small, else its diagonal."""

    def __init__(self, name: str, like: Tensor, decay: float) -> None:
        super().__init__(decay)
        self.names, size = (name,), like.numel()
        self.basis = like.new_zeros(size, size, dtype=torch.float64) if size <= WHOLE else None
        self.values = like.new_zeros(size, dtype=torch.float64)

    def gather(self, gradients: Gradients) -> None:
        if self.basis is not None:
            flat = wide(gradients.dense(self.names[0]))
            self.basis += (flat.T @ flat).double()

    def decompose(self) -> None:
        self.basis = None if self.basis is None else basis(self.basis)

    def correct(self, gradients: Gradients, total: int) -> None:
        self.values += self._turned(gradients.dense(self.names[0])).double().square().sum(0) / total

    def squares(self, gradients: Gradients, scale: Tensor) -> Float[Tensor, " B"]:
        return (self._turned(gradients.dense(self.names[0])).double().square() * scale).sum(1)

    def solved(self, vectors: Vectors) -> dict[str, Tensor]:
        vector = vectors[self.names[0]]
        found = self._turned(vector.flatten(1))
        found = found * self.inverse.to(found)
        found = found if self.basis is None else found @ self.basis.T.to(found)
        return {self.names[0]: found.reshape(vector.shape)}

    def _turned(self, flat: Float[Tensor, "B P"]) -> Float[Tensor, "B P"]:
        flat = wide(flat)
        return flat if self.basis is None else flat @ self.basis.to(flat)


class Table(Block):
    """An embedding table: each input selects one row, so second moments of the inputs are diagonal."""

    def __init__(self, name: str, like: Float[Tensor, "V D"], decay: float) -> None:
        super().__init__(decay)
        self.names = (name,)
        self.basis = like.new_zeros(like.shape[1], like.shape[1], dtype=torch.float64)
        self.values = like.new_zeros(like.shape, dtype=torch.float64)

    def gather(self, gradients: Gradients) -> None:
        row_gradients = wide(self._rows(gradients).gradients).flatten(0, 1)
        self.basis += (row_gradients.T @ row_gradients).double()

    def decompose(self) -> None:
        self.basis = basis(self.basis)

    def correct(self, gradients: Gradients, total: int) -> None:
        _, ids, turned = self._turned(gradients)
        self.values.index_add_(0, ids, turned.double().square() / total)

    def squares(self, gradients: Gradients, scale: Tensor) -> Float[Tensor, " B"]:
        examples, ids, turned = self._turned(gradients)
        found = self.values.new_zeros(gradients.size)
        return found.index_add_(0, examples, (turned.double().square() * scale[ids]).sum(1))

    def solved(self, vectors: Vectors) -> dict[str, Tensor]:
        vector = wide(vectors[self.names[0]])
        turn = self.basis.to(vector)
        return {self.names[0]: (vector @ turn * self.inverse.to(vector)) @ turn.T}

    def _rows(self, gradients: Gradients) -> Rows:
        name = self.names[0]
        found = gradients.rows(name)
        if found is None:  # a batch that says nothing of the table, or uses it otherwise
            every = torch.arange(len(self.values), device=self.values.device).expand(gradients.size, -1)
            found = Rows(every, gradients.dense(name).view(gradients.size, *self.values.shape), self.values.shape)
        return found

    def _turned(self, gradients: Gradients) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"], Float[Tensor, "K D"]]:
        """Example and row of each lookup, without duplicates, and its gradient in the basis."""
        rows, total = self._rows(gradients), len(self.values)
        numbers = torch.arange(len(rows.ids), device=rows.ids.device)[:, None] * total + rows.ids
        once, indices = numbers.flatten().unique(return_inverse=True)  # type: ignore[no-untyped-call]
        row_gradients = wide(rows.gradients).flatten(0, 1)
        summed = row_gradients.new_zeros(len(once), row_gradients.shape[1]).index_add_(0, indices, row_gradients)
        return once // total, once % total, summed @ self.basis.to(summed)


def wide(tensor: Tensor) -> Tensor:
    """The tensor in single precision at least."""
    return tensor if tensor.dtype.itemsize >= 4 else tensor.float()


def basis(matrix: Float[Tensor, "S S"]) -> Float[Tensor, "S S"]:
    """The eigenvectors, in columns."""
    size = matrix.diagonal().mean().clamp(min=1e-300)
    vectors: Tensor = torch.linalg.eigh((matrix + matrix.T) / (2 * size)).eigenvectors
    return vectors
