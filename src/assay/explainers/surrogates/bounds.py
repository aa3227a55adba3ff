"""KL confidence bounds of a Bernoulli rate (Kaufmann and Kalyanakrishnan, 2013)."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

STEPS = 40  # of a bisection: to some 1e-12


def lower(rate: Float[Tensor, "*N"], tries: Float[Tensor, "*N"], level: float) -> Float[Tensor, "*N"]:
    """The lower KL bound: the least q with tries · KL(rate, q) ≤ level."""
    return _furthest(rate, torch.zeros_like(rate), tries, level)


def upper(rate: Float[Tensor, "*N"], tries: Float[Tensor, "*N"], level: float) -> Float[Tensor, "*N"]:
    """The upper KL bound."""
    return _furthest(rate, torch.ones_like(rate), tries, level)


def exploration(arms: int, round_number: int, confidence: float) -> float:
    """The level at which the bounds hold for all arms in all rounds of KL-LUCB (α = 1.1)."""
    return math.log(405.5 * arms * round_number**1.1 / (1 - confidence))


def _furthest(
    rate: Float[Tensor, "*N"], end: Float[Tensor, "*N"], tries: Float[Tensor, "*N"], level: float
) -> Float[Tensor, "*N"]:
    # KL is cross-entropy less entropy, and only the former changes on the way.
    most = level / tries - torch.xlogy(rate, rate) - torch.xlogy(1 - rate, 1 - rate)
    inside, outside = rate, end
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        near = -torch.xlogy(rate, middle) - torch.xlogy(1 - rate, 1 - middle) <= most
        inside, outside = torch.where(near, middle, inside), torch.where(near, outside, middle)
    return inside
