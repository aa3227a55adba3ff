"""A recipe as data: rules, players and stages."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.errors import AssayError
from assay.rationales.epoch_selection import Answers, EpochScore
from assay.rationales.games import Stage
from assay.rationales.rules import Rules
from assay.rationales.units import Units


@dataclass(frozen=True)
class Options:
    """Options of a recipe: the share of words and the weights of penalties; None is the recipe's default."""

    classes: int = 2
    rate: float = 0.2
    units: Units = field(default_factory=Units)
    reading: str = "zero"
    size: float | None = None
    continuity: float | None = None
    concepts: int | None = None  # how many, in recipes that have any

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise AssayError(f"The share of words to select must be between 0 and 1, got {self.rate:g}.")
        if self.concepts is not None and self.concepts < 1:
            raise AssayError(f"A recipe with concepts needs at least one, got {self.concepts}.")
        for name in ("size", "continuity"):
            strength = getattr(self, name)
            if strength is not None and not 0 <= strength < float("inf"):
                raise AssayError(f"The strength of {name!r} must be at least 0, got {strength:g}.")


@dataclass(frozen=True)
class Scheme:
    """A recipe without its networks; `extras` are further trained modules, by name.

    The `epoch_score` says which epoch of the last stage was the best one.
    """

    rules: Rules
    stages: tuple[Stage, ...]
    readers: tuple[str, ...] = ("predictor", "selector")
    extras: tuple[str, ...] = ()
    epoch_score: EpochScore = field(default_factory=Answers)
