"""What a relaxation is, and what it draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor


@dataclass(frozen=True)
class Drawn:
    """K masks over the units of each text, 0 on padding.

    `chance` is the probability that a unit is read at all, P(z > 0), through which size and prior can be steered.
    Where no gradient passes through `z`, `log_probability` is that of the whole draw.
    """

    z: Float[Tensor, "B K U"]
    chance: Float[Tensor, "B K U"]
    log_probability: Float[Tensor, " B"] | None = None


@runtime_checkable
class Relaxation(Protocol):
    """A distribution of masks for each score; a frozen dataclass with its options."""

    @property
    def parameters(self) -> int:
        """How many numbers it needs for each unit."""

    def draw(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Drawn:
        """A random mask, or the one mask of a deterministic relaxation; random numbers are torch's own."""

    def chance(self, theta: Float[Tensor, "B K U P"], mask: Bool[Tensor, "B U"]) -> Float[Tensor, "B K U"]:
        """What units are ranked by when nothing is drawn: as a rule P(z > 0); 0 on padding."""
