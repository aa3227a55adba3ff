"""Slices of parameters, so that the gradients held at a time fit into memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.data.batches import Tokenised
from assay.influence.gradient_records import Outer, Record, Rows
from assay.influence.gradients import Gradients
from assay.influence.setting import Setting
from assay.models import budget

FEWEST, MOST = 4, 256  # rows that show which forms gradients have


@dataclass(frozen=True)
class ParameterSlice:
    """A slice of a parameter along its first dimension; of a table, along its last."""

    name: str
    shape: torch.Size
    start: int
    stop: int
    table: bool = False

    @property
    def size(self) -> int:
        """Numbers in each row of the first dimension, of a parameter that is no table."""
        return prod(self.shape[1:])

    @property
    def columns(self) -> slice:
        """Its columns in the flat gradient of the whole parameter, if that is no table."""
        return slice(self.start * self.size, self.stop * self.size)

    def dense(self, gradients: Gradients, start: int, stop: int) -> Float[Tensor, "B P"]:
        """The gradients of some examples, one flat row each."""
        parts = []
        for record in (cut(each, start, stop) for each in gradients.records[self.name]):
            if isinstance(record, Outer):
                side = "inputs" if record.transposed else "gradients"
                part = getattr(record, side)[..., self.start : self.stop]
                parts.append(replace(record, **{side: part}).dense())
            else:
                parts.append(record.dense()[:, self.columns])
        return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)

    def rows(self, gradients: Gradients) -> Rows:
        """The gradient of the table as the rows that were looked up."""
        found = gradients.rows(self.name)
        if found is None:
            whole = gradients.dense(self.name).reshape(gradients.size, *self.shape)
            found = Rows(torch.arange(self.shape[0], device=whole.device).expand(len(whole), -1), whole, self.shape)
        return replace(found, gradients=found.gradients[..., self.start : self.stop])


def cut(record: Record, start: int, stop: int) -> Record:
    """The record of a range of examples."""
    own = {name: getattr(record, name)[start:stop] for name in ("inputs", "ids", "gradients") if hasattr(record, name)}
    return replace(record, **own)


def grouped(
    shapes: Mapping[str, torch.Size], tables: Mapping[str, int], rows: int, room: int
) -> list[list[ParameterSlice]]:
    """Groups of slices that fit into `room` numbers each, or hold one row of one parameter.

    A table takes as many numbers for each column as rows of it are looked up, which `tables` says.
    """
    groups: list[list[ParameterSlice]] = [[]]
    left = room
    for name, shape in shapes.items():
        table = name in tables
        indices = shape[-1] if table else (shape[0] if shape else 1)
        cost = max(1, tables[name] if table else rows * prod(shape[1:]))
        start = 0
        while start < indices:
            if left < cost and groups[-1]:
                groups.append([])
                left = room
            stop = min(indices, start + max(1, left // cost))
            groups[-1].append(ParameterSlice(name, shape, start, stop, table))
            left -= (stop - start) * cost
            start = stop
    return groups


def sample_rows(setting: Setting) -> list[Tokenised]:
    """Training rows of all lengths, as many as fit into one batch."""
    order = np.argsort([len(row.ids) for row in setting.train], kind="stable")
    longest = len(setting.train[order[-1]].ids)
    room = budget.room(setting.network.device, "activations", longest)
    indices = np.linspace(0, len(order) - 1, max(FEWEST, min(MOST, room, len(order)))).round().astype(int)
    return [setting.train[index] for index in order[indices]]


def sample_gradients(setting: Setting, rows: Sequence[Tokenised]) -> Gradients:
    """The gradients of rows in random directions of their logits."""
    _, batch = next(setting.batches(rows))
    reading = setting.reader.read(batch)
    logit_gradients = torch.randn(reading.logits.shape, generator=torch.Generator().manual_seed(0)).to(reading.logits)
    return reading.gradients(logit_gradients - logit_gradients.mean(-1, keepdim=True))


def table_sizes(gradients: Gradients) -> dict[str, int]:
    """The embedding tables among the parameters, and how many of their rows these examples look up."""
    found: dict[str, int] = {}
    for name in gradients.records:
        rows = gradients.rows(name)
        if rows is not None:
            found[name] = rows.ids.numel()
    return found
