"""State gradients of a convolution: states whose receptive fields do not overlap share one backward pass."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.models.dependence.chunks import norms
from assay.models.encoders import Convolution
from assay.models.network import Network
from assay.types import Batch


def windowed(model: Network, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T T"]:
    """‖∂‖h_n‖/∂e_i‖ for each state and token; every (2r + 1)-th state shares a backward pass, r being their reach."""
    reach = max(model.encoder.widths) // 2 if isinstance(model.encoder, Convolution) else 0
    tokens, period = batch.ids.shape[1], 2 * reach + 1
    positions = torch.arange(tokens, device=x.device)
    with torch.enable_grad():
        words = x.detach().requires_grad_()
        sizes = norms(model.states(words, batch))
    found = sizes.new_zeros(len(batch), tokens, tokens).detach()
    for first in range(min(period, tokens)):
        with torch.enable_grad():
            apart = sizes[:, first::period].sum()
        (gradient,) = torch.autograd.grad(apart, words, retain_graph=True)
        seen_by = positions + reach - (positions - first + reach) % period  # the one state of these that sees the word
        there = (seen_by >= 0) & (seen_by < tokens)
        found[:, seen_by[there], positions[there]] = norms(gradient)[:, there]
    return found * (batch.mask[:, None] & batch.mask[..., None])
