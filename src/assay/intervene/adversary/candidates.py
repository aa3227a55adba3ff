"""Sparse attentions: their distances in constant time each, and the choice of a few that differ."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.intervene.adversary.distance import LOG2, shared

SHORTLIST = 256


@dataclass(frozen=True, eq=False)
class Candidates:
    """N attentions an example with at most S non-zero weights; a score is the JSD from the observed attention, or
    minus infinity where the candidate is not allowed."""

    positions: Int[Tensor, "B N S"]
    shares: Float[Tensor, "B N S"]
    scores: Float[Tensor, "B N"]

    def join(self, other: Candidates) -> Candidates:
        """Both lists as one."""
        return Candidates(
            torch.cat([self.positions, other.positions], 1),
            torch.cat([self.shares, other.shares], 1),
            torch.cat([self.scores, other.scores], 1),
        )

    def best(self, number: int = SHORTLIST) -> Candidates:
        """The shortlist: the best few hundred, or fewer, best first."""
        scores, chosen = top(self.scores, number)
        return Candidates(pick(self.positions, chosen), pick(self.shares, chosen), scores)

    def relabel(self, tokens: Int[Tensor, "B T"]) -> Candidates:
        """The same attentions where position t stands for token tokens[:, t]."""
        there = tokens[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)
        return Candidates(there, self.shares, self.scores)

    def dense(self, tokens: int) -> Float[Tensor, "B N T"]:
        """The attentions with all their zeros."""
        empty = self.shares.new_zeros(*self.scores.shape, tokens)
        return empty.scatter_add(-1, self.positions, self.shares)

    def jsd(self, weights: Float[Tensor, "B T"]) -> Float[Tensor, "B N"]:
        """The divergence of every candidate from one attention an example."""
        there = weights[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)
        return LOG2 + shared(self.shares, there).sum(-1)

    def diverse(self, observed: Float[Tensor, "B T"], k: int) -> Float[Tensor, "B K T"]:
        """The best candidate and k - 1 more, picked greedily from the shortlist.

        Each maximises its JSD from the observed attention plus its mean JSD from those picked before it, the two
        terms of Jain and Wallace (2019), equation 2.
        """
        shortlist = self.best()
        scores, apart = shortlist.scores.clone(), torch.zeros_like(shortlist.scores)
        picked: list[Tensor] = []
        for number in range(k):
            best, chosen = (scores + apart / max(number, 1)).max(-1, keepdim=True)
            one = Candidates(pick(shortlist.positions, chosen), pick(shortlist.shares, chosen), best)
            allowed = one.dense(observed.shape[-1])[:, 0].where(best.isfinite(), observed)
            picked.append(allowed)
            scores = scores.scatter(1, chosen, -torch.inf)
            apart = apart + shortlist.jsd(allowed)
        return torch.stack(picked, 1)


def top(scores: Float[Tensor, "B M"], number: int = SHORTLIST) -> tuple[Float[Tensor, "B N"], Int[Tensor, "B N"]]:
    """The best scores of each example, best first, and where they stand."""
    best, chosen = scores.topk(min(number, scores.shape[1]))
    return best, chosen


def pick(rows: Tensor, chosen: Int[Tensor, "B N"]) -> Tensor:
    """Rows of axis 1 by number, for each example its own."""
    return rows.gather(1, chosen[..., None].expand(-1, -1, rows.shape[-1]))
