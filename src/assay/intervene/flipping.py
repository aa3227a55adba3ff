"""Searches for few items whose erasure changes the decision, by querying the model.

They are found by search, so their number is an upper bound: fewer may do. What is found was checked by the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

MARGIN = 1e-6
"""How far another class must be ahead, so that rounding does not decide."""

Answers = Callable[[Bool[Tensor, "V N"]], Float[Tensor, "V C"]]
"""Takes what is erased in each of V versions of a text; gives their probabilities."""


@dataclass
class FlipSearch:
    """Erases down a ranking until the decision changes, then tries a greedy search, then restores what it can.

    At most about `versions` versions of the text are read. Where each item can be tried alone, how far the decision
    then drops is the ranking; else it is the one that is given.
    """

    answers: Answers
    predicted: int
    versions: int = 500
    read: int = field(default=0, init=False)

    def __call__(self, ranking: Float[Tensor, " N"]) -> tuple[int, ...] | None:
        """The erased items, or None if the decision never changes."""
        if 2 * len(ranking) <= self.versions:
            ranking = -self._lead(torch.eye(len(ranking), dtype=torch.bool))
        order = ranking.argsort(descending=True, stable=True)
        found = self._down(order)
        if found is None:
            return None
        return tuple(self._given_back(self._stepwise(order, found)).nonzero()[:, 0].tolist())

    def _lead(self, erased: Bool[Tensor, "V N"]) -> Float[Tensor, " V"]:
        """The decision's margin over the next class in each version; below 0 it has changed."""
        self.read += len(erased)
        likely = self.answers(erased)
        own = torch.arange(likely.shape[1]) == self.predicted
        return likely[:, self.predicted] - likely.masked_fill(own, -torch.inf).amax(-1) + MARGIN

    def _down(self, order: Int[Tensor, " N"]) -> Bool[Tensor, " N"] | None:
        """The shortest prefix of the ranking that changes the decision, among those tried."""
        count, tries = len(order), max(2, self.versions // 2)
        sizes = torch.linspace(1, count, min(count, tries)).round().long()
        erased = order.argsort() < sizes[:, None]
        flips = self._lead(erased) < 0
        return erased[int(flips.byte().argmax())] if bool(flips.any()) else None

    def _stepwise(self, order: Int[Tensor, " N"], found: Bool[Tensor, " N"]) -> Bool[Tensor, " N"]:
        """Greedy search: erases per step the item with the largest effect, if that takes fewer steps."""
        erased = torch.arange(len(order)) == order[0]
        for _ in range(int(found.sum()) - 2):
            rest = (~erased).nonzero()[:, 0]
            if self.read + len(rest) > self.versions:
                break
            tried = erased | (torch.arange(len(order)) == rest[:, None])
            lead = self._lead(tried)
            erased = tried[int(lead.argmin())]
            if float(lead.min()) < 0:
                return erased
        return found

    def _given_back(self, erased: Bool[Tensor, " N"]) -> Bool[Tensor, " N"]:
        """Restores erased items that are not needed."""
        while int(erased.sum()) > 1 and self.read < 2 * self.versions:
            tried = erased & (torch.arange(len(erased)) != erased.nonzero())
            lead = self._lead(tried)
            if float(lead.min()) >= 0:
                break
            erased = tried[int(lead.argmin())]
        return erased
