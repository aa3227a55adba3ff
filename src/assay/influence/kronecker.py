"""EK-FAC: influence functions with a Kronecker-factored curvature in each layer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import unknown
from assay.influence.curvature import output_roots
from assay.influence.damping import chosen_damping
from assay.influence.gradient_records import Outer, TableGradients
from assay.influence.gradients import Gradients
from assay.influence.setting import Influence, PerExample, Setting, Unconditional
from assay.influence.similarity import Vectors, dots, over_train
from assay.influence.stories import CHANGE
from assay.influence.targets import logit_gradients
from assay.stories import with_story
from assay.types import at_least_float32

# Blocks of a block-diagonal curvature, each diagonal in a basis of its own.


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
            flat = at_least_float32(gradients.dense(self.names[0]))
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
        flat = at_least_float32(flat)
        return flat if self.basis is None else flat @ self.basis.to(flat)


class Table(Block):
    """An embedding table: each input selects one row, so second moments of the inputs are diagonal."""

    def __init__(self, name: str, like: Float[Tensor, "V D"], decay: float) -> None:
        super().__init__(decay)
        self.names = (name,)
        self.basis = like.new_zeros(like.shape[1], like.shape[1], dtype=torch.float64)
        self.values = like.new_zeros(like.shape, dtype=torch.float64)

    def gather(self, gradients: Gradients) -> None:
        row_gradients = at_least_float32(gradients.lookups(self.names[0]).gradients).flatten(0, 1)
        self.basis += (row_gradients.T @ row_gradients).double()

    def decompose(self) -> None:
        self.basis = basis(self.basis)

    def correct(self, gradients: Gradients, total: int) -> None:
        found = self._turned(gradients)
        self.values.index_add_(0, found.tokens, found.gradients.double().square() / total)

    def squares(self, gradients: Gradients, scale: Tensor) -> Float[Tensor, " B"]:
        found = self._turned(gradients)
        each = (found.gradients.double().square() * scale[found.tokens]).sum(1)
        return self.values.new_zeros(gradients.size).index_add_(0, found.owners, each)

    def solved(self, vectors: Vectors) -> dict[str, Tensor]:
        vector = at_least_float32(vectors[self.names[0]])
        turn = self.basis.to(vector)
        return {self.names[0]: (vector @ turn * self.inverse.to(vector)) @ turn.T}

    def _turned(self, gradients: Gradients) -> TableGradients:
        """The lookups of each example without duplicates, with their gradients in the basis."""
        rows = gradients.lookups(self.names[0])
        rows = replace(rows, gradients=at_least_float32(rows.gradients))
        owners = torch.arange(gradients.size, device=rows.ids.device)
        found = TableGradients.of(rows, owners, gradients.size)
        return replace(found, gradients=found.gradients @ self.basis.to(found.gradients))


def basis(matrix: Float[Tensor, "S S"]) -> Float[Tensor, "S S"]:
    """The eigenvectors, in columns."""
    size = matrix.diagonal().mean().clamp(min=1e-300)
    vectors: Tensor = torch.linalg.eigh((matrix + matrix.T) / (2 * size)).eigenvectors
    return vectors


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
        matrix = at_least_float32(matrix.mT if self.transposed else matrix)
        return torch.cat([matrix, *(part[..., None].to(matrix) for part in parts[1:])], dim=-1)

    def _matrices(self, gradients: Gradients) -> Float[Tensor, "B O I"]:
        return self._joined([gradients.dense(name) for name in self.names])

    def _outer(self, gradients: Gradients) -> tuple[Float[Tensor, "B T O"], Float[Tensor, "B T I"]] | None:
        """Gradients of the outputs and inputs, where all records have both."""
        records = [each for each in gradients.records[self.names[0]] if isinstance(each, Outer)]
        if len(records) < len(gradients.records[self.names[0]]):
            return None
        output_gradients, inputs = (
            at_least_float32(torch.cat([getattr(each, part) for each in records], 1))
            for part in ("gradients", "inputs")
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


FISHERS = ("expected", "empirical")
LARGEST = 8_192  # side of a matrix that is decomposed


@with_story("EK-FAC", "George et al. (2018), Grosse et al. (2023), equations 16 to 22", like=CHANGE)
@dataclass(frozen=True)
class Kronecker(Unconditional):
    """EK-FAC over every parameter; George et al. (2018), Grosse et al. (2023), equations 16 to 22.

    The curvature of each layer is diagonal in the eigenvectors of the second moments of its inputs and of the gradients
    of its outputs; its values are the mean squares of the gradients in that basis. Tables of embeddings have one input
    a row, recurrent weights one position a step; a bias is the weight of an input that is always 1.
    """

    fisher: str = "expected"  # over what the model holds possible, or "empirical": over the labels
    damping: float | None = None  # none given: found from the training; a share of the mean value with `relative`
    relative: bool = False  # damping is a share of the mean value of each layer, as the 0.1 of Grosse et al. (2023)

    def __post_init__(self) -> None:
        if self.fisher not in FISHERS:
            raise unknown("Fisher information", self.fisher, FISHERS)

    def __call__(self, setting: Setting) -> Influence:
        damping, blocks = self.damped(setting)
        scores = dots(setting, lambda vectors: solved(blocks, vectors)) * setting.shares
        return Influence(scores, notes={"damping": damping, "relative": self.relative, "fisher": self.fisher})

    def own(self, setting: Setting) -> PerExample:
        """The predicted rise of each training example's own loss if it were removed."""
        _, blocks = self.damped(setting)

        def squares(gradients: Gradients) -> Tensor:
            return torch.stack([block.squares(gradients, block.inverse) for block in blocks]).sum(0)

        return np.asarray(over_train(setting, squares) * setting.shares)

    def inverse(self, setting: Setting, vectors: Vectors) -> dict[str, Tensor]:
        """The inverse of the curvature times the vectors."""
        _, blocks = self.damped(setting)
        return solved(blocks, vectors)

    def damped(self, setting: Setting) -> tuple[float, list[Block]]:
        """The damping, and the damped curvature of each layer."""
        damping = self.damping
        if damping is None:
            damping = 0.1 if self.relative else chosen_damping(setting)
        blocks = self.fitted(setting)
        for block in blocks:
            block.damp(damping * (float(block.values.mean()) if self.relative else 1.0))
        return damping, blocks

    def fitted(self, setting: Setting) -> list[Block]:
        """The curvature of each layer, without damping."""
        blocks: list[Block] = []
        with progress.bar() as shown:
            task = shown.add_task("curvature", total=2 * len(setting.train))
            for gradients, count in self._directions(setting):
                blocks = blocks or blocks_of(setting, gradients)
                for block in blocks:
                    block.gather(gradients)
                shown.advance(task, count)
            for block in blocks:
                block.decompose()
            for gradients, count in self._directions(setting):
                for block in blocks:
                    block.correct(gradients, len(setting.train))
                shown.advance(task, count)
        return blocks

    def _directions(self, setting: Setting) -> Iterator[tuple[Gradients, int]]:
        """The gradients of the rows in each direction of the Fisher information, and the number of rows done."""
        for indices, batch in setting.batches(setting.train):
            reading = setting.reader.read(batch)
            logits = reading.logits.detach()
            roots = torch.from_numpy(setting.weights[indices]).to(logits).sqrt()[:, None]
            if self.fisher == "empirical":
                yield reading.gradients(roots * logit_gradients("loss", logits, batch.labels)), len(indices)
                continue
            for number, direction in enumerate(output_roots(logits).unbind(-1)):
                yield reading.gradients(roots * direction), len(indices) * (number == 0)


def solved(blocks: list[Block], vectors: Vectors) -> dict[str, Any]:
    """The vectors times the inverse of the damped curvature."""
    found: dict[str, Any] = {}
    for block in blocks:
        found |= block.solved(vectors)
    return {name: found[name] for name in vectors}


def blocks_of(setting: Setting, gradients: Gradients) -> list[Block]:
    """A block for each parameter, or for a matrix and its bias together; none is left out."""
    found: list[Block] = []
    taken: set[str] = set()
    for name, values in setting.parameters.items():
        decay = setting.decay.get(name, 0.0)
        if name in taken or values.dim() < 2:
            continue
        if gradients.rows(name) is not None:
            found.append(Table(name, values, decay))
        elif max(len(values), values[0].numel()) <= LARGEST:
            transposed = any(isinstance(each, Outer) and each.transposed for each in gradients.records[name])
            bias = bias_of(setting, gradients, name)
            found.append(Layer(name, bias, values.shape, transposed, values, decay))
            taken |= {name} if bias is None else {name, bias}
        else:
            found.append(Vector(name, values, decay))
        taken.add(name)
    found += [
        Vector(name, values, setting.decay.get(name, 0.0))
        for name, values in setting.parameters.items()
        if name not in taken
    ]
    return found


def bias_of(setting: Setting, gradients: Gradients, name: str) -> str | None:
    """The bias of the same layer as the matrix, found by its name and its gradient."""
    before, _, last = name.rpartition(".")
    bias = f"{before}.{last.replace('weight', 'bias')}"
    records = [each for each in gradients.records[name] if isinstance(each, Outer)]
    if bias == name or bias not in setting.parameters or len(records) < len(gradients.records[name]):
        return None
    if setting.decay.get(bias, 0.0) != setting.decay.get(name, 0.0):
        return None
    sums = torch.stack([each.gradients.sum(1) for each in records]).sum(0)
    own = gradients.dense(bias)
    return bias if own.shape == sums.shape and torch.allclose(own, sums, rtol=1e-3, atol=1e-6) else None
