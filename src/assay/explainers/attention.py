"""Attention weights as they are."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.types import Batch, Model


@torch.no_grad()
def attention(model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
    """The weights of the last attention layer, whatever the class."""
    weights: Tensor = model(model.embed(batch), batch).attention[-1]
    return weights.float()
