"""Masks from an explainer's scores."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.rationales.relaxations.drawing import Drawn

EDGE = 1e-6  # the chance of the last unit, and what that of the first one lacks of 1


@dataclass(frozen=True)
class Saliency:
    """Deterministic, without parameters: min–max scales the scores of each text."""

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        return Drawn(chance, chance)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        scores, real = theta[..., 0], mask[:, None]
        least = scores.masked_fill(~real, torch.inf).amin(-1, keepdim=True)
        most = scores.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
        spread = (most - least).where(most > least, 1.0)
        return (EDGE + (1 - 2 * EDGE) * (scores - least) / spread).where(real, 0.0)
