"""The Tsallis family: weights max(0, 1 + (α − 1)(z − t))^(1/(α − 1)) that sum to 1; α = 1 softmax, 2 sparsemax.

They maximise Σ p z plus an entropy of Tsallis (Peters et al., 2019). Only the threshold t has to be found; derivatives
of any order follow from the weights themselves, so that none is lost where weights are zero.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

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
