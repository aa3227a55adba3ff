"""Inner products of gradients over all parameters, computed by slices so that they fit into memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.batches import Tokenised
from assay.influence.gradients import Reading
from assay.influence.outputs import directions
from assay.influence.parameter_slices import ParameterSlice
from assay.influence.products import Vectors
from assay.influence.setting import Setting
from assay.influence.table_gradients import TableGradients, add_kernel
from assay.types import Batch

NUMBERS = 2**25  # that are held in float64 at once
STRIPS = 8  # a symmetric product leaves out almost half of all numbers

Roots = Mapping[str, Float[Tensor, "..."]]
"""What the gradient of each parameter is multiplied with: a number, or one for each number in it."""

LogitGradients = Callable[[Int[np.ndarray, " n"], Batch, Reading], Float[Tensor, "K n C"]]
"""The directions of the logits in which some rows are asked about."""


@dataclass(frozen=True)
class Block:
    """Gradients over some parameters: tables as looked-up rows, all others concatenated."""

    dense: Float[Tensor, "R P"]
    tables: Mapping[str, TableGradients]


@dataclass(frozen=True)
class ComputedGradients:
    """Gradients computed by a network, in `width` directions of the logits for each row."""

    setting: Setting
    rows: Sequence[Tokenised]
    logit_gradients: LogitGradients
    width: int = 1
    advance: Callable[[int], object] = field(default=lambda rows: None)

    @classmethod
    def train(cls, setting: Setting, advance: Callable[[int], object] = lambda rows: None) -> ComputedGradients:
        """Of all training rows, in an orthonormal basis of the logits."""
        basis = directions(setting.network.classes)

        def logit_gradients(indices: Int[np.ndarray, " n"], batch: Batch, reading: Reading) -> Float[Tensor, "K n C"]:
            return basis.T[:, None].to(reading.logits).expand(-1, len(batch), -1)

        return cls(setting, setting.train, logit_gradients, basis.shape[1], advance)

    @classmethod
    def queries(cls, setting: Setting) -> ComputedGradients:
        """Of the targets of all queries."""
        return cls(
            setting,
            setting.queries,
            lambda indices, batch, reading: setting.query_logit_gradients(indices, reading)[None],
        )

    @property
    def count(self) -> int:
        return len(self.rows) * self.width

    def block(self, group: Sequence[ParameterSlice], roots: Roots, against: Block | None = None) -> Block:
        """One pass over all rows, for the parameters of one group."""
        device = self.setting.network.device
        wide = sum((each.stop - each.start) * each.size for each in group if not each.table)
        dense = torch.zeros(self.count, wide, device=device, dtype=_dtype(self.setting))
        tables: dict[str, list[TableGradients]] = defaultdict(list)
        for indices, batch in self.setting.batches(self.rows):
            reading = self.setting.reader.read(batch)
            for direction, each in enumerate(self.logit_gradients(indices, batch, reading)):
                gradients = reading.gradients(each)
                owners = torch.from_numpy(indices).to(device) * self.width + direction
                start = 0
                for each in group:
                    if each.table:
                        found = TableGradients.of(each.rows(gradients), owners, self.count)
                        tables[each.name].append(found.scaled(_cut(roots[each.name], each)))
                        continue
                    stop = start + (each.stop - each.start) * each.size
                    root, step = _cut(roots[each.name], each), max(1, NUMBERS // (stop - start))
                    for first in range(0, len(owners), step):
                        part = each.dense(gradients, first, first + step)
                        dense[owners[first : first + step], start:stop] = (part * root).to(dense)
                    start = stop
            self.advance(len(indices))
        return Block(dense, {name: TableGradients.joined(parts) for name, parts in tables.items()})


@dataclass(frozen=True)
class GivenGradients:
    """Vectors that are computed already; a missing parameter counts as 0."""

    vectors: Vectors

    @property
    def count(self) -> int:
        return len(next(iter(self.vectors.values())))

    def block(self, group: Sequence[ParameterSlice], roots: Roots, against: Block | None = None) -> Block:
        """Their slices; of a table only the rows that the others look up."""
        if against is None:
            raise ValueError("Given vectors have products with others only.")
        parts: list[Tensor] = []
        tables: dict[str, TableGradients] = {}
        for each in group:
            vectors = self.vectors.get(each.name)
            if vectors is None:
                vectors = against.dense.new_zeros(self.count, *each.shape)
            if each.table:
                tokens = against.tables[each.name].tokens.unique()  # type: ignore[no-untyped-call]
                found = TableGradients.among(vectors[..., each.start : each.stop], tokens)
                tables[each.name] = found.scaled(_cut(roots[each.name], each))
            else:
                parts.append(vectors.flatten(1)[:, each.columns] * _cut(roots[each.name], each))
        return Block(torch.cat(parts, 1) if parts else against.dense.new_zeros(self.count, 0), tables)


GradientSource = ComputedGradients | GivenGradients
"""Vectors over all parameters that can be had for some of them at a time."""


def add_products(out: Float[Tensor, "R S"], left: Block, right: Block) -> None:
    """Adds all inner products; of a block with itself, those right of the diagonal only are sure to be added."""
    strips = STRIPS if left is right and len(out) >= 64 * STRIPS else 1
    rows = -(-len(out) // strips)
    step = max(1, NUMBERS // max(1, sum(out.shape)))
    for start in range(0, left.dense.shape[1], step):
        one = left.dense[:, start : start + step].to(out)
        other = one if left is right else right.dense[:, start : start + step].to(out)
        for first in range(0, len(out), rows):
            behind = first if left is right else 0
            out[first : first + rows, behind:].addmm_(one[first : first + rows], other[behind:].T)
    for name, lookups in left.tables.items():
        add_kernel(out, lookups, lookups if left is right else right.tables[name])


def _cut(root: Float[Tensor, ...], part: ParameterSlice) -> Tensor:
    """The slice of the diagonal's roots."""
    if root.dim() == 0:
        return root
    return root[:, part.start : part.stop] if part.table else root.flatten()[part.columns]


def _dtype(setting: Setting) -> torch.dtype:
    """The precision of the parameters, single precision at least."""
    kinds = {each.dtype for each in setting.parameters.values()}
    return torch.float64 if torch.float64 in kinds else torch.float32
