"""Search directions for attention: gradients projected onto constraints."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.intervene.adversary.problem import Problem

RIDGE = 1e-13


def jsd_gradient(problem: Problem, attention: Float[Tensor, "B K T"]) -> Float[Tensor, "B K T"]:
    """The gradient of 2 · JSD from the observed attention; finite where a weight is 0."""
    both = attention + problem.weights[:, None]
    gradient = (2 * attention / both.where(both > 0, 1.0)).clamp(min=torch.finfo(both.dtype).tiny).log()
    return gradient.where(both > 0, math.log(2.0))


def tvd_gradient(problem: Problem, attention: Float[Tensor, "B K T"], kink: float = 0.0) -> Float[Tensor, "B K T"]:
    """The gradient of the total variation distance of the outputs.

    Its kinks are rounded: a class that has moved by less than `kink` is on neither side, but between them.
    """
    output = (attention @ problem.values).softmax(-1)
    tiny = torch.finfo(output.dtype).tiny
    pull = 0.5 * output * ((output - problem.observed[:, None]) / max(kink, tiny)).clamp(-1, 1)
    return (pull - output * pull.sum(-1, keepdim=True)) @ problem.values.mT


def free(direction: Float[Tensor, "B K T"], held: Float[Tensor, "B K T N"]) -> Float[Tensor, "B K T"]:
    """The projection of a direction onto the null space of linear constraints Σ_t direction_t held_t.

    Only tokens in that sum have a part in it.
    """
    gram = held.mT @ held
    unused = gram.diagonal(dim1=-2, dim2=-1) == 0
    factor = torch.linalg.cholesky_ex(gram + torch.diag_embed(unused + RIDGE)).L
    direction = direction * held[..., 0]
    for _ in range(2):  # the second time takes out what rounding left
        direction = direction - (held @ torch.cholesky_solve(held.mT @ direction[..., None], factor))[..., 0]
    return direction


def scaled(direction: Float[Tensor, "B K T"]) -> tuple[Float[Tensor, "B K T"], Float[Tensor, "B K 1"]]:
    """The direction scaled to a largest entry of 1, and its original size."""
    size = direction.abs().amax(-1, keepdim=True)
    return direction / size.clamp(min=torch.finfo(size.dtype).tiny), size


def until_zero(
    attention: Float[Tensor, "B K T"], direction: Float[Tensor, "B K T"]
) -> tuple[Float[Tensor, "B K 1"], Int[Tensor, "B K 1"]]:
    """The step length at which a weight becomes 0, and its index; 0 if no step is possible."""
    length, token = (-attention / direction).where(direction < -RIDGE, torch.inf).min(-1, keepdim=True)
    return length.where(length.isfinite(), 0.0), token
