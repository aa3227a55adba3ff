"""Labelled texts before tokenisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

Span = tuple[int, int]


@dataclass(frozen=True)
class Example:
    """One labelled text; `evidence` holds the character spans of decisive words where they are known.

    `planted` evidence is what decides by construction; other evidence is what people hold to be the reason.
    """

    text: str
    label: int
    evidence: tuple[Span, ...] | None = None
    query: str | None = None
    planted: bool = False
    query_evidence: tuple[Span, ...] = ()
    candidates: tuple[int, ...] | None = None  # the classes that can be right, where not all can

    def relabelled(self, index: Sequence[int]) -> Example:
        """The example with labels mapped to other class indices."""
        allowed = None if self.candidates is None else tuple(sorted(index[label] for label in self.candidates))
        return replace(self, label=index[self.label], candidates=allowed)


@dataclass(frozen=True)
class Corpus:
    """Train, dev and test splits over the same classes; `skipped` counts left-out examples by reason."""

    name: str
    classes: tuple[str, ...]
    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    skipped: dict[str, int] = field(default_factory=dict)
