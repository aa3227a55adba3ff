"""The normalised mixture of values whose attention weight is a sum of several."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def mixed(
    parts: Float[Tensor, "*B M"], weight: Float[Tensor, "*B #M"], otherwise: Float[Tensor, "*B M"]
) -> Float[Tensor, "*B M"]:
    """Divides parts, which hold a weight as a factor, by that weight; `otherwise` where the weight is 0."""
    there = weight > torch.finfo(weight.dtype).tiny ** 0.5  # a quotient's gradient divides by the square of it
    return torch.where(there, parts / torch.where(there, weight, 1.0), otherwise)
