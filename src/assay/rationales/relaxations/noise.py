"""The random numbers behind a draw."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

EDGE = 1e-6  # uniform numbers stay this far from 0 and 1


def uniform(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """Between 0 and 1, in single precision at least: half as many bits leave out all that is rare."""
    precise = torch.promote_types(like.dtype, torch.float32)
    return torch.rand_like(like, dtype=precise).clamp(EDGE, 1 - EDGE)


def logistic(like: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
    """The difference of two Gumbel numbers."""
    return uniform(like).logit()
