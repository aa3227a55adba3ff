"""Decoding: which units are selected deterministically from their probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.rationales.stories import RULES


@dataclass(frozen=True)
class Decoding:
    """One of RULES with, where it needs one, the `rate` of units to select."""

    rule: str = "top"
    rate: float = 0.2

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise unknown("decoding rule", self.rule, RULES)
        if not 0 < self.rate <= 1:
            raise AssayError(f"The share of a text that is read must be above 0 and at most 1, got {self.rate:g}.")

    def __call__(self, chance: Float[Tensor, "B K U"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """The selection as 0 and 1; ties go to the earlier unit."""
        if self.rule == "threshold":
            return ((chance > 0.5) & mask[:, None]).to(chance)
        wanted = self.counts(mask)[:, None, None]
        hidden = chance.masked_fill(~mask[:, None], -torch.inf)
        if self.rule == "top":
            rank = hidden.argsort(dim=-1, descending=True, stable=True).argsort(-1)
            return ((rank < wanted) & mask[:, None]).to(chance)
        sums = torch.nn.functional.pad(chance.double().cumsum(-1), (1, 0))
        positions = torch.arange(chance.shape[-1], device=chance.device)
        ends = positions + wanted  # of the stretch that begins at each position
        fits = ends <= mask.sum(-1)[:, None, None]
        total = sums.gather(-1, ends.clamp(max=chance.shape[-1]).expand_as(chance)) - sums[..., :-1]
        start = total.masked_fill(~fits, -torch.inf).argmax(-1, keepdim=True)
        return ((positions >= start) & (positions < start + wanted)).to(chance)

    def counts(self, mask: Bool[Tensor, "B U"]) -> Int[Tensor, " B"]:
        """The number of units that a rule with a rate selects in each text."""
        return (self.rate * mask.sum(-1).double() - 1e-9).ceil().long().clamp(min=1)
