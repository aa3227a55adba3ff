"""Some texts of a batch at a time, those of like length together and no longer than they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.models.erasure import gathered
from assay.types import Batch, at_least_float32


def chunks(batch: Batch, example: Int[Tensor, " N"], room: Callable[[int], int]) -> Iterator[tuple[slice, int]]:
    """Which of the texts are read together, and the length of the longest; `room` says how many of a length fit.

    The texts must stand with the longest first.
    """
    sizes = batch.lengths[example].tolist()
    start = 0
    while start < len(sizes):
        width = max(1, sizes[start])
        stop = start + max(1, room(width))
        yield slice(start, stop), width
        start = stop


def truncated(batch: Batch, example: Int[Tensor, " N"], width: int) -> Batch:
    """One text for each example, with its first tokens only."""
    positions = torch.arange(width, device=example.device).expand(len(example), -1)
    return gathered(batch, example, positions, batch.mask[example])


def norms(vectors: Float[Tensor, "*B D"]) -> Float[Tensor, "*B"]:
    """‖v‖₂, in float32 at least; its gradient at the origin is 0."""
    found: Tensor = torch.linalg.vector_norm(at_least_float32(vectors), dim=-1)
    return found
