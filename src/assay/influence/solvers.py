"""Linear solvers of (curvature + damping) x = v for many v at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.influence.curvature import Curvature, Flat


@dataclass(frozen=True)
class Solved:
    """Solutions of one or several random runs."""

    tries: tuple[Flat, ...]
    notes: Mapping[str, Any] = field(default_factory=dict)


Solve = Callable[[Flat], Solved]


class Solver(ABC):
    """Prepares a curvature once; then any number of vectors can be solved for."""

    ready: ClassVar[bool] = True  # whether a vector more costs next to nothing

    def unfit(self, size: int) -> str | None:
        """Why a network of so many parameters is too large, as the end of a sentence, or None."""
        return None

    @abstractmethod
    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        """A function that solves (curvature + damping) x = v for any v."""


FLAT = 1e-12  # of the largest eigenvalue: directions below are not moved along


@dataclass(frozen=True)
class Explicit(Solver):
    """Exact in double precision: by Cholesky where the matrix is positive definite, else by eigenvalues.

    Directions without any curvature or damping are left out, as by the pseudo-inverse.
    """

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


Product = Callable[[Flat], Flat]


@dataclass(frozen=True)
class ConjugateGradients(Solver):
    """Conjugate gradients until each residual is below `tolerance`. Martens (2010); Koh and Liang (2017).

    Damping and decay, which differ from parameter to parameter, are the preconditioner.
    """

    ready: ClassVar[bool] = False
    iterations: int = 200
    tolerance: float = 1e-4

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        def product(vectors: Flat) -> Flat:
            return curvature.matvec(vectors) + vectors * damping

        return lambda vectors: self.solved(product, vectors, damping + curvature.decay)

    def solved(self, product: Product, vectors: Flat, scale: Float[Tensor, " P"]) -> Solved:
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


POWER = 12  # steps by which the largest eigenvalue is found
PROBES = 2  # times from another start
DOUBLINGS = 8
GROWTH = 100  # times the largest possible solution: the series does not converge

SampledProduct = Callable[[Flat, np.random.Generator], Flat]


@dataclass(frozen=True)
class Lissa(Solver):
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

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve:
        """In coordinates in which damping and decay are 1, where there are any; the scale is found here."""
        known = damping + curvature.decay
        roots = known.rsqrt() if float(known.min()) > 0 else torch.ones_like(known)
        smallest = float((known * roots.square()).min())

        def product(vectors: Flat, rng: np.random.Generator) -> Flat:
            scaled = vectors * roots
            return (curvature.matvec(scaled, self._drawn(curvature, rng)) + scaled * damping) * roots

        rng = np.random.default_rng(self.seed)
        scale = 1.2 * max(_largest(product, torch.ones_like(known), rng) for _ in range(PROBES))

        def solve(vectors: Flat) -> Solved:
            found = self.solved(product, vectors * roots, scale, smallest)
            return Solved(tuple(each * roots for each in found.tries), found.notes)

        return solve

    def solved(self, product: SampledProduct, vectors: Flat, scale: float, smallest: float) -> Solved:
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
    product: SampledProduct,
    vectors: Flat,
    scale: float,
    terms: int,
    most: float,
    rng: np.random.Generator,
    advance: Callable[[], None],
) -> Flat | None:
    """The sum of so many terms; None where it diverges."""
    x = vectors / scale
    for _ in range(terms):
        x = x + (vectors - product(x, rng)) / scale
        advance()
        if not float(x.norm(dim=1).max()) <= most:
            return None
    return x


def _largest(product: SampledProduct, x: Float[Tensor, " P"], rng: np.random.Generator) -> float:
    """The largest eigenvalue over some random draws of examples, by power iteration."""
    x = torch.from_numpy(rng.standard_normal((1, len(x)))).to(x)
    size = 0.0
    for _ in range(POWER):
        x = product(x / x.norm(), rng)
        size = max(size, float(x.norm()))
    return size


NOTHING = 1e-10  # of the first step: a direction that short is rounding


@dataclass(frozen=True)
class Arnoldi(Solver):
    """Ritz vectors of the Krylov space v, Hv, H²v, … of a random v. Schioppa, Zablotskaia, Vilar and Sokolov (2022).

    differs from Schioppa et al.: damping is the metric of the space, every new direction is made orthogonal to all
    before it, and outside of the directions that are kept there is the damping alone, where they leave everything out.
    """

    steps: int = 100
    rank: int = 50
    seed: int = 0

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

        def solve(vectors: Flat) -> Solved:
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


SOLVERS: dict[str, Solver] = {
    "explicit": Explicit(),
    "cg": ConjugateGradients(),
    "lissa": Lissa(),
    "arnoldi": Arnoldi(),
}
