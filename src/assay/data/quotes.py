"""Quotes texts in messages."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 20  # words of a text that are shown
SINGLE = str.maketrans('“”„«»"', "‘’‚‹›'")


def quoted(text: str) -> str:
    """The text in quotation marks, truncated if long; inner quotation marks become single."""
    words = text.translate(SINGLE).split()
    return f"“{' '.join(words[:MOST])}{' …' if len(words) > MOST else ''}”"


def listed(parts: Sequence[str]) -> str:
    """Joins parts as in a sentence: a, b and c."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
