"""LiSSA: the Neumann series Σ (1 − M / s)^j v / s, with the curvature of a few random examples in each term."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.influence.curvature import Curvature
from assay.influence.solvers.solution import Solve, Solved

POWER = 12  # steps by which the largest eigenvalue is found
PROBES = 2  # times from another start
DOUBLINGS = 8
GROWTH = 100  # times the largest possible solution: the series does not converge

Product = Callable[[Float[Tensor, "Q P"], np.random.Generator], Float[Tensor, "Q P"]]


@dataclass(frozen=True)
class Lissa:
    """LiSSA: Agarwal, Bullins and Hazan (2017); for influence, Koh and Liang (2017), section 3.

    differs from Koh and Liang: the scale comes from the largest eigenvalue and doubles where the series grows, and the
    number of terms comes from the scale and the damping.
    """

    ready: ClassVar[bool] = False
    batch: int | None = 32  # examples drawn for a term; None: all of them
    repeats: int = 4
    terms: int | None = None  # none given: until (1 − smallest / s)^terms is below `tolerance`
    most: int = 1_000  # terms
    tolerance: float = 1e-2
    seed: int = 0

    def unfit(self, size: int) -> str | None:
        return None

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        """In coordinates in which damping and decay are 1, where there are any; the scale is found here."""
        known = damping + curvature.decay
        roots = known.rsqrt() if float(known.min()) > 0 else torch.ones_like(known)
        smallest = float((known * roots.square()).min())

        def product(vectors: Float[Tensor, "Q P"], rng: np.random.Generator) -> Float[Tensor, "Q P"]:
            scaled = vectors * roots
            return (curvature.matvec(scaled, self._drawn(curvature, rng)) + scaled * damping) * roots

        rng = np.random.default_rng(self.seed)
        scale = 1.2 * max(_largest(product, torch.ones_like(known), rng) for _ in range(PROBES))

        def solve(vectors: Float[Tensor, "Q P"]) -> Solved:
            found = self.solved(product, vectors * roots, scale, smallest)
            return Solved(tuple(each * roots for each in found.tries), found.notes)

        return solve

    def solved(self, product: Product, vectors: Float[Tensor, "Q P"], scale: float, smallest: float) -> Solved:
        """A solution for each repeat, for a matrix whose eigenvalues are at least `smallest`."""
        for _ in range(DOUBLINGS):
            terms = self.terms or self._enough(smallest / scale)
            rng = np.random.default_rng((self.seed, 1))
            most = GROWTH * float(vectors.norm(dim=1).max()) / max(smallest, scale / self.most)
            with progress.bar() as shown:
                task = shown.add_task("series", total=self.repeats * terms)
                advance = partial(shown.advance, task)
                tries = [_summed(product, vectors, scale, terms, most, rng, advance) for _ in range(self.repeats)]
            found = tuple(each for each in tries if each is not None)
            if len(found) == self.repeats:
                return Solved(found, {"scale": scale, "terms": terms, "left out": (1 - smallest / scale) ** terms})
            scale *= 2
        raise AssayError("The series grows without bound; give more damping, or more examples for each term.")

    def _enough(self, share: float) -> int:
        """The number of terms needed where the smallest eigenvalue is that share of the scale."""
        if share <= 0:
            return self.most
        return min(self.most, math.ceil(math.log(self.tolerance) / math.log1p(-min(share, 0.99))))

    def _drawn(self, curvature: Curvature, rng: np.random.Generator) -> np.ndarray | None:
        count = len(curvature.setting.train)
        return None if self.batch is None or self.batch >= count else rng.choice(count, self.batch, replace=False)


def _summed(
    product: Product,
    vectors: Float[Tensor, "Q P"],
    scale: float,
    terms: int,
    most: float,
    rng: np.random.Generator,
    advance: Callable[[], None],
) -> Float[Tensor, "Q P"] | None:
    """The sum of so many terms; None where it diverges."""
    x = vectors / scale
    for _ in range(terms):
        x = x + (vectors - product(x, rng)) / scale
        advance()
        if not float(x.norm(dim=1).max()) <= most:
            return None
    return x


def _largest(product: Product, x: Float[Tensor, " P"], rng: np.random.Generator) -> float:
    """The largest eigenvalue over some random draws of examples, by power iteration."""
    x = torch.from_numpy(rng.standard_normal((1, len(x)))).to(x)
    size = 0.0
    for _ in range(POWER):
        x = product(x / x.norm(), rng)
        size = max(size, float(x.norm()))
    return size
