"""Independent Bernoulli masks, trained by the score function."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from assay.rationales.relaxations.drawing import Drawn


@dataclass(frozen=True)
class Bernoulli:
    """z ~ Bernoulli(σ(θ)); Lei et al. (2016), trained by REINFORCE (Williams, 1992)."""

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        z = torch.bernoulli(chance.detach())
        unlikely = F.binary_cross_entropy_with_logits(theta[..., 0], z, reduction="none")
        return Drawn(z, chance, -(unlikely * mask[:, None]).sum((1, 2)))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]
