"""Gradients of the explained class's probability with respect to the embeddings."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.types import Batch, Edit, Model

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]


def gradient(model: Model, batch: Batch, target: Target) -> Scores:
    """|∂p/∂e_t · e_t| with attention held fixed (Jain and Wallace, 2019, algorithm 1: the one-hot derivative)."""
    x, slope = _slope(model, batch, target, _held)
    return (x * slope).sum(-1).abs()


def gradient_norm(model: Model, batch: Batch, target: Target) -> Scores:
    """‖∂p/∂e_t‖₂ (Simonyan et al., 2014)."""
    _, slope = _slope(model, batch, target)
    return (slope * slope).sum(-1).sqrt()


def input_x_gradient(model: Model, batch: Batch, target: Target) -> Scores:
    """∂p/∂e_t · e_t, signed: positive speaks for the class (Shrikumar et al., 2017)."""
    x, slope = _slope(model, batch, target)
    return (x * slope).sum(-1)


def _held(weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
    return weights.detach()


def _slope(
    model: Model, batch: Batch, target: Target, edit: Edit | None = None
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """The embeddings and the probability's gradient there; 0 on padding."""
    # cuDNN's recurrent kernels refuse a backward pass outside training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        x = model.embed(batch).detach().requires_grad_()
        chosen = model(x, batch, edit).probabilities.gather(1, target[:, None]).sum()
        (slope,) = torch.autograd.grad(chosen, x)
    visible = batch.mask[..., None]
    return (x.detach() * visible).float(), (slope * visible).float()
