"""The boundaries at which a text is split, and the interactions across all others."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.hierarchies.interactions import joint_gains, shares
from assay.explainers.hierarchies.tables import edges
from assay.explainers.hierarchies.versions import Versions

TIE = 1e-5  # interactions as near as this, each weight being 1, are told apart by rounding: the first one is taken


class Cuts:
    """The boundaries cut so far, and the interaction of the parts on both sides of every other boundary."""

    def __init__(self, versions: Versions, window: int) -> None:
        lengths = versions.batch.lengths
        positions = torch.arange(versions.batch.ids.shape[1] + 1, device=lengths.device)
        self._versions, self._lengths, self._window = versions, lengths, window
        self._inside = (positions > 0) & (positions < lengths[:, None])
        self.made = (positions == 0) | (positions == lengths[:, None])
        self.around = torch.full((*self.made.shape, 2 * window + 3), -1, device=lengths.device)  # of each position
        self._gains = torch.zeros(*self.made.shape, 2 * window + 1, dtype=torch.float64, device=lengths.device)
        self._neighbours = torch.zeros_like(self.made, dtype=torch.long)
        self._shares = shares(max(len(positions), 2 * window + 1), 2 * window + 1).to(lengths.device)

    def interactions(self, players: int | None = None) -> Float[Tensor, "B E"]:
        """The Shapley interaction of the two parts at each boundary, infinite where none can be cut.

        That is Σ_S s! (n − s − 2)! / (n − 1)! times the joint gain, over sets S of the phrases around the two. The n
        players are these and the two, unless another number is given. Only positions whose surroundings have changed
        are read.
        """
        around = edges(self.made, self._lengths, self._window + 1)
        open_ = self._inside & ~self.made
        example, position = ((around != self.around).any(-1) & open_).nonzero(as_tuple=True)
        self.around = around
        if len(example):
            found = joint_gains(self._versions, example, around[example, position])
            self._gains[example, position], self._neighbours[example, position] = found
        return (self._gains * self._weights(players)).sum(-1).masked_fill(~open_, torch.inf)

    def weakest(self, players: int | None = None) -> Int[Tensor, " B"]:
        """The boundary of each text with the weakest interaction."""
        values = self.interactions(players)
        margin = TIE * self._weights(players)[..., 0].amax(-1, keepdim=True)
        return (values <= values.amin(-1, keepdim=True) + margin).int().argmax(-1)

    def _weights(self, players: int | None) -> Float[Tensor, "B E S"]:
        count = self._neighbours + 2 if players is None else torch.full_like(self._neighbours, players)
        return self._shares[count - 1]
