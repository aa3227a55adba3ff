"""Conjugate gradients for many right-hand sides at once, each with its own step lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.influence.curvature import Curvature
from assay.influence.solvers.solution import Solve, Solved

Product = Callable[[Float[Tensor, "Q P"]], Float[Tensor, "Q P"]]


@dataclass(frozen=True)
class ConjugateGradients:
    """Conjugate gradients until each residual is below `tolerance`. Martens (2010); Koh and Liang (2017).

    Damping and decay, which differ from parameter to parameter, are the preconditioner.
    """

    ready: ClassVar[bool] = False
    iterations: int = 200
    tolerance: float = 1e-4

    def unfit(self, size: int) -> str | None:
        return None

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        def product(vectors: Float[Tensor, "Q P"]) -> Float[Tensor, "Q P"]:
            return curvature.matvec(vectors) + vectors * damping

        return lambda vectors: self.solved(product, vectors, damping + curvature.decay)

    def solved(self, product: Product, vectors: Float[Tensor, "Q P"], scale: Float[Tensor, " P"]) -> Solved:
        """The solutions, and in the notes the largest relative residual."""
        sizes = vectors.norm(dim=1).clamp(min=torch.finfo(vectors.dtype).tiny)
        inverse = 1 / scale if float(scale.min()) > 0 else torch.ones_like(scale)
        x, left = torch.zeros_like(vectors), vectors.clone()
        scaled = left * inverse
        ahead, size = scaled.clone(), (left * scaled).sum(1)
        downward = torch.zeros_like(sizes, dtype=torch.bool)
        done = 0
        with progress.bar() as shown:
            task = shown.add_task("conjugate gradients", total=self.iterations)
            while done < self.iterations:
                active = (left.norm(dim=1) > self.tolerance * sizes) & ~downward
                if not active.any():
                    break
                rows = active.nonzero().squeeze(1)
                moved = product(ahead[rows])
                bend = (ahead[rows] * moved).sum(1)
                downward[rows] = bend <= 0
                step = torch.where(bend > 0, size[rows] / bend, 0.0)[:, None]
                x[rows] += step * ahead[rows]
                left[rows] -= step * moved
                scaled = left[rows] * inverse
                now = (left[rows] * scaled).sum(1)
                ahead[rows] = scaled + (now / size[rows])[:, None] * ahead[rows]
                size[rows] = now
                done += 1
                shown.advance(task)
        remains = float((left.norm(dim=1) / sizes).max())
        notes = {"iterations": done, "left": remains, "converged": remains <= self.tolerance}
        return Solved((x,), notes | ({"downward": int(downward.sum())} if downward.any() else {}))
