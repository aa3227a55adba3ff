"""Constraints by a Lagrange multiplier."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play
from assay.rationales.player_building import LagrangeMultiplier
from assay.rationales.terms import Term


@dataclass(frozen=True)
class Constraint:
    """Lagrangian α (cost − limit): selectors minimise it, while the multiplier α, a player too, maximises it.

    All of them move at once: the value is 0, its gradient is that of either side with the other held fixed.
    """

    term: Term
    limit: float

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        multiplier = play.players.extras["multiplier"]
        assert isinstance(multiplier, LagrangeMultiplier)
        with torch.no_grad():
            multiplier.value.clamp_(0, multiplier.most)  # where the last step may have led it out
        excess = self.term(play) - self.limit
        return multiplier.value.detach() * excess - multiplier.value * excess.detach()
