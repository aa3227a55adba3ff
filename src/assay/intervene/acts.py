"""An intervention on the attention of one text, as plain values from a user interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.errors import AssayError, unknown
from assay.types import Edit

ACTS = {
    "observed": "the attention as it is",
    "set": "some weights as given; the others share the rest as before",
    "uniform": "the same weight on everything",
    "permute": "the same weights in another order",
    "erase": "no weight on some items; what is left adds up to 1 again",
    "furthest": "the attention that is furthest away while the answer stays within epsilon",
    "flip": "the fewest items without which the decision is another",
    "likeliest": "the attention under which one class is as likely as attention can make it",
}

EDIT = "edit"
"""The kind of an act that is a function of weights and mask."""


@dataclass(frozen=True)
class Act:
    """One intervention; items are numbered from 0: words, or sentences where these are attended to.

    In a stack of self-attention it is done in one layer or in all, in one head or in all, and for one attending word or
    for all.
    """

    kind: str = "observed"
    weights: Mapping[int, float] = field(default_factory=dict)  # of "set"
    items: tuple[int, ...] = ()  # of "erase"
    target: str | None = None  # of "likeliest": a class
    seed: int = 0  # of "permute"
    epsilon: float = 0.01  # of "furthest"
    layer: int | None = None
    head: int | None = None
    place: int | None = None  # the word that attends
    edit: Edit | None = field(default=None, compare=False)  # of "edit", which a person gives as an object

    def __post_init__(self) -> None:
        if self.kind not in ACTS and (self.kind != EDIT or self.edit is None):
            raise unknown("act", self.kind, ACTS)
        if any(not 0 <= weight <= 1 for weight in self.weights.values()) or sum(self.weights.values()) > 1 + 1e-9:
            raise AssayError("Attention weights must be between 0 and 1, and sum to at most 1.")
        if not 0 <= self.epsilon < 1:
            raise AssayError(f"epsilon, a change of probability, must be from 0 to below 1, got {self.epsilon}.")
        if any(number is not None and number < 0 for number in (self.layer, self.head, self.place, self.seed)):
            raise AssayError("Layers, heads, words and seeds must be at least 0.")
