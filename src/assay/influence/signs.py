"""Random-sign sketches of gradients whose inner products estimate those of the gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.gradient_records import Outer, Record, Rows
from assay.influence.gradients import Gradients


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


def summarised(
    left: Float[np.ndarray, "Q K"], right: Float[np.ndarray, "N K"]
) -> tuple[Float[np.ndarray, "Q N"], Float[np.ndarray, "Q N"]]:
    """Inner products of gradients estimated from their sketches, and the variances of these estimates."""
    size = left.shape[1]
    mean = left @ right.T / size
    spread = (left**2 @ (right**2).T / size - mean**2) / (size - 1)
    return mean, np.maximum(spread, 0.0)
