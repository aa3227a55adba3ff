"""Splits texts into phrases at punctuation marks, and where they are long."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from assay.data.text import Reading
from assay.errors import AssayError
from assay.rationales.units import Grouping
from assay.types import Batch

MARKS = '.,;:!?()[]"“”…–—'


@dataclass(frozen=True)
class Phrases:
    """A phrase ends with a punctuation mark, one of the `stops`, or after `width` words."""

    # differs from Rajagopal et al. (2021): they take the constituents that a parser finds; none is needed here

    width: int = 5
    stops: tuple[int, ...] = ()  # their ids

    def __post_init__(self) -> None:
        if self.width < 1:
            raise AssayError(f"A phrase must have at least one word, got {self.width}.")

    def __call__(self, batch: Batch) -> Grouping:
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)
        ends = self.stopped(batch)
        begins = torch.cat([torch.ones_like(ends[:, :1]), ends[:, :-1]], dim=1)
        first = (positions * begins).cummax(-1).values  # of the stretch that each word stands in
        begins = (positions - first) % self.width == 0
        owner = (begins.long().cumsum(-1) - 1).where(batch.mask, 0)
        counts = owner.new_zeros(len(batch), int(owner.max()) + 1).scatter_add(1, owner, batch.mask.long())
        return Grouping(owner, batch.mask, counts > 0)

    def stopped(self, batch: Batch) -> Bool[Tensor, "B T"]:
        """Which words are punctuation marks."""
        return torch.isin(batch.ids, torch.tensor(self.stops, dtype=torch.long, device=batch.ids.device))


def phrases(tokeniser: Reading, width: int = 5) -> Phrases:
    """Phrases by the marks as the tokeniser knows them."""
    found = {words.ids[-1] for words in tokeniser([*MARKS, *(f"a{mark}" for mark in MARKS)]) if len(words.ids)}
    unknown = {words.ids[-1] for words in tokeniser(["a", "\u2603"]) if words.ids}
    return Phrases(width, tuple(sorted(found - unknown)))
