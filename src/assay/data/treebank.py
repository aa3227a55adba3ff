"""Sentences of a Universal Dependencies treebank: tags, governors and relations of every word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from assay.data.examples import Span
from assay.data.sources import needed_copy
from assay.data.tables import read_text
from assay.errors import AssayError

FILES = {
    split: f"ud_english_ewt/en_ewt-ud-{split}.conllu.gz" for split in ("train", "dev", "test")
}  # Silveira et al. (2014), CC BY-SA 4.0
FIELDS = 10


@dataclass(frozen=True)
class Sentence:
    """A text, the spans of its words, and their annotations; the governor of the root is -1."""

    text: str
    spans: tuple[Span, ...]
    words: tuple[str, ...]
    tags: tuple[str, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]


def treebank(split: str) -> tuple[Sentence, ...]:
    """One split of Universal Dependencies English EWT: "train", "dev" or "test"."""
    return read_treebank(needed_copy(FILES[split], "ud_english_ewt"))


def read_treebank(path: Path) -> tuple[Sentence, ...]:
    """The sentences of a CoNLL-U file."""
    return tuple(_sentence(lines, path) for lines in _blocks(read_text(path)))


def _blocks(text: str) -> Iterator[list[list[str]]]:
    """The fields of the lines of each sentence; comments are left out."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line.split("\t") for line in block.split("\n") if line and not line.startswith("#")]
        if lines:
            yield lines


def _sentence(lines: Sequence[Sequence[str]], path: Path) -> Sentence:
    words = [line for line in lines if line[0].isdigit()]
    numbered = [line[0] for line in words] == [str(number) for number in range(1, len(words) + 1)]
    if not numbered or any(len(line) != FIELDS for line in lines):
        raise AssayError(f"{path} is not CoNLL-U near {lines[0][1:2]}; fetch it again.")
    text, spans = _written(lines, {line[0]: line[1] for line in words})
    governors = tuple(int(line[6]) - 1 if line[6].isdigit() else len(words) for line in words)
    if any(governor >= len(words) for governor in governors):
        raise AssayError(f"{path} has a word without a governor in {text!r:.60}; fetch it again.")
    form, tag, relation = (tuple(line[field] for line in words) for field in (1, 3, 7))
    return Sentence(text, spans, form, tag, governors, relation)


def _written(lines: Sequence[Sequence[str]], forms: dict[str, str]) -> tuple[str, tuple[Span, ...]]:
    """The text as written, and the span of each word.

    Words that are written as one token, such as those of "don't", share its characters; empty nodes have none.
    """
    text, spans, covered = "", [], 0
    for number, form, *_, other in lines:
        first, _, last = number.partition("-")
        if "." in number or (number.isdigit() and int(number) <= covered):
            continue  # an empty node, or a word inside a token that is written already
        parts = [forms[str(inside)] for inside in range(int(first), int(last or first) + 1)]
        spans.extend(_shared(form, parts, len(text)))
        covered = int(last or first)
        text += form + " " * ("SpaceAfter=No" not in other.split("|"))
    return text.rstrip(), tuple(spans)


def _shared(token: str, parts: Sequence[str], start: int) -> list[Span]:
    """The spans of the words of a multiword token; where they do not spell it, the first has all of it."""
    if "".join(parts) != token:
        parts = [token, *("" for _ in parts[1:])]
    ends = [start + sum(map(len, parts[: index + 1])) for index in range(len(parts))]
    return list(zip([start, *ends[:-1]], ends, strict=True))
