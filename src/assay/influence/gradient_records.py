"""Per-example gradients of one parameter in factored form, and inner products of the sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

BATCHED = ("inputs", "ids", "gradients")  # fields of records whose first dimension are the examples


@dataclass(frozen=True)
class Outer:
    """Of a linear map: sums over positions of outer products of output gradients and inputs."""

    inputs: Float[Tensor, "B T I"]
    gradients: Float[Tensor, "B T O"]
    shape: torch.Size  # of the parameter
    transposed: bool = False  # the parameter has its inputs in rows

    def dense(self) -> Float[Tensor, "B P"]:
        left, right = (self.inputs, self.gradients) if self.transposed else (self.gradients, self.inputs)
        return (left.mT @ right).flatten(1)


@dataclass(frozen=True)
class Rows:
    """Of an embedding table: the gradients of the rows that were looked up."""

    ids: Int[Tensor, "B K"]
    gradients: Float[Tensor, "B K D"]
    shape: torch.Size

    def dense(self) -> Float[Tensor, "B P"]:
        batch, size = len(self.ids), self.shape[1]
        whole = self.gradients.new_zeros(batch, *self.shape)
        return whole.scatter_add_(1, self.ids[..., None].expand(-1, -1, size), self.gradients).flatten(1)


@dataclass(frozen=True)
class Whole:
    """Of any other parameter: the dense gradient."""

    gradients: Float[Tensor, "B ..."]

    def dense(self) -> Float[Tensor, "B P"]:
        return self.gradients.flatten(1)


Record = Outer | Rows | Whole


def cut(record: Record, start: int, stop: int) -> Record:
    """The record of a range of examples."""
    own = {each.name: getattr(record, each.name)[start:stop] for each in fields(record) if each.name in BATCHED}
    return replace(record, **own)


NUMBERS = 2**24  # that one step holds at once
FREQUENT = 64  # a row is frequent where more than one of this many pairs of texts share it


@dataclass(frozen=True)
class TableGradients:
    """Sparse gradients of a table: vector (owner), row (token) and gradient of each entry, without duplicates."""

    owners: Int[Tensor, " O"]
    tokens: Int[Tensor, " O"]
    gradients: Float[Tensor, "O D"]
    count: int  # of vectors

    @classmethod
    def of(cls, rows: Rows, owners: Int[Tensor, " B"], count: int) -> TableGradients:
        """From the rows that a batch looks up; entries of one text for one row are summed."""
        pairs = owners[:, None] * rows.shape[0] + rows.ids
        unique, indices = pairs.flatten().unique(return_inverse=True)  # type: ignore[no-untyped-call]
        gradients = rows.gradients.new_zeros(len(unique), rows.gradients.shape[-1])
        gradients.index_add_(0, indices, rows.gradients.flatten(0, 1))
        return cls(unique // rows.shape[0], unique % rows.shape[0], gradients, count)

    @classmethod
    def among(cls, tables: Float[Tensor, "Q V D"], tokens: Int[Tensor, " U"]) -> TableGradients:
        """From whole tables, of which only some rows are needed."""
        owners = torch.arange(len(tables), device=tables.device).repeat_interleave(len(tokens))
        return cls(owners, tokens.repeat(len(tables)), tables[:, tokens].flatten(0, 1), len(tables))

    @classmethod
    def joined(cls, parts: Sequence[TableGradients]) -> TableGradients:
        """Concatenates those of several batches."""
        owners, tokens, gradients = (
            torch.cat([getattr(p, n) for p in parts]) for n in ("owners", "tokens", "gradients")
        )
        return cls(owners, tokens, gradients, parts[0].count)

    def scaled(self, factors: Float[Tensor, "*V_D"]) -> TableGradients:
        """Each row of the table times its factors, or all times one."""
        return replace(self, gradients=self.gradients * (factors if factors.dim() == 0 else factors[self.tokens]))


@dataclass(frozen=True)
class SortedTableGradients:
    """Entries sorted by codes, which number the table rows that both sides share."""

    owners: Int[Tensor, " O"]
    codes: Int[Tensor, " O"]
    gradients: Float[Tensor, "O D"]
    starts: Int[Tensor, " U"]
    counts: Int[Tensor, " U"]
    count: int  # of vectors

    @classmethod
    def of(cls, lookups: TableGradients, codes: Int[Tensor, " V"], shared: int) -> SortedTableGradients:
        """With the code of each table row; rows with codes from `shared` on are dropped."""
        own = codes[lookups.tokens]
        order = own.argsort(stable=True)
        order = order[own[order] < shared]
        counts = torch.bincount(own[order], minlength=shared)
        sorts = (lookups.owners[order], own[order], lookups.gradients[order].double())
        return cls(*sorts, counts.cumsum(0) - counts, counts, lookups.count)

    def spread(self, start: int, stop: int) -> Float[Tensor, "R P"]:
        """Some table rows as a dense tensor for every vector, 0 where it has none."""
        first, last = int(self.starts[start]), int(self.starts[stop - 1] + self.counts[stop - 1])
        whole = self.gradients.new_zeros(self.count, stop - start, self.gradients.shape[1])
        whole[self.owners[first:last], self.codes[first:last] - start] = self.gradients[first:last]
        return whole.flatten(1)

    def padded(self, codes: Int[Tensor, " c"], width: int) -> tuple[Int[Tensor, "c w"], Float[Tensor, "c w D"]]:
        """The owners and gradients of the entries of some rows, padded with 0."""
        steps = torch.arange(width, device=codes.device)
        indices = (self.starts[codes, None] + steps).clamp(max=len(self.owners) - 1)
        there = steps < self.counts[codes, None]
        return self.owners[indices] * there, self.gradients[indices] * there[..., None]


def add_kernel(out: Float[Tensor, "R S"], left: TableGradients, right: TableGradients) -> None:
    """Adds inner products of two sets of table gradients: dense for frequent rows, pair by pair for others."""
    size = int(max(left.tokens.max(), right.tokens.max())) + 1
    pairs = torch.bincount(left.tokens, minlength=size) * torch.bincount(right.tokens, minlength=size)
    order = pairs.argsort(descending=True, stable=True)
    codes = torch.empty_like(order)
    codes[order] = torch.arange(size, device=order.device)
    shared, frequent = int((pairs > 0).sum()), int((pairs * FREQUENT > out.numel()).sum())
    one = SortedTableGradients.of(left, codes, shared)
    other = one if right is left else SortedTableGradients.of(right, codes, shared)
    step = max(1, NUMBERS // (sum(out.shape) * left.gradients.shape[1]))
    for start in range(0, frequent, step):
        stop = min(start + step, frequent)
        spread = one.spread(start, stop)
        out.addmm_(spread, (spread if other is one else other.spread(start, stop)).T)
    _add_pairs(out, one, other, frequent)


def _add_pairs(
    out: Float[Tensor, "R S"], one: SortedTableGradients, other: SortedTableGradients, frequent: int
) -> None:
    """Rows that occur in about as many vectors, at once."""
    widths = torch.stack([_width(each.counts[frequent:]) for each in (one, other)], dim=1)
    flat, length, size = out.view(-1), out.shape[1], one.gradients.shape[1]
    for first, second in widths.unique(dim=0).tolist():  # type: ignore[no-untyped-call]
        codes = frequent + (widths == widths.new_tensor([first, second])).all(1).nonzero().squeeze(1)
        step = max(1, NUMBERS // max(first * second, (first + second) * size))
        for group in codes.split(step):  # type: ignore[no-untyped-call]
            owners, gradients = one.padded(group, first)
            others, against = other.padded(group, second)
            indices = owners[:, :, None] * length + others[:, None]
            flat.index_add_(0, indices.flatten(), (gradients @ against.mT).flatten())


def _width(counts: Int[Tensor, " c"]) -> Int[Tensor, " c"]:
    """The next power of 2."""
    return 2 ** counts.double().log2().ceil().long()
