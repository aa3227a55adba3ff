"""Texts as written, with each token's score as colour, as underline and as a number on hover and focus."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

LEVELS = 8
WINDOW = 150
PIECE = 300


@dataclass(frozen=True)
class Tokens:
    """A text and where its tokens start and end in it."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def row(tokens: Tokens, scores: Sequence[float], shown: tuple[int, int], flags: bool = False) -> str:
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


def marked(tokens: Tokens, flags: Sequence[bool], shown: tuple[int, int]) -> str:
    """HTML of the text with the flagged tokens marked, for evidence that is known."""
    return row(tokens, [1.0 if flag else 0.0 for flag in flags], shown, flags=True)


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


def _cut(tokens: Tokens, scores: Sequence[float], hidden: range) -> str:
    """How many tokens are left out, and which one where the strongest is among them."""
    if not hidden:
        return ""
    sizes = _sizes(scores)
    peak = sizes.index(max(sizes))
    word = tokens.text[tokens.starts[peak] : tokens.ends[peak]]
    named = f", the strongest among them: {escaped(word)} {_value(scores[peak])}" if peak in hidden else ""
    return f'<span class="cut"> … {len(hidden)} more tokens{named} … </span>'


def _counted(tokens: Tokens, scores: Sequence[float], hidden: range) -> str:
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
