"""The relaxation protocol, and the sample it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """K sampled masks over the units of each text, 0 on padding.

    `chance` is the probability that a unit is read at all, P(z > 0), through which size and prior can be steered.
    Where no gradient passes through `z`, `log_probability` is that of the whole draw.
    """

    z: Float[Tensor, "B K U"]
    chance: Float[Tensor, "B K U"]
    log_probability: Float[Tensor, " B"] | None = None


@runtime_checkable
class Relaxation(Protocol):
    """Protocol: a distribution of masks given scores; a frozen dataclass with its options."""

    @property
    def parameters(self) -> int:
        """Scores needed for each unit."""

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        """Samples a mask, or returns the one mask of a deterministic relaxation; uses torch's random state."""

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """The probabilities by which units are ranked in decoding: as a rule P(z > 0); 0 on padding."""
