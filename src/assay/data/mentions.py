"""GAP: pronouns with two candidate names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.data.examples import Span
from assay.data.sources import needed_copy
from assay.data.tables import read_rows
from assay.errors import AssayError

FILES = {"dev": "gap/gap-development.tsv.gz", "test": "gap/gap-test.tsv.gz"}  # Webster et al. (2018), Apache 2.0
COLUMNS = ("Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")


@dataclass(frozen=True)
class Pronoun:
    """A text with a pronoun, two names and their spans, and which name it refers to: 0 or 1."""

    text: str
    pronoun: Span
    candidates: tuple[Span, Span]
    right: int


def mentions(split: str) -> tuple[Pronoun, ...]:
    """The pronouns of GAP that refer to exactly one of the two names: "dev" or "test"."""
    return read_mentions(needed_copy(FILES[split], "gap"))


def read_mentions(path: Path) -> tuple[Pronoun, ...]:
    """The pronouns of a tab-separated file; those that refer to neither name are left out."""
    found = []
    for text, pronoun, at, first, first_at, is_first, second, second_at, is_second in read_rows(path, *COLUMNS):
        marked = [_span(text, word, place, path) for word, place in ((pronoun, at), (first, first_at))]
        marked.append(_span(text, second, second_at, path))
        right = [answer.strip().upper() == "TRUE" for answer in (is_first, is_second)]
        if sum(right) == 1:
            found.append(Pronoun(text, marked[0], (marked[1], marked[2]), right.index(True)))
    return tuple(found)


def _span(text: str, word: str, place: str, path: Path) -> Span:
    if not place.isdigit() or text[int(place) : int(place) + len(word)] != word:
        raise AssayError(f"{path} has no {word!r:.40} at character {place} of {text!r:.60}; fetch it again.")
    return int(place), int(place) + len(word)
