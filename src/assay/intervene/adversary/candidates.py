"""Sparse candidate attentions: JSD in constant time each, and a diverse selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

    @classmethod
    def stack(cls, parts: Sequence[Candidates]) -> Candidates:
        """The candidates of several batches, concatenated."""
        columns = zip(*((part.positions, part.shares, part.scores) for part in parts), strict=True)
        return cls(*(torch.cat(column) for column in columns))

    def join(self, other: Candidates) -> Candidates:
        """Both lists of candidates, concatenated."""
        return Candidates(
            torch.cat([self.positions, other.positions], 1),
            torch.cat([self.shares, other.shares], 1),
            torch.cat([self.scores, other.scores], 1),
        )

    def best(self, number: int = SHORTLIST) -> Candidates:
        """The few hundred best candidates, best first."""
        scores, chosen = top(self.scores, number)
        return Candidates(pick(self.positions, chosen), pick(self.shares, chosen), scores)

    def and_pairs(
        self, pairs: Callable[[slice, Tensor], Candidates], alone: Float[Tensor, "B T"], number: int, step: int
    ) -> Candidates:
        """The best so many of these and of all pairs of tokens, which are sorted from the least to the most attended.

        `pairs` gives those of some tokens with later ones that are above a least score, `alone` is the score of each
        token alone. No pair beats its less attended token alone (convexity), so the walk over a long text ends as soon
        as the next token alone is no better than the last of the shortlist.
        """
        found = self.best(number)
        for start in range(0, alone.shape[1] - 1, step):
            full = found.scores.shape[1] == number
            last = found.scores[:, -1:] if full else torch.full_like(alone[:, :1], -torch.inf)
            if bool((alone[:, start : start + 1] <= last).all()):
                break
            found = found.join(pairs(slice(start, start + step), last)).best(number)
        return found

    def relabel(self, tokens: Int[Tensor, "B T"]) -> Candidates:
        """The same attentions with position t renamed to tokens[:, t]."""
        there = tokens[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)
        return Candidates(there, self.shares, self.scores)

    def dense(self, tokens: int) -> Float[Tensor, "B N T"]:
        """The attentions as dense rows."""
        empty = self.shares.new_zeros(*self.scores.shape, tokens)
        return empty.scatter_add(-1, self.positions, self.shares)

    def jsd(self, weights: Float[Tensor, "B T"]) -> Float[Tensor, "B N"]:
        """The JSD of every candidate from one attention per example."""
        there = weights[:, None].expand(-1, self.scores.shape[1], -1).gather(-1, self.positions)
        return LOG2 + shared(self.shares, there).sum(-1)

    def diverse(self, observed: Float[Tensor, "B T"], k: int) -> Float[Tensor, "B K T"]:
        """The best candidate and k - 1 more, selected greedily for diversity.

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


def one_token(scores: Float[Tensor, "B T"]) -> Candidates:
    """One-hot candidates with these scores."""
    positions, one = torch.arange(scores.shape[1], device=scores.device).expand_as(scores), torch.ones_like(scores)
    return Candidates(torch.stack([positions, positions], -1), torch.stack([one, 1 - one], -1), scores)


def top(scores: Float[Tensor, "B M"], number: int = SHORTLIST) -> tuple[Float[Tensor, "B N"], Int[Tensor, "B N"]]:
    """The highest scores of each example, descending, and their indices."""
    best, chosen = scores.topk(min(number, scores.shape[1]))
    return best, chosen


def pick(rows: Tensor, chosen: Int[Tensor, "B N"]) -> Tensor:
    """Rows of axis 1 by index, per example."""
    return rows.gather(1, chosen[..., None].expand(-1, -1, rows.shape[-1]))
