"""Inputs of kernels: a text as written or a row of word ids, split into units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int

from assay.data.batches import Tokenised
from assay.data.published import glove
from assay.data.text import WORD
from assay.errors import AssayError, unknown

Passage = str | Tokenised
"""A text as written, or one in the word ids of a network."""

Unit = str | int
UNITS = ("word", "character")
BETWEEN = -1  # stands between a text and its question
WORDS = re.compile(WORD)


def units(passage: Passage, unit: str = "word") -> list[Unit]:
    """The words of a text without regard to case, its characters, or the ids of a row with those of its question."""
    if unit not in UNITS:
        raise unknown("unit", unit, UNITS)
    if isinstance(passage, str):
        text = passage.lower()
        return [*(WORDS.findall(text) if unit == "word" else " ".join(text.split()))]
    if unit == "character":
        raise AssayError("Rows of word ids have no characters; give the texts themselves, or a kernel over words.")
    asked = [] if passage.query is None else [BETWEEN, *passage.query.tolist()]
    return [*passage.ids.tolist(), *asked]


def numbered(
    passages: Sequence[Passage], unit: str, known: dict[Unit, int], longest: int
) -> list[Int[np.ndarray, " _"]]:
    """The units of each passage as ids, at most `longest` of them; new units are added to `known`."""
    return [
        np.array([known.setdefault(each, len(known)) for each in units(passage, unit)[:longest]], dtype=np.int64)
        for passage in passages
    ]


def padded(rows: Sequence[Int[np.ndarray, " _"]]) -> Int[np.ndarray, "N T"]:
    """The rows as one matrix, padded with -1."""
    found = np.full((len(rows), max([1, *map(len, rows)])), -1, dtype=np.int64)
    for index, row in enumerate(rows):
        found[index, : len(row)] = row
    return found


def looked_up(words: Iterable[Unit]) -> tuple[tuple[str, ...], Float[np.ndarray, "V D"]]:
    """The words that GloVe has, and their vectors."""
    found = sorted(words, key=repr)
    written = [each for each in found if isinstance(each, str)]
    if len(written) < len(found):
        raise AssayError("Rows of word ids have no words to look up; give the texts themselves, or another kernel.")
    vectors, there = glove(written)
    return tuple(word for word, known in zip(written, there, strict=True) if known), vectors[there].astype(np.float64)
