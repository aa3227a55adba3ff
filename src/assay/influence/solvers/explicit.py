"""Explicit inverse of the curvature matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from assay.influence.curvature import Curvature
from assay.influence.solvers.solution import Solve, Solved

FLAT = 1e-12  # of the largest eigenvalue: directions below are not moved along


@dataclass(frozen=True)
class Explicit:
    """Exact in double precision: by Cholesky where the matrix is positive definite, else by eigenvalues.

    Directions without any curvature or damping are left out, as by the pseudo-inverse.
    """

    ready: ClassVar[bool] = True
    largest: int = 10_000  # parameters

    def unfit(self, size: int) -> str | None:
        """The matrix is too large."""
        if size > self.largest:
            return f"has {size:,} parameters, and the inverse is made for {self.largest:,} at most; use another solver"
        return None

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        matrix = curvature.dense().double() + torch.diag(damping.double())
        factor, failed = torch.linalg.cholesky_ex(matrix)
        if not failed and factor.diagonal().min() > FLAT**0.5 * factor.diagonal().max():
            return lambda vectors: Solved((torch.cholesky_solve(vectors.double().T, factor).T.to(vectors),))
        values, axes = torch.linalg.eigh(matrix)
        kept = values.abs() > FLAT * values.abs().max()
        inverse = torch.where(kept, 1 / values, 0.0)
        notes = {"smallest eigenvalue": float(values[0]), "flat directions": int((~kept).sum())}
        return lambda vectors: Solved((((vectors.double() @ axes) * inverse @ axes.T).to(vectors),), notes)
