"""Straight-through masks: deterministic hard values with the gradient of their probabilities."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from assay.rationales.relaxations.drawing import Drawn


@dataclass(frozen=True)
class StraightThrough:
    """z is 1 where σ(θ) is above one half, and its gradient is that of σ(θ); Chang et al. (2019)."""

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        chance = self.chance(theta, mask)
        return Drawn((chance > 0.5).to(chance) - chance.detach() + chance, chance)

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]
