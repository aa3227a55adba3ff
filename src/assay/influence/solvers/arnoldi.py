"""Arnoldi iteration: the directions of largest curvature, computed once for all vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.influence.curvature import Curvature
from assay.influence.solvers.solution import Solve, Solved

NOTHING = 1e-10  # of the first step: a direction that short is rounding


@dataclass(frozen=True)
class Arnoldi:
    """Ritz vectors of the Krylov space v, Hv, H²v, … of a random v. Schioppa, Zablotskaia, Vilar and Sokolov (2022).

    differs from Schioppa et al.: damping is the metric of the space, every new direction is made orthogonal to all
    before it, and outside of the directions that are kept there is the damping alone, where they leave everything out.
    """

    ready: ClassVar[bool] = True
    steps: int = 100
    rank: int = 50
    seed: int = 0

    def unfit(self, size: int) -> str | None:
        return None

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        """In coordinates in which damping and decay are 1, and share the eigenvectors of the curvature."""
        known = damping + curvature.decay
        if float(known.min()) <= 0:
            raise AssayError("Where no direction was found, the damping is all that is known; give one above 0.")
        roots = known.rsqrt()
        basis, small = self._basis(curvature, roots)
        values, axes = torch.linalg.eigh(small)
        order = values.abs().argsort(descending=True)[: self.rank]
        values, axes = values[order], axes[:, order].T.to(basis) @ basis  # [r, P]
        inverse = (1 / (1 + values) - 1).to(axes)

        def solve(vectors: Float[Tensor, "Q P"]) -> Solved:
            given = vectors * roots
            return Solved(((given + (given @ axes.T * inverse) @ axes) * roots,), notes)

        notes = {"directions": len(values), "smallest kept curvature in dampings": float(values.abs().min())}
        return solve

    def _basis(
        self, curvature: Curvature, roots: Float[Tensor, " P"]
    ) -> tuple[Float[Tensor, "k P"], Float[Tensor, "k k"]]:
        """An orthonormal basis, and the curvature within it."""
        generator = torch.Generator().manual_seed(self.seed)
        x = torch.randn(curvature.size, generator=generator, dtype=torch.float64).to(roots)
        rows, images, first = [x / x.norm()], [], 0.0
        with progress.bar() as shown:
            task = shown.add_task("directions of curvature", total=min(self.steps, curvature.size))
            for _ in range(min(self.steps, curvature.size)):
                scaled = rows[-1] * roots
                image = (curvature.matvec(scaled[None])[0] - curvature.decay * scaled) * roots
                images.append(image)
                so_far, x = torch.stack(rows), image
                for _ in range(2):
                    x = x - (so_far @ x) @ so_far
                shown.advance(task)
                first = first or float(x.norm())
                if float(x.norm()) <= NOTHING * first or len(images) == curvature.size:
                    break
                rows.append(x / x.norm())
        basis = torch.stack(rows[: len(images)])
        small = (basis @ torch.stack(images).T).double()
        return basis, (small + small.T) / 2
