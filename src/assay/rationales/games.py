"""Moves (which players minimise which loss) and stages of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play
from assay.rationales.terms import Term

KEPT = 0.95  # of the mean cost so far, at each step


@dataclass(frozen=True)
class Move:
    """One gradient update of some players on a weighted sum of loss terms."""

    players: tuple[str, ...]
    terms: tuple[tuple[float, Term], ...]

    def costs(self, play: Play) -> Float[Tensor, " B"]:
        """The cost of each text."""
        total = play.x.new_zeros(len(play.batch))
        for weight, term in self.terms:
            total = total + weight * term(play)
        return total

    def loss(self, play: Play, weights: Float[Tensor, " B"]) -> Float[Tensor, ""]:
        """The differentiable loss: the mean cost, and the score function (REINFORCE) where masks have no gradient.

        Its baseline is a running mean of costs, which leaves its expectation as it is (Williams, 1992).
        """
        costs = self.costs(play)
        shares = weights / weights.sum()
        loss = (costs * shares).sum()
        likely = play.drawn.log_probability if "selector" in self.players else None
        if likely is not None:
            sums = play.players.baseline
            expected = sums[0] / sums[1].clamp(min=1e-9) if sums[1] > 0 else loss.detach()
            loss = loss + ((costs.detach() - expected) * likely * shares).sum()
            with torch.no_grad():
                sums.mul_(KEPT).add_(torch.stack([(costs * shares).sum(), torch.ones_like(sums[1])]) * (1 - KEPT))
        return loss


@dataclass(frozen=True)
class Stage:
    """Moves made in turn on each batch, for a `share` of all epochs.

    Masks are drawn anew for each move, or `decoded` without chance. Rates of learning are those of the training times
    the `pace` of each player; with `measured`, that of the predictor is also multiplied by the share of words that it
    gets to read, as Liu et al. (2023) ask of it, but by no less than .05.
    """

    moves: tuple[Move, ...]
    share: float = 1.0
    decoded: bool = False
    pace: Mapping[str, float] = field(default_factory=dict)
    measured: bool = False

    @property
    def players(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(player for move in self.moves for player in move.players))
