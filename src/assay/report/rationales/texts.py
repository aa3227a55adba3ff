"""Texts with what was selected in them, and what people marked."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

LONGEST = 150  # words of a text that are shown
PIECE = 300  # signs of one word


def shown(example: Mapping[str, Any]) -> str:
    """HTML of a text: selected words on colour, marked ones underlined; of a long one the richest part."""
    kept, total = example["kept"], len(example["starts"])
    marked = example["marked"] or [False] * total
    first, last = window(kept, LONGEST)
    pieces = [_cut(kept, marked, range(first))]
    place = example["starts"][first] if first else 0
    for (selected, evidence), group in groupby(range(first, last), lambda token: (kept[token], marked[token])):
        tokens = list(group)
        start, end = example["starts"][tokens[0]], example["ends"][tokens[-1]]
        pieces.append(_plain(example["text"][place:start]))
        pieces.append(_wrapped("".join(_words(example, tokens, place)), selected, evidence))
        place = max(place, end)
    pieces.append(_cut(kept, marked, range(last, total)) if last < total else _plain(example["text"][place:]))
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


def _words(example: Mapping[str, Any], tokens: Sequence[int], place: int) -> Iterator[str]:
    """Neighbouring words, with what stands between them."""
    for token in tokens:
        start, end = example["starts"][token], example["ends"][token]
        if token != tokens[0]:
            yield _plain(example["text"][place:start])
        yield _plain(example["text"][max(place, start) : end])
        place = max(place, end)


def _wrapped(inside: str, selected: bool, evidence: bool) -> str:
    if evidence:
        inside = f'<u class="marked">{inside}</u>'
    return f'<mark class="selected">{inside}</mark>' if selected else inside


def _cut(kept: Sequence[bool], marked: Sequence[bool], hidden: range) -> str:
    if not hidden:
        return ""
    counts = (("selected", sum(kept[place] for place in hidden)), ("marked", sum(marked[place] for place in hidden)))
    told = "".join(f", {many} {name}" for name, many in counts if many)
    return f'<span class="cut"> … {len(hidden)} more words{told} … </span>'


def _plain(piece: str) -> str:
    return html.escape(piece if len(piece) <= PIECE else f"{piece[:PIECE]}…")
