"""Kronecker-factored curvature of a linear map, a convolution or a recurrence, with corrected eigenvalues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.blocks import Block, basis, wide
from assay.influence.gradient_records import Outer
from assay.influence.gradients import Gradients
from assay.influence.products import Vectors

AT_ONCE = 2**26  # numbers that the gradients of a layer may take at once


class Layer(Block):
    """A weight matrix, with the bias as one more input column."""

    def __init__(self, name: str, bias: str | None, shape: torch.Size, transposed: bool, like: Tensor, decay: float):
        super().__init__(decay)
        self.names = (name,) if bias is None else (name, bias)
        self.shape, self.transposed = shape, transposed
        rows, columns = (shape[1], shape[0]) if transposed else (shape[0], shape[1:].numel())
        self.left = like.new_zeros(rows, rows, dtype=torch.float64)
        self.right = like.new_zeros(columns + len(self.names) - 1, columns + len(self.names) - 1, dtype=torch.float64)

    def gather(self, gradients: Gradients) -> None:
        found = self._outer(gradients)
        if found is None:  # the basis of what is known as a whole: that of its own rows and columns
            whole = self._matrices(gradients)
            self.left += torch.einsum("boi,bpi->op", whole, whole).double()
            self.right += torch.einsum("boi,boj->ij", whole, whole).double()
            return
        output_gradients, inputs = (each.flatten(0, 1) for each in found)
        there = output_gradients.abs().amax(-1) > 0  # nothing comes back to padding
        self.left += (output_gradients[there].T @ output_gradients[there]).double()
        self.right += (inputs[there].T @ inputs[there]).double()

    def decompose(self) -> None:
        self.left, self.right = basis(self.left), basis(self.right)
        self.values = self.left.new_zeros(len(self.left), len(self.right))

    def correct(self, gradients: Gradients, total: int) -> None:
        for turned in self._turned(gradients):
            self.values += turned.double().square().sum(0) / total

    def squares(self, gradients: Gradients, scale: Tensor) -> Float[Tensor, " B"]:
        return torch.cat([(each.double().square() * scale).sum((1, 2)) for each in self._turned(gradients)])

    def solved(self, vectors: Vectors) -> dict[str, Tensor]:
        whole = self._joined([vectors[name] for name in self.names])
        left, right = self.left.to(whole), self.right.to(whole)
        whole = left @ ((left.T @ whole @ right) * self.inverse.to(whole)) @ right.T
        bias = [whole[..., -1]] if len(self.names) == 2 else []
        matrix = whole[..., : whole.shape[-1] - len(bias)]
        matrix = (matrix.mT if self.transposed else matrix).reshape(len(whole), *self.shape)
        return dict(zip(self.names, [matrix, *bias], strict=True))

    def _joined(self, parts: Sequence[Tensor]) -> Float[Tensor, "B O I"]:
        matrix = parts[0].reshape(len(parts[0]), self.shape[0], -1)
        matrix = wide(matrix.mT if self.transposed else matrix)
        return torch.cat([matrix, *(part[..., None].to(matrix) for part in parts[1:])], dim=-1)

    def _matrices(self, gradients: Gradients) -> Float[Tensor, "B O I"]:
        return self._joined([gradients.dense(name) for name in self.names])

    def _outer(self, gradients: Gradients) -> tuple[Float[Tensor, "B T O"], Float[Tensor, "B T I"]] | None:
        """Gradients of the outputs and inputs, where all records have both."""
        records = [each for each in gradients.records[self.names[0]] if isinstance(each, Outer)]
        if len(records) < len(gradients.records[self.names[0]]):
            return None
        output_gradients, inputs = (
            wide(torch.cat([getattr(each, part) for each in records], 1)) for part in ("gradients", "inputs")
        )
        ones = [inputs.new_ones(*inputs.shape[:2], 1)] if len(self.names) == 2 else []
        return output_gradients, torch.cat([inputs, *ones], dim=-1)

    def _turned(self, gradients: Gradients) -> Iterator[Float[Tensor, "b O I"]]:
        """The gradients in the eigenbasis, some examples at a time."""
        found = self._outer(gradients)
        step = max(1, AT_ONCE // self.values.numel())
        if found is None:
            whole = self._matrices(gradients)
            left, right = self.left.to(whole), self.right.to(whole)
            for at in range(0, len(whole), step):
                yield left.T @ whole[at : at + step] @ right
            return
        output_gradients, inputs = found[0] @ self.left.to(found[0]), found[1] @ self.right.to(found[1])
        for at in range(0, len(output_gradients), step):
            yield output_gradients[at : at + step].mT @ inputs[at : at + step]
