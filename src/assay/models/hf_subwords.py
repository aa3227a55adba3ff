"""Tokenises texts into subwords, grouped by words or one by one."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from tokenizers import Regex, pre_tokenizers

from assay.data.examples import Span
from assay.data.text import WORD, Words

ALONE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that are written without spaces: there each subword counts as a word."""

ORDINARY = re.compile(r"\w+|[^\w\s]")
"""The same words where a text has neither apostrophes nor what stands for names in cloze questions."""

PLAIN, BOUNDARY = re.compile(WORD), pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
"""The words of the models that are trained here; Python's own expressions are faster, but split words at accents."""


WORD_STARTS = ("\u0120", "\u2581")
"""What stands for the space before a word in byte-level and in SentencePiece vocabularies."""


@dataclass(frozen=True)
class SubwordOptions:
    """How texts become tokens: `words` or subwords; texts above `longest` subwords are left out, or truncated."""

    longest: int
    words: bool = True
    truncate: bool = False


class SubwordTokeniser:
    """The tokenizer of a pretrained model, with the character span and the subwords of each word."""

    def __init__(self, inner: Any, options: SubwordOptions) -> None:
        self.inner = inner  # a fast tokenizer of the Hugging Face library
        self.options = options

    def with_options(self, **changes: Any) -> SubwordTokeniser:
        return SubwordTokeniser(self.inner, replace(self.options, **changes))

    def __call__(self, texts: Sequence[str]) -> list[Words]:
        """The tokens of each text, with their character offsets and their subwords."""
        backend = self.inner.backend_tokenizer
        backend.no_padding()  # files may ask for both, and the library sets them anew at each of its own calls
        backend.no_truncation()
        encodings = backend.encode_batch(list(texts), add_special_tokens=False)
        return [
            self._words(text, encoding.ids, encoding.offsets) for text, encoding in zip(texts, encodings, strict=True)
        ]

    def query(self, texts: Sequence[str]) -> list[Words]:
        """The query in subwords: it is read, not explained."""
        return self.with_options(words=False)(texts)

    unit = "subwords"

    @property
    def vocabulary(self) -> list[str]:
        """The words that are one subword, in the order of their ids."""
        ids: dict[str, int] = self.inner.get_vocab()
        tokens = sorted(ids, key=ids.__getitem__)
        begun = [token[1:] for token in tokens if token[:1] in WORD_STARTS]
        return [word for word in begun or tokens if word.isalpha()]

    def fitted(self, words: Words, query: Words, longest: int) -> Words | None:
        """The text, truncated to the words that fit beside the question if `truncate` is set."""
        room = longest - query.length
        if words.length <= room:
            return words
        sizes = [1] * len(words.ids) if words.subwords is None else [len(each) for each in words.subwords]
        count = bisect_right(list(accumulate(sizes)), room)
        if not self.options.truncate or not count:
            return None
        return Words(words.ids[:count], words.spans[:count], words.subwords and words.subwords[:count])

    def _words(self, text: str, ids: list[int], offsets: list[Span]) -> Words:
        offsets = [_tight(text, span) for span in offsets]
        if not self.options.words:
            return Words(list(ids), offsets)
        groups = gathered(text, offsets)
        if len(groups) == len(ids):  # no word has several
            return Words(list(ids), offsets, [[subword] for subword in ids])
        spans = [_around(text, [offsets[position] for position in group]) for group in groups]
        subwords = [[ids[position] for position in group] for group in groups]
        return Words([_number(each) for each in subwords], spans, subwords)


def gathered(text: str, offsets: Sequence[Span]) -> list[list[int]]:
    """The indices of the subwords of each word; words are those of the networks trained here.

    A subword belongs to the word that it begins in, and to that of the subword before if both stand for one character;
    spaces belong to the word that they precede, and at the end of the text to the last.
    """
    starts, plain = _starts(text), text.isascii()
    groups: list[list[int]] = []
    spaces: list[int] = []
    last: int | None = None
    covered = 0
    for position, (start, end) in enumerate(offsets):
        within = bool(groups) and start < covered
        if not within and not text[start:end].strip():
            spaces.append(position)
            continue
        word = bisect_right(starts, start) if plain or not ALONE.search(text[start:end]) else None
        if within or (groups and word is not None and word == last):
            groups[-1] += [*spaces, position]
        else:
            groups.append([*spaces, position])
        spaces, last, covered = [], word, max(covered, end)
    if spaces:
        groups[-1:] = [[*groups[-1], *spaces]] if groups else [spaces]
    return groups


def _starts(text: str) -> list[int]:
    """The character offsets at which words start."""
    if text.isascii():
        words = PLAIN if "'" in text or "@" in text else ORDINARY
        return [found.start() for found in words.finditer(text)]
    return [start for _, (start, _) in BOUNDARY.pre_tokenize_str(text)]


def _around(text: str, spans: Sequence[Span]) -> Span:
    """The span from the first to the last character of some subwords, without surrounding spaces."""
    if len(spans) == 1:
        return spans[0]
    written = [span for span in spans if text[slice(*span)].strip()] or spans
    return min(start for start, _ in written), max(end for _, end in written)


def _tight(text: str, span: Span) -> Span:
    """The span without leading and trailing spaces."""
    start, end = span
    inside = text[start:end]
    if inside and not inside[0].isspace() and not inside[-1].isspace():  # the usual case, and a hot path
        return span
    if not inside.strip():
        return span
    return start + len(inside) - len(inside.lstrip()), end - (len(inside) - len(inside.rstrip()))


def _number(subwords: Sequence[int]) -> int:
    """The id of a word: of one subword its id, of several a hash."""
    if len(subwords) == 1:
        return subwords[0]
    number = 0
    for subword in subwords:
        number = (number * 1_000_003 + subword + 1) % (1 << 61)
    return number
