"""Units of selection: tokens, spans of a few tokens, or sentences."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.types import Batch

KINDS = ("token", "span", "sentence")


@dataclass(frozen=True)
class Grouping:
    """The unit of each token, counted from 0 in each text, and which units are real."""

    owner: Int[Tensor, "B T"]
    tokens: Bool[Tensor, "B T"]  # that are no padding
    mask: Bool[Tensor, "B U"]

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
        owner = owner.where(batch.mask, 0)
        counts = owner.new_zeros(len(batch), int(owner.max()) + 1).scatter_add(1, owner, batch.mask.long())
        return Grouping(owner, batch.mask, counts > 0)
