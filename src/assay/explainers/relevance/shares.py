"""The explained quantity, and its distribution over tokens and other inputs."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

FLOOR = 0.01  # less than this counts as this much when a gap is related to it


@dataclass(frozen=True)
class Shares:
    """The relevance of tokens, biases, positions, types, markers and query; it sums to `explained` if conserved."""

    tokens: Float[Tensor, "B T"]
    biases: Float[Tensor, " B"]
    positions: Float[Tensor, " B"]
    types: Float[Tensor, " B"]  # that say which of two texts a position is in
    markers: Float[Tensor, " B"]
    query: Float[Tensor, " B"]  # what it adds; where it multiplies the words, they have it all
    explained: Float[Tensor, " B"]

    @property
    def gap(self) -> Float[Tensor, " B"]:
        """The relative conservation error: |sum of parts − explained| / |explained|."""
        parts = self.tokens.sum(-1) + self.biases + self.positions + self.types + self.markers + self.query
        return (parts - self.explained).abs() / self.explained.abs().clamp(min=FLOOR)


def contrast(
    logits: Float[Tensor, "B C"], target: Int[Tensor, " B"], candidates: Bool[Tensor, "B C"] | None = None
) -> Float[Tensor, " B"]:
    """The target's logit minus the mean of the other candidate classes."""
    chosen = F.one_hot(target, logits.shape[1]).bool()
    others = ~chosen if candidates is None else candidates & ~chosen
    return (logits * chosen).sum(-1) - (logits * others).sum(-1) / others.sum(-1).clamp(min=1)
