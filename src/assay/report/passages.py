"""Texts with a score of each word, or with what was selected in them and what people marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from assay.document import Passage, Span
from assay.report import heatmaps
from assay.report.heatmaps import Tokens, escaped


def html(passage: Passage) -> str:
    """The text with words on colour: the stronger the score, or selected; marked ones are underlined.

    Words with a number have it behind them. Of a long text the strongest or richest part is shown.
    """
    if passage.selected:
        return "".join(_selected(passage))
    tokens = Tokens(passage.text, passage.starts, passage.ends)
    return heatmaps.row(tokens, passage.scores, heatmaps.window(passage.scores, passage.size))


def spans(passage: Passage) -> tuple[str | Span, ...]:
    """The text where there are no colours, its selected or strongest words set apart."""
    first, last = _shown(passage)
    levels = passage.scores if passage.selected else [abs(level) > 4 for level in heatmaps.strengths(passage.scores)]
    found: list[str | Span] = [f"… {first} more words … "] if first else []
    place = passage.starts[first] if first else 0
    for token in range(first, last):
        start, end = passage.starts[token], passage.ends[token]
        word = passage.text[max(place, start) : end]
        number = f"[{passage.numbers[token]}]" if token in passage.numbers else ""
        found += [passage.text[place:start], Span(word) if levels[token] else word, number]
        place = max(place, end)
    left = len(passage.starts) - last
    return (*(part for part in found if part), f" … {left} more words …" if left else passage.text[place:])


def richest(flags: Sequence[float | bool], size: int) -> tuple[int, int]:
    """The first and the past-the-last word to show: all, or the `size` of them with the most selected words."""
    if len(flags) <= size:
        return 0, len(flags)
    sums = [0]
    for flag in flags:
        sums.append(sums[-1] + bool(flag))
    first = max(range(len(flags) - size + 1), key=lambda start: sums[start + size] - sums[start])
    return first, first + size


def _shown(passage: Passage) -> tuple[int, int]:
    return (richest if passage.selected else heatmaps.window)(passage.scores, passage.size)


def _selected(passage: Passage) -> Iterator[str]:
    """Neighbours that are alike are one stretch."""
    text, starts, ends, kept = passage.text, passage.starts, passage.ends, passage.scores
    marked = passage.marked or [False] * len(starts)
    first, last = _shown(passage)
    place = starts[first] if first else 0
    yield _cut(kept, marked, range(first))
    alike = groupby(range(first, last), lambda token: (bool(kept[token]), marked[token], passage.numbers.get(token)))
    for (selected, evidence, number), group in alike:
        tokens, inside = list(group), ""
        yield escaped(text[place : starts[tokens[0]]])
        place = max(place, starts[tokens[0]])
        for token in tokens:
            inside += escaped(text[place : starts[token]]) + escaped(text[max(place, starts[token]) : ends[token]])
            place = max(place, ends[token])
        yield _wrapped(inside, selected, evidence, number)
    yield _cut(kept, marked, range(last, len(starts))) if last < len(starts) else escaped(text[place:])


def _wrapped(inside: str, selected: bool, evidence: bool, number: str | None) -> str:
    if evidence:
        inside = f'<u class="marked">{inside}</u>'
    if number:
        inside += f'<sup class="nth">{number}</sup>'
    return f'<mark class="selected">{inside}</mark>' if selected else inside


def _cut(kept: Sequence[float], marked: Sequence[bool], hidden: range) -> str:
    if not hidden:
        return ""
    counts = (("selected", [kept[place] for place in hidden]), ("marked", [marked[place] for place in hidden]))
    some = "".join(f", {sum(map(bool, flags))} {name}" for name, flags in counts if any(flags))
    return f'<span class="cut"> … {len(hidden)} more words{some} … </span>'
