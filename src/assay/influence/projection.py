"""Random projections of per-example gradients that keep inner products in expectation, without forming gradients.

A matrix is projected on both sides, as in LoGra (Choe et al., 2024), before its sum over indices is taken; what comes
out, the rows of tables and all else is spread by signs over the same numbers (count-sketch: Charikar et al., 2002).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from zlib import crc32

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.influence.gradient_records import Outer, Record, Rows, cut
from assay.influence.gradients import Gradients
from assay.influence.setting import Indices, Scores

MAIN = 0.75  # of the directions on a side are kept as they are
ROUNDS = 4  # of subspace iteration, which finds them well enough


def sides(found: Gradients, side: int, seed: int) -> dict[str, Tensor]:
    """The projection matrix of each side with more than `side` numbers, unless the parameter is kept whole."""
    drawn: dict[str, Tensor] = {}
    for name, shape in found.shapes.items():
        random = torch.Generator().manual_seed(crc32(f"{seed} {name} sides".encode()))
        seen = _seen(found, name)
        for end, size in (("left", shape[0] if shape else 1), ("right", prod(shape[1:]))):
            if end in seen and size > side:
                kind = torch.promote_types(seen[end].dtype, torch.float32)
                drawn[f"{name} {end}"] = isometry(seen[end].double(), side, random).to(kind)
    return drawn


def isometry(spread: Float[Tensor, "I I"], side: int, random: torch.Generator) -> Float[Tensor, "I i"]:
    """Orthonormal principal directions of the samples, and scaled random directions of the complement.

    Inner products are right on average, whatever was seen.
    """
    # differs from Choe et al. (2024), who take Gaussian ones, which are far off, or main ones, which lose the rest.
    main = min(int(side * MAIN), side - 1)
    size = len(spread)
    drawn = torch.randn(size, side, generator=random, dtype=torch.float64).to(spread)
    kept, others = drawn[:, :main], drawn[:, main:]
    for _ in range(ROUNDS):
        kept = torch.linalg.qr(spread @ kept)[0]
    for _ in range(2):  # once more, against rounding
        others = torch.linalg.qr(others - kept @ (kept.T @ others))[0]
    return torch.cat([kept, others * ((size - main) / (side - main)) ** 0.5], dim=1)


def _seen(found: Gradients, name: str) -> dict[str, Float[Tensor, "I I"]]:
    """Second moments of the inputs and output gradients of each matrix; only of the columns of a table."""
    records = found.records[name]
    rows = found.rows(name)
    if rows is not None:
        return {"right": _spread(rows.gradients)}
    seen: dict[str, Tensor] = {}
    for record in records:
        if isinstance(record, Outer):
            weighed = (
                record.gradients * record.inputs.norm(dim=-1, keepdim=True),
                record.inputs * record.gradients.norm(dim=-1, keepdim=True),
            )
            for end, each in zip(("right", "left") if record.transposed else ("left", "right"), weighed, strict=True):
                seen[end] = seen[end] + _spread(each) if end in seen else _spread(each)
    return seen


def _spread(vectors: Float[Tensor, "B T I"]) -> Float[Tensor, "I I"]:
    flat = vectors.flatten(0, 1)
    return flat.T @ flat


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
        rows = gradients.lookups(name)
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


@dataclass(frozen=True)
class Signs:
    """A sketch: each of its numbers is Σ u G v over all parameters G, with random signs u and v of its own.

    Only what goes in and what comes out is multiplied by signs, so gradients of linear maps are never built. All
    numbers of a summary are independent and alike, so their spread tells how far their mean is from the product.
    """

    rows: Mapping[str, Float[Tensor, "O K"]]
    columns: Mapping[str, Float[Tensor, "I K"]]

    @classmethod
    def drawn(cls, parameters: Mapping[str, Tensor], size: int, seed: int) -> Signs:
        """Random signs for these parameters, `size` numbers a sketch; equal for equal seeds on any device."""
        generator = torch.Generator().manual_seed(seed)
        rows, columns = {}, {}
        for name, values in parameters.items():
            first = len(values) if values.dim() else 1
            rows[name] = _signs(first, size, generator, values)
            columns[name] = _signs(values.numel() // first, size, generator, values)
        return cls(rows, columns)

    def __call__(self, gradients: Gradients) -> Float[Tensor, "B K"]:
        parts = [self._part(name, record) for name, records in gradients.records.items() for record in records]
        return torch.stack(parts).sum(0)

    def sketched(self, gradients: Iterable[tuple[Indices, Gradients]], count: int) -> Float[np.ndarray, "N K"]:
        """The sketches of so many examples, from batches of their gradients."""
        found = np.zeros((count, next(iter(self.rows.values())).shape[1]))
        for indices, each in gradients:
            found[indices] = self(each).double().cpu().numpy()
        return found

    def _part(self, name: str, record: Record) -> Float[Tensor, "B K"]:
        rows, columns = self.rows[name], self.columns[name]
        if isinstance(record, Outer):
            if record.transposed:
                rows, columns = columns, rows
            return ((record.gradients.to(rows) @ rows) * (record.inputs.to(rows) @ columns)).sum(1)
        if isinstance(record, Rows):
            return ((record.gradients.to(rows) @ columns) * rows[record.ids]).sum(1)
        whole = record.dense().to(rows).view(len(record.gradients), len(rows), -1)
        return ((whole @ columns) * rows).sum(1)


def _signs(count: int, size: int, generator: torch.Generator, like: Tensor) -> Tensor:
    dtype = like.dtype if like.dtype.itemsize >= 4 else torch.float32
    return (torch.randint(0, 2, (count, size), generator=generator, dtype=torch.int8) * 2 - 1).to(like.device, dtype)


def summarised(left: Float[np.ndarray, "Q K"], right: Float[np.ndarray, "N K"]) -> tuple[Scores, Scores]:
    """Inner products of gradients estimated from their sketches, and the variances of these estimates."""
    size = left.shape[1]
    mean = left @ right.T / size
    spread = (left**2 @ (right**2).T / size - mean**2) / (size - 1)
    return mean, np.maximum(spread, 0.0)
