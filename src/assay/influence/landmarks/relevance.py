"""Relevance of landmarks for the logits, by layer-wise relevance propagation (Croce et al., 2019)."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.influence.landmarks.network import ACTIVATIONS, LandmarkNetwork


@torch.no_grad()
def relevance(network: LandmarkNetwork, likeness: Float[Tensor, "B M"], epsilon: float = 0.0) -> Float[Tensor, "B C M"]:
    """The share of each logit that each landmark has, by the ε rule (Bach et al., 2015).

    With ε = 0 and without biases the parts sum to the logit; biases keep their share. Of a centred network, the part is
    that of what a landmark is more alike than usual.
    """
    if epsilon < 0:
        raise AssayError(f"The ε of relevance propagation must be at least 0, got {epsilon:g}.")
    sums = [network.projected(likeness)]  # what goes into each activation, from below
    activate = ACTIVATIONS[network.layers.activation]
    for number, linear in enumerate(network.linear):
        sums.append(linear(activate(sums[-1]) if number else sums[-1]))
    # Relevances are handed down as multiples of the values that they belong to, which are finite where a value is 0.
    multipliers = torch.diag_embed(_kept(sums[-1], epsilon))
    for number in range(len(network.linear) - 1, -1, -1):
        passed = _activated(sums[number], activate(sums[number]), epsilon) if number else _kept(sums[0], epsilon)
        multipliers = multipliers @ network.weights[number] * passed[:, None]
    sizes = [each.shape[1] for each in network.projections]
    parts = zip(multipliers.split(sizes, dim=-1), network.projections, strict=True)  # type: ignore[no-untyped-call]
    return (
        torch.cat([part @ each.T for part, each in parts], dim=-1) * (likeness - network.usual)[:, None] * network.scale
    )


def _kept(sums: Float[Tensor, "B K"], epsilon: float) -> Float[Tensor, "B K"]:
    """The factor z / (z + ε sign z)."""
    return sums.abs() / (sums.abs() + epsilon) if epsilon else torch.ones_like(sums)


def _activated(sums: Float[Tensor, "B K"], made: Float[Tensor, "B K"], epsilon: float) -> Float[Tensor, "B K"]:
    """The activation of z divided by z + ε sign z."""
    return made / (sums + epsilon * sums.sign()).where(sums != 0, 1.0)


def contrast(values: Float[Tensor, "B C *M"], classes: Int[Tensor, " B"]) -> Float[Tensor, " B *M"]:
    """The values of a class less the mean over all others: what all share decides nothing."""
    own, count = values[torch.arange(len(values), device=values.device), classes], values.shape[1]
    return own - (values.sum(1) - own) / max(1, count - 1)
