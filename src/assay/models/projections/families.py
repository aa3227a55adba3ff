"""Projections as one function of each score's height above a threshold that all items share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.models.projections.tsallis import Mask, Scores


@dataclass(frozen=True)
class Family:
    """φ(scale · z − t) for φ(u) = max(0, 1 + (α − 1) u)^(1/(α − 1)), which is exp(u) at α = 1."""

    alpha: float
    scale: float = 1.0

    def value(self, height: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        rate = self.alpha - 1
        return height.exp() if rate == 0 else (1 + rate * height).relu() ** (1 / rate)

    def derivative(self, height: Float[Tensor, "*N"]) -> Float[Tensor, "*N"]:
        """The derivative; 0 where there is no weight."""
        rate = self.alpha - 1
        base = 1 + rate * height
        return height.exp() if rate == 0 else torch.where(base > 0, base, 1.0) ** (1 / rate - 1) * (base > 0)

    def heights(self, scores: Scores, weights: Scores, mask: Mask) -> Scores:
        """scale · z − t, with the threshold t recovered from the weights."""
        rate = self.alpha - 1
        top = scores.masked_fill(~mask, -torch.inf).argmax(-1, keepdim=True)
        highest = weights.gather(-1, top)
        return self.scale * (scores - scores.gather(-1, top)) + (
            highest.log() if rate == 0 else (highest**rate - 1) / rate
        )
