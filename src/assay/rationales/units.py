"""Units of selection: tokens, spans, sentences or phrases, and the rules that decode which of them are selected."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.rationales.selection_stories import RULES
from assay.types import Batch

KINDS = ("token", "span", "sentence")


@dataclass(frozen=True)
class Grouping:
    """The unit of each token, counted from 0 in each text, and which units are real."""

    owner: Int[Tensor, "B T"]
    tokens: Bool[Tensor, "B T"]  # that are no padding
    mask: Bool[Tensor, "B U"]

    @classmethod
    def of(cls, owner: Int[Tensor, "B T"], tokens: Bool[Tensor, "B T"]) -> Grouping:
        """The units of tokens whose numbers are given, whatever they are on padding."""
        owner = owner.where(tokens, 0)
        counts = owner.new_zeros(len(owner), int(owner.max()) + 1).scatter_add(1, owner, tokens.long())
        return cls(owner, tokens, counts > 0)

    @property
    def sizes(self) -> Int[Tensor, "B U"]:
        """Tokens in each unit."""
        counts = torch.zeros(self.mask.shape, dtype=torch.long, device=self.mask.device)
        return counts.scatter_add(1, self.owner, self.tokens.long())

    def expanded(self, units: Float[Tensor, "B K U"]) -> Float[Tensor, "B K T"]:
        """Values of units, repeated for their tokens; 0 on padding."""
        owner = self.owner[:, None].expand(-1, units.shape[1], -1)
        return units.gather(2, owner) * self.tokens[:, None]

    def pooled(self, states: Float[Tensor, "B T M"]) -> Float[Tensor, "B U M"]:
        """The mean over the tokens of each unit."""
        sums = states.new_zeros(*self.mask.shape, states.shape[2])
        owner = self.owner[..., None].expand_as(states)
        return sums.scatter_add(1, owner, states * self.tokens[..., None]) / self.sizes.clamp(min=1)[..., None]


@dataclass(frozen=True)
class Units:
    """Tokens, sentences, or spans of `width` consecutive tokens, the last one shorter."""

    kind: str = "token"
    width: int = 5

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("unit", self.kind, KINDS)
        if self.width < 1:
            raise AssayError(f"A span must have at least one token, got {self.width}.")

    def __call__(self, batch: Batch) -> Grouping:
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)
        if self.kind == "sentence":
            owner = torch.zeros_like(positions) if batch.sentences is None else batch.sentences
        else:
            owner = positions if self.kind == "token" else positions // self.width
        return Grouping.of(owner, batch.mask)


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
