"""Straight-through top-k masks: the best units of each text, with the gradient of their probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from assay.rationales.decoding import Decoding
from assay.rationales.relaxations.drawing import Drawn


@dataclass(frozen=True)
class TopKStraightThrough:
    """z is 1 for the best units, the `rate` of them rounded up, and its gradient is that of σ(θ)."""

    rate: float = 0.2

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        hard = Decoding("top", self.rate)(theta[..., 0].detach(), mask)
        return Drawn(hard - chance.detach() + chance, chance)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]
