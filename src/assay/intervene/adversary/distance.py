"""The Jensen-Shannon divergence of attentions, dense and sparse."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

LOG2 = math.log(2.0)


def jsd(p: Float[Tensor, "*#B T"], q: Float[Tensor, "*#B T"]) -> Float[Tensor, "*B"]:
    """The Jensen-Shannon divergence over the last axis in nats; values and gradients are finite at zero weights."""
    apart = shared(p, q) + 0.5 * LOG2 * (p + q)
    return apart.sum(-1).clamp(min=0)


def shared(p: Float[Tensor, "*#B"], q: Float[Tensor, "*#B"]) -> Float[Tensor, "*B"]:
    """One token's contribution to JSD − log 2; 0 where either weight is 0, else negative.

    JSD(P, Q) = log 2 + Σ_t shared(p_t, q_t) for two distributions, so a sparse P needs only its own tokens.
    """
    return 0.5 * (_x_log_x(p) + _x_log_x(q) - _x_log_x(p + q))


def _x_log_x(x: Tensor) -> Tensor:
    return x * x.clamp(min=torch.finfo(x.dtype).tiny).log()
