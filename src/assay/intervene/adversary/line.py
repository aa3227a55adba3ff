"""Adversarial attention under one linear constraint on the output, in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.intervene.adversary.candidates import SHORTLIST, Candidates, one_token, top
from assay.intervene.adversary.distance import LOG2, shared
from assay.intervene.adversary.problem import ENTRIES

ROWS = 32
"""Tokens that are paired with all later ones before the walk looks whether it may end."""


@dataclass(frozen=True, eq=False)
class Line:
    """The polytope {α : low ≤ Σ α_t odds_t ≤ high}; `inside` says which one-hot attentions are in it.

    JSD is convex, so a vertex of this polytope maximises it: one token inside, or two tokens mixed so that they land on
    a border.
    """

    weights: Float[Tensor, "B T"]  # the observed attention
    mask: Bool[Tensor, "B T"]
    odds: Float[Tensor, "B T"]
    inside: Bool[Tensor, "B T"]
    borders: Float[Tensor, "B 2"]

    def vertices(self, number: int = SHORTLIST, rows: int = ROWS) -> Candidates:
        """The best vertices, best first."""
        tokens = self.mask.shape[1]
        step = max(1, min(rows, tokens, ENTRIES // (2 * max(tokens, 1))))
        parts = self._split(max(1, ENTRIES // (2 * max(tokens, 1) * step)))
        return Candidates.stack([part._vertices(number, step) for part in parts])

    def _split(self, rows: int) -> Iterator[Line]:
        for start in range(0, len(self.mask), rows):
            chunk = slice(start, start + rows)
            fields = (self.weights, self.mask, self.odds, self.inside, self.borders)
            yield Line(*(field[chunk] for field in fields))

    def _vertices(self, number: int, step: int) -> Candidates:
        # padding gets a key above every weight: it comes last, and is told from tokens by it
        keys, order = self.weights.where(self.mask, 2.0).sort(dim=-1, stable=True)
        mask, odds, inside = (field.gather(-1, order) for field in (self.mask, self.odds, self.inside))
        ordered = Line(keys, mask, odds, inside, self.borders)
        alone = (LOG2 + shared(torch.ones_like(keys), keys)).where(ordered.mask, -torch.inf)
        singles = one_token(alone.where(ordered.inside, -torch.inf))
        return singles.and_pairs(partial(ordered._pairs, number), alone, number, step).relabel(order)

    def _pairs(self, number: int, rows: slice, least: Float[Tensor, "B 1"]) -> Candidates:
        """Mixtures of a token in `rows` with a later one that lie on the boundary, as one broadcast."""
        here, there = self.odds[:, None, rows, None], self.odds[:, None, None, rows.start :]
        share = (self.borders[..., None, None] - there) / (here - there)  # [B, 2, rows, later]
        later = torch.ones(share.shape[2:], dtype=torch.bool, device=share.device).triu(1)
        allowed = (share > 0) & (share < 1) & later
        allowed &= self.mask[:, None, rows, None] & self.mask[:, None, None, rows.start :]
        share = share.where(allowed, 0.0)
        here, there = self.weights[:, None, rows, None], self.weights[:, None, None, rows.start :]
        scores = LOG2 + shared(share, here) + shared(1 - share, there)
        allowed &= scores > least[..., None, None]
        scores, chosen = top(scores.where(allowed, -torch.inf).flatten(1), number)
        first, second = chosen // later.shape[1] % later.shape[0], chosen % later.shape[1]
        share = share.flatten(1).gather(1, chosen)
        return Candidates(torch.stack([first, second], -1) + rows.start, torch.stack([share, 1 - share], -1), scores)
