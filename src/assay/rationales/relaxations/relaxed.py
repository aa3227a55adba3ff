"""Relaxed Bernoulli (binary concrete) masks: soft and differentiable."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.rationales.relaxations.drawing import Drawn
from assay.rationales.relaxations.noise import logistic


@dataclass(frozen=True)
class RelaxedBernoulli:
    """z = σ((θ + noise) / τ) with logistic noise: the binary concrete distribution of Maddison et al. (2017).

    z is never 0, so its chance is that of z > 1/2, which is σ(θ) at any temperature.
    """

    temperature: float = 0.7

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise AssayError(f"A temperature must be above 0, got {self.temperature:g}.")

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        soft = ((theta[..., 0] + logistic(theta[..., 0])) / self.temperature).sigmoid()
        return Drawn(soft.to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]
