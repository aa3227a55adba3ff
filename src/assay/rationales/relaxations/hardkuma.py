"""HardKuma masks: a stretched and clipped Kumaraswamy distribution with two shape parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError
from assay.rationales.relaxations.drawing import Drawn
from assay.rationales.relaxations.noise import uniform
from assay.types import at_least_float32

SHAPES = 1e-2, 100.0  # of the distribution, at least and at most
NODES = 32  # of the quadrature


@dataclass(frozen=True)
class HardKuma:
    """z = clip(low + (high − low) k, 0, 1), where P(k > x) = (1 − x^a)^b; Bastings et al. (2019).

    k is Kumaraswamy's, whose shapes a and b are softplus(θ).
    """

    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        if not (self.low < 0 and self.high > 1):
            raise AssayError(f"A mask must be stretched from below 0 to above 1, got {self.low:g} to {self.high:g}.")

    @property
    def parameters(self) -> int:
        return 2

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        a, b = self._shapes(theta)
        chosen = ((-torch.expm1(uniform(a).log() / b)).log() / a).exp()  # for which P(k > x) is uniform
        z = (self.low + (self.high - self.low) * chosen).clamp(0, 1)
        return Drawn(z.to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return self._above(theta, 0.0).to(theta) * mask[:, None]

    def ends(
        self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]
    ) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B K U"]]:
        """P(z = 0) and P(z = 1)."""
        return 1 - self.chance(theta, mask), self._above(theta, 1.0).to(theta) * mask[:, None]

    def mean(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """E[z], the integral of P(z > x) from 0 to 1, by Gauss–Legendre quadrature."""
        # differs from the code of Bastings et al. (2019), where this is the mean of k, neither stretched nor clipped
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        parts = [weight / 2 * self._above(theta, (node + 1) / 2) for node, weight in zip(nodes, weights, strict=True)]
        return torch.stack(parts).sum(0).to(theta) * mask[:, None]

    def _above(self, theta: Float[Tensor, "B K U P"], x: float) -> Float[Tensor, "B K U"]:
        """P(z > x), for x = 1 that of z = 1."""
        a, b = self._shapes(theta)
        unstretched = (x - self.low) / (self.high - self.low)
        return (b * torch.log1p(-(unstretched**a))).exp()

    @staticmethod
    def _shapes(theta: Float[Tensor, "B K U P"]) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B K U"]]:
        a, b = F.softplus(at_least_float32(theta)).clamp(*SHAPES).unbind(-1)
        return a, b
