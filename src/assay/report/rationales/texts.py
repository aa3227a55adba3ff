"""Texts with what was selected in them, and what people marked."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

LONGEST = 150  # words of a text that are shown
PIECE = 300  # signs of one word


def shown(example: Mapping[str, Any]) -> str:
    """HTML of a text: selected words on colour, marked ones underlined; of a long one the richest part.

    Where words are aligned in `pairs`, each has the number of its pair behind it.
    """
    return _marked(example, example["text"], _numbers(example, "word"))


def asked(example: Mapping[str, Any]) -> str:
    """The same of the query."""
    if "asked" not in example:
        return _plain(example["query"])
    return _marked(example["asked"], example["query"], _numbers(example, "asked"))


def _numbers(example: Mapping[str, Any], side: str) -> dict[int, str]:
    """Of each aligned word the number of its pair, or the numbers."""
    found: dict[int, str] = {}
    for number, pair in enumerate(example.get("pairs") or (), start=1):
        before = f"{found[pair[side]]}, " if pair[side] in found else ""
        found[pair[side]] = f"{before}{number}"
    return found


def _marked(words: Mapping[str, Any], text: str, numbers: Mapping[int, str]) -> str:
    starts, ends, kept, total = words["starts"], words["ends"], words["kept"], len(words["starts"])
    marked = words["marked"] or [False] * total
    first, last = window(kept, LONGEST)
    pieces = [_cut(kept, marked, range(first))]
    place = starts[first] if first else 0
    alike = groupby(range(first, last), lambda token: (kept[token], marked[token], numbers.get(token, "")))
    for (selected, evidence, number), group in alike:
        tokens = list(group)
        pieces.append(_plain(text[place : starts[tokens[0]]]))
        inside = "".join(_words(text, [(starts[token], ends[token]) for token in tokens], place))
        pieces.append(_wrapped(inside, selected, evidence, number))
        place = max(place, ends[tokens[-1]])
    pieces.append(_cut(kept, marked, range(last, total)) if last < total else _plain(text[place:]))
    return "".join(pieces)


def window(kept: Sequence[bool], size: int) -> tuple[int, int]:
    """The first and the past-the-last word to show: all, or the `size` of them with the most selected words."""
    if len(kept) <= size:
        return 0, len(kept)
    sums = [0]
    for flag in kept:
        sums.append(sums[-1] + bool(flag))
    first = max(range(len(kept) - size + 1), key=lambda start: sums[start + size] - sums[start])
    return first, first + size


def _words(text: str, spans: Sequence[tuple[int, int]], place: int) -> Iterator[str]:
    """Neighbouring words, with what stands between them."""
    for number, (start, end) in enumerate(spans):
        if number:
            yield _plain(text[place:start])
        yield _plain(text[max(place, start) : end])
        place = max(place, end)


def _wrapped(inside: str, selected: bool, evidence: bool, number: str) -> str:
    if evidence:
        inside = f'<u class="marked">{inside}</u>'
    if number:
        inside += f'<sup class="nth">{number}</sup>'
    return f'<mark class="selected">{inside}</mark>' if selected else inside


def _cut(kept: Sequence[bool], marked: Sequence[bool], hidden: range) -> str:
    if not hidden:
        return ""
    counts = (("selected", sum(kept[place] for place in hidden)), ("marked", sum(marked[place] for place in hidden)))
    told = "".join(f", {many} {name}" for name, many in counts if many)
    return f'<span class="cut"> … {len(hidden)} more words{told} … </span>'


def _plain(piece: str) -> str:
    return html.escape(piece if len(piece) <= PIECE else f"{piece[:PIECE]}…")
