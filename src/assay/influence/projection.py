"""Random projections of per-example gradients that keep inner products in expectation, without forming gradients.

A matrix is projected on both sides, as in LoGra (Choe et al., 2024), before its sum over indices is taken; what comes
out, the rows of tables and all else is spread by signs over the same numbers (count-sketch: Charikar et al., 2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from zlib import crc32

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.influence.gradient_records import Outer, Record, Rows
from assay.influence.gradients import Gradients
from assay.influence.parameter_slices import ParameterSlice, cut

NUMBERS = 2**28  # of projected gradients that are held at once


@dataclass(frozen=True)
class Signed:
    """Random signs for a parameter without structure."""

    signs: Float[Tensor, " P"]
    offset: int

    @property
    def count(self) -> int:
        return len(self.signs)

    def add(self, out: Float[Tensor, "B S"], gradients: Gradients, name: str, factor: float) -> None:
        _fold(out, gradients.dense(name) * (self.signs * factor), self.offset)


@dataclass(frozen=True)
class TwoSided:
    """Projects both sides of a weight matrix, then applies random signs."""

    left: Float[Tensor, "O o"] | None  # none where it is not made smaller
    right: Float[Tensor, "I i"] | None
    signs: Float[Tensor, " P"]
    offset: int

    @property
    def count(self) -> int:
        return len(self.signs)

    def add(self, out: Float[Tensor, "B S"], gradients: Gradients, name: str, factor: float) -> None:
        step = max(1, NUMBERS // self.count)
        for record in gradients.records[name]:
            for start in range(0, len(out), step):
                part = self._both(cut(record, start, start + step), gradients.shapes[name]).flatten(1)
                _fold(out[start : start + step], part * (self.signs * factor), self.offset)

    def _both(self, record: Record, shape: torch.Size) -> Float[Tensor, "B o i"]:
        if isinstance(record, Outer):
            sides = (record.inputs, record.gradients) if record.transposed else (record.gradients, record.inputs)
            return _onto(sides[0], self.left).mT @ _onto(sides[1], self.right)
        if isinstance(record, Rows) and self.left is not None:
            return self.left[record.ids].to(record.gradients).mT @ _onto(record.gradients, self.right)
        whole = record.dense().view(-1, shape[0], prod(shape[1:]))
        return _onto(_onto(whole, self.right).mT, self.left).mT


@dataclass(frozen=True)
class Hashed:
    """Projects the columns of an embedding table; every row has a hash index and signs of its own."""

    right: Float[Tensor, "D d"] | None
    signs: Float[Tensor, "V d"]
    indices: Int[Tensor, " V"]  # the order of the rows
    offset: int

    @property
    def count(self) -> int:
        return self.signs.numel()

    def add(self, out: Float[Tensor, "B S"], gradients: Gradients, name: str, factor: float) -> None:
        shape = gradients.shapes[name]
        rows = ParameterSlice(name, shape, 0, shape[1], table=True).rows(gradients)
        values = (_onto(rows.gradients, self.right) * (self.signs[rows.ids] * factor)).to(out)
        steps = torch.arange(self.signs.shape[1], device=out.device)
        slots = (self.offset + self.indices[rows.ids, None] * self.signs.shape[1] + steps) % out.shape[1]
        out.scatter_add_(1, slots.flatten(1), values.flatten(1))


Sketch = Signed | TwoSided | Hashed
"""A linear map of the gradients of one parameter to `count` numbers, added to those of others from an index on."""


@dataclass(frozen=True)
class Projection:
    """A projection of all parameters to `size` numbers; exact where there are no more than that."""

    sketches: Mapping[str, Sketch]
    factors: Mapping[str, float]
    size: int

    @classmethod
    def drawn(
        cls, found: Gradients, sides: Mapping[str, Tensor], factors: Mapping[str, float], size: int, seed: int
    ) -> Projection:
        """A random projection, by the structure of the gradients of some examples."""
        sketches: dict[str, Sketch] = {}
        offset = 0
        for name in found.shapes:
            random = torch.Generator().manual_seed(crc32(f"{seed} {name}".encode()))
            sketches[name] = _drawn(found, name, sides, offset, random)
            offset += sketches[name].count
        return cls(sketches, factors, size)

    def __call__(self, gradients: Gradients, dtype: torch.dtype) -> Float[Tensor, "B S"]:
        """The features of each example; each parameter is multiplied by its factor."""
        first = next(iter(gradients.records.values()))[0]
        out = torch.zeros(gradients.size, self.size, dtype=dtype, device=first.gradients.device)
        for name, sketch in self.sketches.items():
            sketch.add(out, gradients, name, self.factors[name])
        return out


def _drawn(found: Gradients, name: str, sides: Mapping[str, Tensor], offset: int, random: torch.Generator) -> Sketch:
    records, shape = found.records[name], found.shapes[name]
    given = records[0].gradients
    like = torch.zeros((), device=given.device, dtype=torch.promote_types(given.dtype, torch.float32))

    def signs(*sizes: int) -> Tensor:
        return (torch.randint(0, 2, sizes, generator=random) * 2 - 1).to(like)

    left, right = (sides.get(f"{name} {each}") for each in ("left", "right"))
    if found.rows(name) is not None:
        order = torch.randperm(shape[0], generator=random).to(like.device)
        return Hashed(right, signs(shape[0], shape[1] if right is None else right.shape[1]), order, offset)
    if any(isinstance(record, Outer) for record in records):
        sizes = [
            size if each is None else each.shape[1] for size, each in zip(_sizes(shape), (left, right), strict=True)
        ]
        return TwoSided(left, right, signs(prod(sizes)), offset)
    return Signed(signs(prod(shape)), offset)


def _sizes(shape: torch.Size) -> tuple[int, int]:
    return shape[0], prod(shape[1:])


def _onto(x: Float[Tensor, "B T I"], side: Float[Tensor, "I i"] | None) -> Tensor:
    return x if side is None else x @ side.to(x)


def _fold(out: Float[Tensor, "B S"], values: Float[Tensor, "B P"], offset: int) -> None:
    """Adds the values from an offset on, modulo the size."""
    size, start = out.shape[1], offset % out.shape[1]
    first = values[:, : size - start]
    out[:, start : start + first.shape[1]] += first
    rounds = (values.shape[1] - first.shape[1]) // size
    last = first.shape[1] + rounds * size
    if rounds > 0:
        out += values[:, first.shape[1] : last].unflatten(1, (rounds, size)).sum(1)  # type: ignore[no-untyped-call]
    out[:, : values.shape[1] - last] += values[:, last:]
