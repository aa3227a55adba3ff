"""Loss terms of the players: a cost for each text of a batch."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play


@runtime_checkable
class Term(Protocol):
    """A loss term; a frozen dataclass with its options."""

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        """The cost of each text; one of a whole batch is the same for all its texts."""
