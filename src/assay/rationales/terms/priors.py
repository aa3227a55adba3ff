"""KL divergence of selection probabilities from a prior."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import AssayError
from assay.rationales.play import Play


@dataclass(frozen=True)
class Prior:
    """The mean over units of KL(Bernoulli(chance) ‖ Bernoulli(rate)); Paranjape et al. (2020)."""

    rate: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise AssayError(f"The rate of a prior must be between 0 and 1, got {self.rate:g}.")

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        mask = play.grouping.mask[:, None]
        costs = divergence(play.drawn.chance, self.rate) * mask
        return costs.mean(1).sum(-1) / mask.sum((1, 2))


def divergence(chance: Float[Tensor, "*N"], rate: float) -> Float[Tensor, "*N"]:
    """KL(Bernoulli(chance) ‖ Bernoulli(rate)), with a finite gradient at 0 and 1."""
    edge = torch.finfo(chance.dtype).eps
    yes = chance.clamp(edge, 1 - edge)
    return yes * (yes / rate).log() + (1 - yes) * ((1 - yes) / (1 - rate)).log()
