"""Texts as written, with each token's score as colour, as underline and as a number on hover and focus."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.style import Style
from rich.text import Text

from assay.document import Example, Line, Passage, Span
from assay.writing import clipped

LEVELS = 8
WINDOW = 150
PIECE = 300


def row(tokens: Example | Passage, scores: Sequence[float], shown: tuple[int, int], flags: bool = False) -> str:
    """HTML of the text between two token places, darker and more heavily underlined where |score| is large.

    The strongest token of the whole text sets the scale; where it is cut off, the cut names it. Of scores that are
    flags a cut tells how many are set.
    """
    first, last = shown
    levels = strengths(scores)
    cut = _counted if flags else _cut
    pieces = [cut(tokens, scores, range(first))]
    place = tokens.starts[first] if first else 0
    for token in range(first, last):
        start, end = tokens.starts[token], tokens.ends[token]
        pieces.append(escaped(tokens.text[place:start]))
        pieces.append(_mark(tokens.text[max(place, start) : end], scores[token], levels[token]))
        place = max(place, end)
    total = len(tokens.starts)
    pieces.append(cut(tokens, scores, range(last, total)) if last < total else escaped(tokens.text[place:]))
    return "".join(pieces)


def strengths(scores: Sequence[float]) -> list[int]:
    """A step from -LEVELS to LEVELS for each score, relative to the largest |score| of the row."""
    peak = max(_sizes(scores), default=0.0)
    return [round(LEVELS * score / peak) if peak > 0 and math.isfinite(score) else 0 for score in scores]


def window(scores: Sequence[float], size: int = WINDOW) -> tuple[int, int]:
    """The first and the past-the-last token to show: all, or `size` of them around the strongest."""
    if len(scores) <= size:
        return 0, len(scores)
    sizes = _sizes(scores)
    first = min(max(sizes.index(max(sizes)) - size // 2, 0), len(scores) - size)
    return first, first + size


def terminal(text: str, starts: Sequence[int], ends: Sequence[int], scores: Sequence[float]) -> Text:
    """The text for a terminal: orange speaks for the class, blue against it, bold or underlined is strong."""
    shown = Text(text)
    for start, end, level in zip(starts, ends, strengths(scores), strict=True):
        if level:
            shown.stylize(_style(level), start, end)
    return shown


def line(example: Example, given: Line) -> str:
    """HTML of the words of an example that are shown, with the scores or flags of one line."""
    if given.none and not any(given.scores):
        return f'<span class="cut">{escaped(given.none)}</span>'
    return row(example, given.scores, (example.first, example.last), flags=given.kind == "flags")


def sampled(example: Example) -> Mapping[str, Any]:
    """An example as plain data: the words that are shown, and how strong each is, from -8 to 8."""
    shown = slice(example.first, example.last)
    return {
        "example": example.number,
        "label": example.label,
        "predicted": example.predicted,
        "right": example.label == example.predicted,
        "probability": example.probability,
        "query": clipped(example.query) if example.query else None,
        "before": example.first,
        "after": len(example.starts) - example.last,
        "words": [word if len(word) <= PIECE else f"{word[:PIECE]}…" for word in example.words],
        "rows": [
            {
                "name": each.name,
                "kind": "flags" if each.kind == "flags" else "scores",
                "scores": list(each.scores[shown]),
                "levels": strengths(each.scores)[shown],
                "trust": (each.remark or None) if each.kind == "explainer" else None,
                "remark": each.remark or None,
            }
            for each in example.lines
        ],
        "left_out": len(example.rest),
    }


def strongest(words: Sequence[str], scores: Sequence[float], most: int = 5) -> list[tuple[str, float]]:
    """The words with the largest scores, for or against, the largest first; a score of 0 says nothing."""
    scored = [(word, score) for word, score in zip(words, scores, strict=True) if math.isfinite(score) and score != 0]
    return sorted(scored, key=lambda pair: -abs(pair[1]))[:most]


def passage(given: Passage) -> str:
    """The text with words on colour: the stronger the score, or selected; marked ones are underlined.

    Words with a number have it behind them. Of a long text the strongest or richest part is shown.
    """
    if given.selected:
        return "".join(_selected(given))
    return row(given, given.scores, window(given.scores, given.size))


def spans(passage: Passage) -> tuple[str | Span, ...]:
    """The text where there are no colours, its selected or strongest words set apart."""
    first, last = _shown(passage)
    levels = passage.scores if passage.selected else [abs(level) > 4 for level in strengths(passage.scores)]
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


def _cut(tokens: Example | Passage, scores: Sequence[float], hidden: range) -> str:
    """How many tokens are left out, and which one where the strongest is among them."""
    if not hidden:
        return ""
    sizes = _sizes(scores)
    peak = sizes.index(max(sizes))
    word = tokens.text[tokens.starts[peak] : tokens.ends[peak]]
    named = f", the strongest among them: {escaped(word)} {_value(scores[peak])}" if peak in hidden else ""
    return f'<span class="cut"> … {len(hidden)} more tokens{named} … </span>'


def _counted(tokens: Example | Passage, scores: Sequence[float], hidden: range) -> str:
    """How many tokens are left out, and how many of them are marked."""
    marks = sum(scores[place] > 0 for place in hidden)
    told = f", {marks} of them marked" if marks else ""
    return f'<span class="cut"> … {len(hidden)} more tokens{told} … </span>' if hidden else ""


def escaped(piece: str) -> str:
    """A word or what stands between words as text; a piece longer than any word is cut."""
    return html.escape(piece if len(piece) <= PIECE else f"{piece[:PIECE]}…")


def _sizes(scores: Sequence[float]) -> list[float]:
    return [abs(score) if math.isfinite(score) else 0.0 for score in scores]


def _value(score: float) -> str:
    return f"{score:.3g}".replace("-", "−")


def _mark(word: str, score: float, level: int) -> str:
    """One token; those that would not be seen anyway stay plain text, which keeps a page small."""
    if not level:
        return escaped(word)
    sign = "p" if level > 0 else "n"
    return f'<mark class="{sign}{abs(level)}" tabindex="0" title="{_value(score)}">{escaped(word)}</mark>'


def _style(level: int) -> Style:
    """A ground that darkens from almost white, black ink throughout, so that it reads on any terminal."""
    faint = (LEVELS - abs(level)) / LEVELS
    red, green, blue = (235, 137, 35) if level > 0 else (90, 150, 225)
    ground = ",".join(str(round(part + (250 - part) * faint * 0.85)) for part in (red, green, blue))
    strong = abs(level) > LEVELS // 2
    return Style.parse(f"black on rgb({ground}){' bold' if strong else ''}{' underline' if abs(level) > 6 else ''}")


def _shown(passage: Passage) -> tuple[int, int]:
    return (richest if passage.selected else window)(passage.scores, passage.size)


def _selected(passage: Passage) -> Iterator[str]:
    """Neighbours that are alike are one stretch."""
    text, starts, ends, kept = passage.text, passage.starts, passage.ends, passage.scores
    marked = passage.marked or [False] * len(starts)
    first, last = _shown(passage)
    place = starts[first] if first else 0
    yield _lost(kept, marked, range(first))
    alike = groupby(range(first, last), lambda token: (bool(kept[token]), marked[token], passage.numbers.get(token)))
    for (selected, evidence, number), group in alike:
        tokens, inside = list(group), ""
        yield escaped(text[place : starts[tokens[0]]])
        place = max(place, starts[tokens[0]])
        for token in tokens:
            inside += escaped(text[place : starts[token]]) + escaped(text[max(place, starts[token]) : ends[token]])
            place = max(place, ends[token])
        yield _wrapped(inside, selected, evidence, number)
    yield _lost(kept, marked, range(last, len(starts))) if last < len(starts) else escaped(text[place:])


def _wrapped(inside: str, selected: bool, evidence: bool, number: str | None) -> str:
    if evidence:
        inside = f'<u class="marked">{inside}</u>'
    if number:
        inside += f'<sup class="nth">{number}</sup>'
    return f'<mark class="selected">{inside}</mark>' if selected else inside


def _lost(kept: Sequence[float], marked: Sequence[bool], hidden: range) -> str:
    if not hidden:
        return ""
    counts = (("selected", [kept[place] for place in hidden]), ("marked", [marked[place] for place in hidden]))
    some = "".join(f", {sum(map(bool, flags))} {name}" for name, flags in counts if any(flags))
    return f'<span class="cut"> … {len(hidden)} more words{some} … </span>'
