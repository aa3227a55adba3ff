"""The solver protocol and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from assay.influence.curvature import Curvature


@dataclass(frozen=True)
class Solved:
    """Solutions of one or several random runs."""

    tries: tuple[Float[Tensor, "Q P"], ...]
    notes: Mapping[str, Any] = field(default_factory=dict)


Solve = Callable[[Float[Tensor, "Q P"]], Solved]


@runtime_checkable
class Solver(Protocol):
    """Prepares a curvature once; then any number of vectors can be solved for.

    `ready` says whether a vector more costs next to nothing.
    """

    @property
    def ready(self) -> bool: ...
    def unfit(self, size: int) -> str | None:
        """Why a network of so many parameters is too large, as the end of a sentence, or None."""

    def prepared(self, curvature: Curvature, damping: Float[Tensor, " P"]) -> Solve: ...
