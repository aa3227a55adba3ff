"""Sentence segmentation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.data.examples import Span

ENDS, CLOSERS = set(".!?…"), set("”’»)]")
BEHIND = CLOSERS | set("\"'")
BREAK = re.compile(r"[.!?…\n]")  # without one there is one sentence
TITLES = {"mr", "mrs", "ms", "dr", "prof", "st", "capt", "sgt", "lt", "rev", "vs"}


def sentence_numbers(text: str, spans: Sequence[Span]) -> list[int]:
    """The number of each word's sentence, from 0.

    A sentence ends after one of `ENDS` and what closes behind it, if white space follows, and at every end of a line.
    Texts that are cut into words already have white space before an end or a closing mark: it starts no sentence. A
    straight quotation mark closes only what it touches. The full stop of a title ends nothing: a name follows.
    """
    if not spans or not BREAK.search(text, 0, spans[-1][0]):
        return [0] * len(spans)
    numbers: list[int] = []
    number, ended = 0, False
    before = (0, 0)
    for start, end in spans:
        word, between = text[start:end], text[before[1] : start]
        if numbers and ("\n" in between or (ended and between and word not in ENDS and word not in CLOSERS)):
            number, ended = number + 1, False
        title = word == "." and text[before[0] : start].rstrip().lower() in TITLES
        ended = (word in ENDS and not title) or (ended and word in BEHIND)
        numbers.append(number)
        before = (start, end)
    return numbers
