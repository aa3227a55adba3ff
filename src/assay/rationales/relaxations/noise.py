"""Noise samples for relaxations."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

EDGE = 1e-6  # uniform numbers stay this far from 0 and 1


def uniform(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Uniform on (0, 1), in single precision at least, since half precision loses the tails."""
    precise = torch.promote_types(like.dtype, torch.float32)
    return torch.rand_like(like, dtype=precise).clamp(EDGE, 1 - EDGE)


def logistic(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Logistic noise: the difference of two Gumbel samples."""
    return uniform(like).logit()
