"""Where sentences end."""

from __future__ import annotations

from collections.abc import Sequence

from assay.data.examples import Span

ENDS, CLOSERS = set(".!?…"), set("\"'”’»)]")


def sentence_numbers(text: str, spans: Sequence[Span]) -> list[int]:
    """The number of each word's sentence, from 0.

    A sentence ends after one of `ENDS` and what closes behind it, if white space follows, and at every end of a line.
    """
    numbers: list[int] = []
    number, ended = 0, False
    for place, (start, end) in enumerate(spans):
        if place:
            between = text[spans[place - 1][1] : start]
            if "\n" in between or (ended and between):
                number, ended = number + 1, False
        word = text[start:end]
        ended = word in ENDS or (ended and word in CLOSERS)
        numbers.append(number)
    return numbers
