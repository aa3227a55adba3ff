"""Where sentences end."""

from __future__ import annotations

from collections.abc import Sequence

from assay.data.examples import Span

ENDS, CLOSERS = set(".!?…"), set("”’»)]")
BEHIND = CLOSERS | set("\"'")


def sentence_numbers(text: str, spans: Sequence[Span]) -> list[int]:
    """The number of each word's sentence, from 0.

    A sentence ends after one of `ENDS` and what closes behind it, if white space follows, and at every end of a line.
    Texts that are cut into words already have white space before an end or a closing mark: it starts no sentence. A
    straight quotation mark closes only what it touches.
    """
    numbers: list[int] = []
    number, ended = 0, False
    for place, (start, end) in enumerate(spans):
        word = text[start:end]
        if place:
            between = text[spans[place - 1][1] : start]
            if "\n" in between or (ended and between and word not in ENDS and word not in CLOSERS):
                number, ended = number + 1, False
        ended = word in ENDS or (ended and word in BEHIND)
        numbers.append(number)
    return numbers
