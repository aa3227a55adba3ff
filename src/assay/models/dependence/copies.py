"""State gradients of any network: one copy of the text per hidden state, one backward pass for all copies."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.models import budget
from assay.models.dependence.chunks import chunks, norms, truncated
from assay.models.network import Network
from assay.types import Batch, attended


def copied(model: Network, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B N T"]:
    """‖∂‖h_n‖/∂e_i‖ for each state and token."""
    real = attended(model, batch)
    example, item = real.nonzero(as_tuple=True)
    order = batch.lengths[example].argsort(stable=True, descending=True)
    example, item = example[order], item[order]
    found = norms(x[:1, :1]).new_zeros(*real.shape, x.shape[1])
    for chosen, width in chunks(batch, example, lambda width: budget.room(x.device, "versions", width)):
        rows, positions = example[chosen], item[chosen]
        # cuDNN's recurrent kernels refuse a backward pass outside training mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            words = x[rows, :width].detach().requires_grad_()
            sizes = norms(model.states(words, truncated(batch, rows, width)))
            own = sizes[torch.arange(len(rows), device=x.device), positions]
            (gradient,) = torch.autograd.grad(own.sum(), words)
        found[rows, positions, :width] = norms(gradient)
    return found * batch.mask[:, None]
