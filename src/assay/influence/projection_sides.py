"""Projection matrices for the sides of weight matrices: principal directions are kept, the others mixed at random."""

from __future__ import annotations

from math import prod
from zlib import crc32

import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.gradient_records import Outer
from assay.influence.gradients import Gradients

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
