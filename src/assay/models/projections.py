"""Projections of attention scores onto the simplex over real items, dense or sparse.

Most are of the Tsallis family: weights max(0, 1 + (α − 1)(z − t))^(1/(α − 1)) that sum to 1, with α = 1 softmax and
α = 2 sparsemax. They maximise Σ p z plus an entropy of Tsallis (Peters et al., 2019). Only the threshold t has to be
found; derivatives of any order follow from the weights themselves, so that none is lost where weights are zero.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.types import at_least_float32

Scores = Float[Tensor, "*B T"]
Mask = Bool[Tensor, "*B T"]

HALVINGS, STEPS = 8, 5  # after so many halvings Newton's steps double the digits


def tsallis(scores: Scores, mask: Mask, alpha: float, scale: float = 1.0) -> Scores:
    """The weights of the scaled scores; zeros where all items are masked."""
    found: Tensor = Tsallis.apply(scores, mask, alpha, scale)  # type: ignore[no-untyped-call]
    return found


class Tsallis(torch.autograd.Function):
    """The autograd function: Jacobian diag(s) − s sᵀ / Σ s for s = p^(2 − α) where p > 0 (Peters et al., 2019)."""

    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, mask: Tensor, alpha: float, scale: float) -> Tensor:
        if not scores.shape[-1]:
            return scores.clone()
        wide = at_least_float32(scores)
        known = wide.clamp(torch.finfo(wide.dtype).min / 4, torch.finfo(wide.dtype).max / 4)  # infinities too
        peak = known.masked_fill(~mask, torch.finfo(wide.dtype).min).amax(-1, keepdim=True)
        outside = -2 / (alpha - 1)  # whatever is not above half of it has no weight
        below = ((known - peak) * scale).clamp(outside, 0.0).masked_fill(~mask, outside)
        return (_weights(below, alpha) * mask).to(scores.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.alpha, ctx.scale = inputs[2:]
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _jacobian(ctx.saved_tensors[0], gradients[0], ctx.alpha, ctx.scale), None, None, None

    @staticmethod
    def jvp(ctx: Any, *steps: Any) -> Tensor:
        return _jacobian(ctx.saved_tensors[0], steps[0], ctx.alpha, ctx.scale)


def _jacobian(weights: Scores, vector: Scores, alpha: float, scale: float) -> Scores:
    """The (symmetric) Jacobian times a vector, in float32 at least."""
    wide = at_least_float32(weights)
    inside = wide > 0
    share = inside.to(wide) if alpha == 2 else torch.where(inside, wide, 1.0) ** (2 - alpha) * inside
    total = share.sum(-1, keepdim=True)
    mean = (share * vector).sum(-1, keepdim=True) / torch.where(total > 0, total, 1.0)
    return (share * (vector - mean) * scale).to(weights.dtype)


def _weights(below: Scores, alpha: float) -> Scores:
    """The weights of scores whose maximum is 0."""
    if alpha == 2:
        return _linear(below)
    return _square(below / 2) if alpha == 1.5 else _power(below, alpha - 1)


def _linear(below: Scores) -> Scores:
    """α = 2: the Euclidean projection onto the simplex, by sorting."""
    ordered = below.sort(-1, descending=True).values
    positions = torch.arange(1, below.shape[-1] + 1, device=below.device, dtype=below.dtype)
    sums = ordered.cumsum(-1) - 1
    size = (ordered * positions > sums).sum(-1, keepdim=True).clamp(min=1)
    return (below - sums.gather(-1, size - 1) / size).relu()


def _square(below: Scores) -> Scores:
    """α = 1.5: squares above a threshold, the root of a quadratic, by sorting."""
    ordered = below.sort(-1, descending=True).values
    positions = torch.arange(1, below.shape[-1] + 1, device=below.device, dtype=below.dtype)
    mean = ordered.cumsum(-1) / positions
    spread = ordered.square().cumsum(-1) / positions - mean.square()
    thresholds = mean - (1 / positions - spread).clamp(min=0).sqrt()
    size = (thresholds <= ordered).sum(-1, keepdim=True).clamp(min=1)
    found = (below - thresholds.gather(-1, size - 1)).relu().square()
    return found / found.sum(-1, keepdim=True).clamp(min=1 / below.shape[-1])


def _power(below: Scores, rate: float) -> Scores:
    """Other α: max(0, 1 + rate · height)^(1/rate) above a threshold, found by Newton's method with bisection.

    The sum of the weights is convex in the threshold and falls, so that Newton's step from anywhere ends below the
    root: the bracket is halved from above, and closed from below by Newton.
    """
    low = torch.zeros_like(below[..., :1])
    high = low - math.expm1(-rate * math.log(below.shape[-1])) / rate  # where all scores are the same
    for step in range(HALVINGS + STEPS):
        at = (low + high) / 2 if step < HALVINGS else low
        excess, derivative = _excess(below, at, rate)
        high = torch.where(excess < 0, at, high)
        low = torch.minimum(torch.maximum(low, at + excess / derivative), high)
    found = (((below - low) * rate).clamp(min=-1).log1p() / rate).exp()
    return found / found.sum(-1, keepdim=True).clamp(min=1 / below.shape[-1])


def _excess(below: Scores, threshold: Float[Tensor, "*B 1"], rate: float) -> tuple[Tensor, Tensor]:
    """The sum of the weights less 1, and how fast it falls as the threshold rises."""
    height = ((below - threshold) * rate).clamp(min=-1)
    weights = (height.log1p() / rate).exp()
    least = torch.finfo(below.dtype).tiny
    derivative = (weights / (1 + height).clamp(min=least)).sum(-1, keepdim=True)
    return weights.sum(-1, keepdim=True) - 1, derivative.clamp(min=least)


@dataclass(frozen=True)
class Family:
    """φ(scale · z − t) for φ(u) = max(0, 1 + (α − 1) u)^(1/(α − 1)), which is exp(u) at α = 1."""

    alpha: float
    scale: float = 1.0

    def value(self, height: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        rate = self.alpha - 1
        return height.exp() if rate == 0 else (1 + rate * height).relu() ** (1 / rate)

    def derivative(self, height: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        """The derivative; 0 where there is no weight."""
        rate = self.alpha - 1
        base = 1 + rate * height
        return height.exp() if rate == 0 else torch.where(base > 0, base, 1.0) ** (1 / rate - 1) * (base > 0)

    def heights(self, scores: Scores, weights: Scores, mask: Mask) -> Scores:
        """scale · z − t, with the threshold t recovered from the weights."""
        rate = self.alpha - 1
        top = scores.masked_fill(~mask, -torch.inf).argmax(-1, keepdim=True)
        highest = weights.gather(-1, top)
        return self.scale * (scores - scores.gather(-1, top)) + (
            highest.log() if rate == 0 else (highest**rate - 1) / rate
        )


Projection = Callable[[Scores, Mask], Scores]
"""Takes scores and the mask of real items; returns weights that sum to one over them, and zeros where there is none."""

WRITTEN = re.compile(r"\s*([a-z]+)\s*(?:\(([^()]*)\))?\s*")


def softmax(scores: Scores, mask: Mask) -> Scores:
    """exp(z) / Σ exp(z): every real item gets some weight."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1) * mask


def uniform(scores: Scores, mask: Mask) -> Scores:
    """1/N, whatever the scores: untrained attention (Wiegreffe and Pinter, 2019)."""
    shared = scores.masked_fill(mask, 1.0).masked_fill(~mask, 0.0)  # of the scores, so that there is a gradient: none
    return shared / shared.detach().sum(-1, keepdim=True).clamp(min=1)


def sparsemax(scores: Scores, mask: Mask) -> Scores:
    """The Euclidean projection of the scores onto the simplex (Martins and Astudillo, 2016)."""
    return tsallis(scores, mask, 2.0)


@dataclass(frozen=True)
class Sparsegen:
    """argmin ‖p − z‖² − λ‖p‖² on the simplex, which is sparsemax(z / (1 − λ)) (Laha et al., 2018)."""

    strength: float

    def __post_init__(self) -> None:
        if not -math.inf < self.strength < 1:
            raise AssayError(f"The λ of sparsegen must be below 1, got {self.strength:g}.")

    def __call__(self, scores: Scores, mask: Mask) -> Scores:
        return tsallis(scores, mask, 2.0, 1 / (1 - self.strength))


@dataclass(frozen=True)
class Entmax:
    """α-entmax, between softmax (α = 1) and sparsemax (α = 2) (Peters et al., 2019)."""

    # differs from Peters et al. (2019): no α above 2, where the gradient of a weight has no bound as it reaches zero

    alpha: float

    def __post_init__(self) -> None:
        if not 1 <= self.alpha <= 2:
            raise AssayError(f"The α of entmax must be from 1 to 2, got {self.alpha:g}.")

    def __call__(self, scores: Scores, mask: Mask) -> Scores:
        return softmax(scores, mask) if self.alpha == 1 else tsallis(scores, mask, float(self.alpha))


PROJECTIONS: dict[str, Projection] = {"softmax": softmax, "sparsemax": sparsemax, "uniform": uniform}
GRADED: dict[str, Callable[[float], Projection]] = {"entmax": Entmax, "sparsegen": Sparsegen}
"""Those that a number sets, written behind the name."""

EXAMPLES = {"entmax": 1.5, "sparsegen": 0.5}
"""A number for each that it takes."""


def family(project: Projection) -> Family | None:
    """The parametric family of a projection, where it has one; uniform weights are the limit of scores times 0."""
    if isinstance(project, Entmax):
        return Family(project.alpha)
    if isinstance(project, Sparsegen):
        return Family(2.0, 1 / (1 - project.strength))
    plain: dict[Projection, Family] = {softmax: Family(1.0), sparsemax: Family(2.0), uniform: Family(2.0, 0.0)}
    return plain.get(project)


@cache
def projection(text: str) -> Projection:
    """The projection from its text form, as in softmax or sparsegen(0.5)."""
    parts = WRITTEN.fullmatch(text)
    if parts is None or parts[1] not in (*PROJECTIONS, *GRADED):
        raise unknown("projection", text, (*PROJECTIONS, *(f"{name}(number)" for name in GRADED)))
    name, number = parts.groups()
    if name in PROJECTIONS:
        if number is not None:
            raise AssayError(f"The projection {name} takes no number.")
        return PROJECTIONS[name]
    try:
        given = float(number or "")
    except ValueError:
        written = f"{name}({EXAMPLES[name]})"
        raise AssayError(f"The projection {name} needs a number, as in {written}, got {number or ''!r}.") from None
    return GRADED[name](given)
