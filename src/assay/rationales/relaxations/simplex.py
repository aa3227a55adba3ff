"""Masks by Euclidean projection onto a budget (a capped simplex), deterministic."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.rationales.decoding import Decoding
from assay.rationales.relaxations.drawing import Drawn

HALVINGS = 60  # of the interval in which a threshold lies


@dataclass(frozen=True)
class CappedSimplex:
    """z maximises θ·z / τ − ‖z‖² / 2 for 0 ≤ z ≤ 1 and Σz ≤ k, where k is the `rate` of units, rounded up.

    SPECTRA (Guerreiro and Martins, 2021) with a budget alone. As the temperature goes to 0, z picks the k best units
    of positive score, so units are ranked by σ(θ).
    """

    # differs from Guerreiro and Martins (2021): no reward for neighbours, so that it has a closed form
    rate: float = 0.2
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise AssayError(f"A temperature must be above 0, got {self.temperature:g}.")

    @property
    def parameters(self) -> int:
        return 1

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        budget = Decoding("top", self.rate).counts(mask)[:, None, None]
        real = mask[:, None].expand(theta.shape[:-1])
        return Drawn(capped(theta[..., 0] / self.temperature, real, budget.to(theta)), self.chance(theta, mask))

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        return theta[..., 0].sigmoid() * mask[:, None]


def capped(
    scores: Float[Tensor, "*N U"], mask: Bool[Tensor, "*N U"], budget: Float[Tensor, "*#N 1"]
) -> Float[Tensor, "*N U"]:
    """clip(scores − τ, 0, 1) with the smallest τ ≥ 0 that keeps the sum within the budget.

    The set of units strictly between 0 and 1 is found by bisection; on it τ is linear in the scores, so the gradient
    of z is exact: that of the scores less its mean on this set where the budget binds.
    """
    with torch.no_grad():
        fixed = scores.masked_fill(~mask, -torch.inf)
        low = torch.zeros_like(scores[..., :1])
        high = fixed.amax(-1, keepdim=True).clamp(min=0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            over = (fixed - middle).clamp(0, 1).sum(-1, keepdim=True) > budget
            low, high = middle.where(over, low), high.where(over, middle)
        binding = fixed.clamp(0, 1).sum(-1, keepdim=True) > budget
        level = high.where(binding, torch.zeros_like(high))
        full = fixed - level >= 1
        free = (fixed > level) & ~full
        count = free.sum(-1, keepdim=True)
    exact = ((scores * free).sum(-1, keepdim=True) + full.sum(-1, keepdim=True) - budget) / count.clamp(min=1)
    level = exact.where(binding & (count > 0), level)
    return torch.where(free, scores - level, full.to(scores)).clamp(0, 1)
