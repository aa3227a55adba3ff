"""Numbers as people read them, and text from anywhere as text that can be shown anywhere."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

LONG = 5000
SINGLE = str.maketrans('“”„«»"', "‘’‚‹›'")
"""A longer text is cut; whole it stands in the record."""

BLANKS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029")
SOFT = "\u00ad"  # where a word may end a line
JOINERS = frozenset("\u200c\u200d")
"""Without them Persian words and many emoji fall apart; they turn nothing around."""


def number(value: float | None, places: int = 3) -> str:
    """A number with a real minus sign; a dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    rounded = round(value, places) + 0.0  # and so no zero has a sign
    return f"{rounded:.{places}f}".replace("-", "−")


def figures(value: float) -> str:
    """A number of any size to three figures; a very small or large one as a power of ten."""
    if math.isnan(value):
        return "–"
    digits, _, power = f"{value:.3g}".partition("e")
    raised = f" × 10{str(int(power)).translate(RAISED)}" if power else ""
    return digits.replace("-", "−") + raised


def percent(share: float | None, places: int = 1) -> str:
    """A share as a percentage; a dash where there is none."""
    return "–" if share is None or math.isnan(share) else f"{number(100 * share, places)} %"


def interval(low: float | None, high: float | None, places: int = 3) -> str:
    """An interval as `low to high`; a dash where there is none."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "–"
    return f"{number(low, places)} to {number(high, places)}"


def count(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def counted(size: int, one: str, several: str) -> str:
    """How many there are of something."""
    return f"{count(size)} {one if size == 1 else several}"


def evidence(low: float, high: float, n: int) -> str:
    """What stands behind a mean: `95 % interval low to high, n = n`."""
    return f"95 % interval {interval(low, high, 2)}, n = {count(n)}"


def significance(p: float | None) -> str:
    """A p-value as people write it; nothing where there is none."""
    if p is None or math.isnan(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def chance(p: float) -> str:
    """A p-value under a head that says so."""
    return significance(p).removeprefix("p ").removeprefix("= ")


def listed(clauses: Sequence[str]) -> str:
    """Clauses as one enumeration."""
    return " and ".join(clauses) if len(clauses) < 3 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"


def quoted(text: str, most: int = 20) -> str:
    """The text in quotation marks, truncated after so many words; inner quotation marks become single."""
    words = text.translate(SINGLE).split()
    return f"“{' '.join(words[:most])}{' …' if len(words) > most else ''}”"


def line(text: str) -> str:
    """The text on one line, with whatever would act or hide instead of being seen written as its code point.

    These are control characters, halves of pairs, and marks that turn the direction of what stands beside them.
    """
    shortened = clipped(text)
    if shortened.isascii() and shortened.isprintable():
        return shortened
    return "".join(map(_seen, shortened))


def clipped(text: str, most: int = LONG) -> str:
    """The text, or its beginning and how much is left out."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def encodable(text: str) -> str:
    """The text without halves of pairs, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def finite(value: Any) -> Any:
    """The same data, with None for what is no number; that is what JSON can say."""
    if isinstance(value, dict):
        return {encodable(str(key)): finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [finite(held) for held in value]
    if isinstance(value, str):
        return encodable(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines(value: Any) -> Any:
    """The same data, with every text on one line and nothing hidden in it; keys are ours and stay."""
    if isinstance(value, dict):
        return {key: lines(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [lines(held) for held in value]
    return line(value) if isinstance(value, str) else value


def _seen(character: str) -> str:
    if character in BLANKS:
        return " "
    if character == SOFT:
        return ""
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in JOINERS
    return f"[U+{ord(character):04X}]" if hidden else character
