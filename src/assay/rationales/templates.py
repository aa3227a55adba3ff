"""Explanations by template: selected words and landmarks as one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from assay.data.examples import Span
from assay.writing import listed, quoted


def says(answer: str, text: str, spans: Sequence[Span], reminded: str = "") -> str:
    """“I answer X because it says “…” and “…”.”, of the characters that a rationale selected.

    Neighbours with nothing but white space between them are quoted as one. `reminded` is a clause on what the text
    reminds a model of, such as landmarks give: “it reminds me of “…”, which is also X”.
    """
    stretches = [quoted(text[start:end]) for start, end in joined(text, spans)]
    reasons = [f"it says {listed(stretches)}"] if stretches else []
    reasons += [reminded] if reminded else []
    if not reasons:
        return f"I answer {answer}, and nothing in it says why."
    return f"I answer {answer} because {', and because '.join(reasons)}."


def clause(sentence: str) -> str:
    """The part of a sentence after “because”, or all of it where there is none."""
    _, found, reason = sentence.rstrip(".").partition(" because ")
    return reason if found else sentence.rstrip(".")


def joined(text: str, spans: Sequence[Span]) -> list[Span]:
    """The spans in order, overlapping or touching ones merged."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return [(start, end) for start, end in found if text[start:end].strip()]
