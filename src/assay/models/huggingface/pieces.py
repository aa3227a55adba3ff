"""Pieces of words, gathered into words, or one by one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.data.examples import Span
from assay.data.text import WORD, Words

ALONE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that are written without spaces: there each piece counts as a word."""

BOUNDARY = re.compile(WORD)


@dataclass(frozen=True)
class PieceOptions:
    """How texts become tokens: in `words` or in pieces; above `longest` pieces a text is left out, or cut."""

    longest: int
    words: bool = True
    truncate: bool = False


class PieceTokeniser:
    """The tokenizer of a pretrained model; it knows where each word stands in the text, and which pieces it has."""

    def __init__(self, inner: Any, options: PieceOptions) -> None:
        self.inner = inner  # a fast tokenizer of the Hugging Face library
        self.options = options

    def with_options(self, **changes: Any) -> PieceTokeniser:
        return PieceTokeniser(self.inner, replace(self.options, **changes))

    def __call__(self, texts: Sequence[str]) -> list[Words]:
        """The tokens of each text, with their character offsets and their pieces."""
        encodings = self.inner.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            self._words(text, encoding.ids, encoding.offsets) for text, encoding in zip(texts, encodings, strict=True)
        ]

    def query(self, texts: Sequence[str]) -> list[Words]:
        """The same in pieces: a question is read, not explained."""
        return self.with_options(words=False)(texts)

    def _words(self, text: str, ids: list[int], offsets: list[Span]) -> Words:
        if self.options.truncate:
            ids, offsets = ids[: self.options.longest], offsets[: self.options.longest]
        offsets = [_tight(text, span) for span in offsets]
        if not self.options.words:
            return Words(list(ids), offsets)
        groups = gathered(text, offsets)
        spans = [(offsets[group[0]][0], max(offsets[place][1] for place in group)) for group in groups]
        pieces = [[ids[place] for place in group] for group in groups]
        return Words([_number(each) for each in pieces], spans, pieces)


def gathered(text: str, offsets: Sequence[Span]) -> list[list[int]]:
    """The places of the pieces of each word, a word being what it is to the models that are trained here.

    A piece belongs to the word that it begins in; one that begins in none, such as a space, to the word before.
    """
    starts = [found.start() for found in BOUNDARY.finditer(text)]
    groups: list[list[int]] = []
    last: int | None = None
    for place, (start, end) in enumerate(offsets):
        word = None if ALONE.search(text[start:end]) else bisect_right(starts, start)
        if groups and word is not None and word == last:
            groups[-1].append(place)
        else:
            groups.append([place])
        last = word
    return groups


def _tight(text: str, span: Span) -> Span:
    """The span without the spaces that a piece begins or ends with."""
    start, end = span
    inside = text[start:end]
    if not inside.strip():
        return span
    return start + len(inside) - len(inside.lstrip()), end - (len(inside) - len(inside.rstrip()))


def _number(pieces: Sequence[int]) -> int:
    """A number that stands for the word: of one piece its id, of several one that no other word is likely to have."""
    number = pieces[0]
    for piece in pieces[1:]:
        number = (number * 1_000_003 + piece + 1) % (1 << 61)
    return number
