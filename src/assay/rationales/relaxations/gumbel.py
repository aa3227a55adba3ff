"""Straight-through Gumbel–softmax masks: hard values with the gradient of soft ones."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from assay.rationales.relaxations.drawing import Drawn
from assay.rationales.relaxations.noise import logistic


@dataclass(frozen=True)
class GumbelStraightThrough:
    """z ~ Bernoulli(σ(θ)); its gradient is that of σ((θ + noise) / τ) with logistic noise.

    Jang et al. (2017): Gumbel noise on both of two logits, whose difference is logistic.
    """

    temperature: float = 1.0

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        soft = ((theta[..., 0] + logistic(theta[..., 0])) / self.temperature).sigmoid()
        hard = (soft > 0.5).to(soft)
        return Drawn((hard - soft.detach() + soft).to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]
