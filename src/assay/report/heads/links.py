"""The attention of one head in one sentence, as lines between words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from assay.report.drawings import WORD, drawing, escaped
from assay.report.heads.probe import ANY, Cells, real

FAINT = 0.04  # weights below this are not drawn
LEFT, RIGHT, TALL, TOP = 124, 216, 19, 14
MARKS = "punct"
Answers = dict[int, frozenset[int]]
"""The words that are asked about, and the right answers of each."""


def answers(example: Mapping[str, Any], title: str) -> Answers:
    """What is asked of a head with this title, such as "obj, to governor"; of any other, both ways of all relations."""
    relation, _, direction = title.partition(", ")
    arcs = [
        (place, governor)
        for place, governor in enumerate(example["governors"])
        if governor >= 0 and _meant(relation, example["relations"][place], direction)
    ]
    if direction != "to dependent":
        found = {place: frozenset([governor]) for place, governor in arcs}
        if direction == "to governor":
            return found
    back = {governor: frozenset(one for one, other in arcs if other == governor) for _, governor in arcs}
    if direction == "to dependent":
        return back
    return {place: found.get(place, frozenset()) | back.get(place, frozenset()) for place in {*found, *back}}


def _meant(relation: str, found: str, direction: str) -> bool:
    if not direction.startswith("to "):
        return True
    return found == relation or (relation == ANY and found != MARKS)


def lines(words: Sequence[str], weights: Cells, asked: Answers, label: str) -> str:
    """The words twice, those that attend on the left; the stronger a weight, the broader its line.

    Words that are asked about are bold, with a tick or a cross; lines from them to a right answer are orange, to others
    blue; the lines of all other words are grey.
    """
    groups: dict[str, list[str]] = {"rest": [], "other": [], "true": []}
    for one, row in enumerate(weights):
        for other, weight in enumerate(row):
            strength = min(1.0, known_weight(weight))
            if strength >= FAINT:
                kind = "rest" if one not in asked else "true" if other in asked[one] else "other"
                groups[kind].append(_line(one, other, strength))
    names = "".join(_names(place, word, place in asked) for place, word in enumerate(words))
    marks = "".join(_mark(place, hit(asked, weights, place)) for place in asked)
    drawn = "".join(f'<g class="{kind}">{"".join(found)}</g>' for kind, found in groups.items())
    return drawing(RIGHT + 124, TOP + TALL * len(words), label, drawn + marks + names)


def _line(one: int, other: int, strength: float) -> str:
    return (
        f'<line x1="{LEFT}" y1="{TOP + TALL * one}" x2="{RIGHT}" y2="{TOP + TALL * other}" '
        f'stroke-width="{0.5 + 4.5 * strength:.1f}" opacity="{0.25 + 0.75 * strength:.2f}"/>'
    )


def _names(place: int, word: str, asked: bool) -> str:
    y = TOP + TALL * place + 4
    strong = ' class="asked"' if asked else ""
    text = escaped(word) if len(word) <= WORD else f"{escaped(word)}<title>{escaped(word, 300)}</title>"
    attending = f'<text{strong} x="{LEFT - 5}" y="{y}" text-anchor="end">{text}</text>'
    return f'{attending}<text x="{RIGHT + 5}" y="{y}">{text}</text>'


def _mark(place: int, right: bool) -> str:
    y = TOP + TALL * place
    return (
        f'<path class="tick" d="M4 {y}l3.5 4l6 -8.5"/>'
        if right
        else f'<path class="wrong" d="M5 {y - 4}l8 8m0 -8l-8 8"/>'
    )


def known_weight(weight: float | None) -> float:
    """The weight, 0 where it is unknown."""
    found = real(weight)
    return 0.0 if math.isnan(found) else found


def strongest(weights: Cells, place: int) -> int | None:
    """The word that a word attends to most, itself left out; None where it has no other."""
    row = [(known_weight(weight), -other) for other, weight in enumerate(weights[place]) if other != place]
    return -max(row)[1] if row and max(row)[0] > 0 else None


def hit(asked: Answers, weights: Cells, place: int) -> bool:
    """Whether a word attends most to a right answer."""
    return strongest(weights, place) in asked.get(place, ())
