"""Text from anywhere as text that can be shown anywhere, and numbers that any reader takes."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

LONG = 5000
"""A longer text is cut; whole it stands in the record."""

BLANKS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029")
JOINERS = frozenset("\u200c\u200d")
"""Without them Persian words and many emoji fall apart; they turn nothing around."""


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
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs") and character not in JOINERS
    return f"[U+{ord(character):04X}]" if hidden else character
