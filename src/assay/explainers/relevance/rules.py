"""Rules: replacements of the derivative of each kind of operation; values stay the model's own.

Relevance is then gradient × input, whatever the rules. One record of functions is one column of the literature's table:
GRADIENT (nothing changed), `epsilon` (layer-wise relevance propagation), `attention_aware` (AttnLRP), and DEEPLIFT in
the module `secants`. What is linear, and has no sum of several inputs, needs no rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from assay.models.projections import Projection

Numbers = Float[Tensor, "*N"]
Multiplier = Tensor | float
"""The local multiplier in the backward pass; a number is 1 (unchanged) or 0 (nothing passes)."""


@dataclass(frozen=True)
class Function:
    """A scalar function with its derivative."""

    value: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    smooth: bool = True


TANH = Function(torch.tanh, lambda x: 1 - x.tanh().square())
SIGMOID = Function(torch.sigmoid, lambda x: x.sigmoid() * (1 - x.sigmoid()))
RELU = Function(F.relu, lambda x: (x > 0).to(x), smooth=False)
GELU = Function(F.gelu, lambda x: torch.special.ndtr(x) + x * torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Rules:
    """A set of rules: multipliers of elementwise operations, and whole operations with their own derivative."""

    total: Callable[[Tensor], Multiplier]  # of a sum's terms, given the sum
    unary: Callable[[Function, Tensor, Tensor], Tensor]  # of a function's argument, given argument and value
    gate: Callable[[Tensor, Tensor], Multiplier]  # the same for the sigmoid that opens a gate
    product: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # of two factors
    bilinear: Callable[[Tensor, Tensor], Tensor]  # the matrix product of two things that depend on the input
    weights: Callable[[Projection, Tensor, Tensor], Tensor]  # attention weights of scores under a mask
    standard: Callable[[Tensor, float], Tensor]  # a layer norm before its weights
    weighs: bool = True  # whether attention weights are explained, or else held


def straight(value: Numbers, stand_in: Numbers) -> Numbers:
    """The value, with the derivative of the stand-in (straight-through)."""
    return value.detach() + (stand_in - stand_in.detach())


def times(*factors: Multiplier) -> Multiplier:
    """The product of the factors that are not 1."""
    if any(isinstance(factor, float) and factor == 0 for factor in factors):
        return 0.0
    tensors = [factor for factor in factors if isinstance(factor, Tensor)]
    return math.prod(tensors[1:], start=tensors[0]) if tensors else 1.0


def whole(total: Numbers) -> float:
    return 1.0


def derivative(function: Function, x: Numbers, value: Numbers) -> Numbers:
    return function.derivative(x)


def opening(x: Numbers, value: Numbers) -> Numbers:
    return value * (1 - value)


def crosswise(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    return right, left


def standard(x: Float[Tensor, "*N M"], floor: float) -> Float[Tensor, "*N M"]:
    return F.layer_norm(x, x.shape[-1:], eps=floor)


def projected(project: Projection, scores: Numbers, mask: Bool[Tensor, "*N"]) -> Numbers:
    return project(scores, mask)


GRADIENT = Rules(whole, derivative, opening, crosswise, torch.matmul, projected, standard)


def epsilon(stabiliser: float) -> Rules:
    """Layer-wise relevance propagation (Bach et al., 2015; gates: Arras et al., 2017; attention: Ali et al., 2022).

    A sum hands its relevance down in proportion to its terms, the bias being one of them; gates, attention weights and
    a layer norm's deviation are held and get nothing; an activation passes on what it got.
    """

    def total(z):  # type: ignore[no-untyped-def]
        # R_i = z_i / (z + ε sign z) R says that the multiplier R/z shrinks by |z| / (|z| + ε).
        return 1.0 if stabiliser == 0 else z.abs() / (z.abs() + stabiliser)

    return Rules(total, ratio, _held, crosswise, torch.matmul, projected, _held_deviation, weighs=False)


def attention_aware(stabiliser: float) -> Rules:
    """AttnLRP (Achtibat et al., 2024): as `epsilon`, but attention weights are explained too.

    The softmax is expanded at its argument, which makes its multiplier the derivative, and so is whatever stands in its
    position; a matrix product of two things that depend on the input gives half to each.
    """
    # differs from Achtibat et al. (2024): they have no rule for recurrent gates; these stay held.
    return replace(epsilon(stabiliser), bilinear=_halves, weighs=True)


def ratio(function: Function, x: Numbers, value: Numbers) -> Numbers:
    """The multiplier φ(x)/x: the activation passes on its relevance."""
    return (value / x).nan_to_num_(nan=function.derivative(x.new_zeros(())).item())


def _held(x: Numbers, value: Numbers) -> float:
    return 0.0


def _held_deviation(x: Float[Tensor, "*N M"], floor: float) -> Float[Tensor, "*N M"]:
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.detach().square().mean(-1, keepdim=True) + floor).rsqrt()


def _halves(left: Float[Tensor, "*N S K"], right: Float[Tensor, "*N K T"]) -> Float[Tensor, "*N S T"]:
    return (left @ right.detach() + left.detach() @ right) / 2
