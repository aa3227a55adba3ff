"""Sentences annotated with negation cues and scopes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.data.examples import Span
from assay.data.sources import needed_copy
from assay.data.tables import read_text
from assay.errors import AssayError

_FILE = "negation_conan_doyle/SEM-2012-SharedTask-CD-SCO-{}.txt.gz"
FILES = {  # Morante and Daelemans (2012)
    "train": _FILE.format("training-09032012"),
    "dev": _FILE.format("dev-09032012"),
    "test": _FILE.format("test-merge-GOLD"),
}
FORM, FIRST = 3, 7  # the columns of the word and of the first negation, which has three
CLOSING = re.compile(r"n't|n’t|['’]\w*|[.,;:?!)\]]|''")  # what is written without a space before it
OPENING = ("``", "(", "[")


@dataclass(frozen=True)
class Negation:
    """The word indices of a cue, and of its scope without the cue."""

    cue: tuple[int, ...]
    scope: tuple[int, ...]


@dataclass(frozen=True)
class Negated:
    """A sentence with at least one negation, and the spans of its words."""

    text: str
    spans: tuple[Span, ...]
    words: tuple[str, ...]
    negations: tuple[Negation, ...]


def negated(split: str) -> tuple[Negated, ...]:
    """The sentences with negations of the Conan Doyle stories: "train", "dev" or "test"."""
    return read_negated(needed_copy(FILES[split], "negation_conan_doyle"))


def read_negated(path: Path) -> tuple[Negated, ...]:
    """The sentences with negations in a CoNLL-style file."""
    blocks = read_text(path).replace("\r\n", "\n").split("\n\n")
    rows = [[line.split("\t") for line in block.split("\n") if line] for block in blocks]
    for lines in filter(None, rows):
        if len({len(line) for line in lines}) > 1 or len(lines[0]) <= FIRST:
            raise AssayError(f"{path} has rows of different length near {lines[0][:3]}; fetch it again.")
    return tuple(_negated(lines) for lines in rows if lines and lines[0][FIRST] != "***")


def _negated(lines: Sequence[Sequence[str]]) -> Negated:
    words = tuple(line[FORM] for line in lines)
    text, spans = written(words)
    columns = range(FIRST, len(lines[0]) - 2, 3)
    return Negated(text, spans, words, tuple(_negation(lines, column) for column in columns))


def _negation(lines: Sequence[Sequence[str]], column: int) -> Negation:
    """The negation of two columns; a word that is partly a cue, as "impossible", is in no scope of it."""
    cue = tuple(index for index, line in enumerate(lines) if line[column] != "_")
    scope = (index for index, line in enumerate(lines) if line[column + 1] != "_" and index not in cue)
    return Negation(cue, tuple(scope))


def written(words: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
    """A text from Penn Treebank tokens, and the span of each."""
    text, spans, before = "", [], ""
    for word in words:
        text += " " * bool(text and before not in OPENING and not CLOSING.fullmatch(word))
        spans.append((len(text), len(text) + len(word)))
        text, before = text + word, word
    return text, tuple(spans)
