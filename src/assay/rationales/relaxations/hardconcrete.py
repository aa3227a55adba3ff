"""Hard concrete masks: soft values, often exactly 0 or 1 by stretching and clipping."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.rationales.relaxations.drawing import Drawn
from assay.rationales.relaxations.noise import logistic


@dataclass(frozen=True)
class HardConcrete:
    """z = clip(low + (high − low) σ((θ + noise) / τ), 0, 1) with logistic noise; Louizos et al. (2018)."""

    temperature: float = 2 / 3
    low: float = -0.1
    high: float = 1.1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise AssayError(f"A temperature must be above 0, got {self.temperature:g}.")
        if not (self.low < 0 and self.high >= 1):
            raise AssayError(f"A mask is stretched from below 0 to 1 or above, not {self.low:g} to {self.high:g}.")

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        soft = ((theta[..., 0] + logistic(theta[..., 0])) / self.temperature).sigmoid()
        stretched = self.low + (self.high - self.low) * soft
        return Drawn(stretched.clamp(0, 1).to(theta) * mask[:, None], self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return self._above(theta, -self.low / self.high) * mask[:, None]

    def ends(
        self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]
    ) -> tuple[Float[Tensor, "B K U"], Float[Tensor, "B K U"]]:
        """P(z = 0) and P(z = 1)."""
        whole = self._above(theta, (1 - self.low) / (self.high - 1) if self.high > 1 else inf)
        return 1 - self.chance(theta, mask), whole * mask[:, None]

    def _above(self, theta: Float[Tensor, "B K U P"], odds: float) -> Float[Tensor, "B K U"]:
        """The probability that the unstretched value has higher odds."""
        return (theta[..., 0] - self.temperature * log(odds)).sigmoid()
