"""Stored probes, and small drawings of them as SVG."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.writing import percent

# What a probe of attention heads left on disk, read back and put in order

FORMAT, FILE, PAGE = "assay-probe-2", "probe.json", "probe.html"
EARLIER = "assay-probe-1"
"""The same, but for layers and heads, which it counts from 1."""
ANY = "any"
"""Stands for all relations but punctuation, taken together."""

Probe = Mapping[str, Any]
Cells = Sequence[Sequence[float | None]]
"""A number for each layer and head, None where there is none."""

Answers = dict[int, frozenset[int]]
"""The words that are asked about, and the right answers of each."""

MARKS = "punct"
"""The relation of punctuation, which is not counted among any."""


@dataclass(frozen=True)
class Relation:
    """The head that was chosen for one relation in one direction, and what it is held against."""

    relation: str
    direction: str
    n: int
    n_dev: int
    layer: int
    head: int
    accuracy: float
    low: float
    high: float
    dev_accuracy: float
    offset: int
    offset_accuracy: float
    control_accuracy: float
    control_low: float
    control_high: float
    chance: float
    every: Cells

    @property
    def title(self) -> str:
        return "any relation" if self.relation == ANY else self.relation

    @property
    def name(self) -> str:
        return f"{self.title}, {self.direction}"

    @property
    def lead(self) -> float:
        """How much more often the head is surely right than the best fixed offset: by the lower end of its interval."""
        return self.low - self.offset_accuracy

    @property
    def beats_offset(self) -> bool:
        """Whether the whole interval lies above what the best fixed offset reaches."""
        return self.low > self.offset_accuracy

    @property
    def beats_control(self) -> bool:
        """Whether the whole interval lies above the whole interval of the control."""
        return self.low > self.control_high

    @property
    def beats_both(self) -> bool:
        return self.beats_offset and self.beats_control


def read(path: Path) -> Probe:
    """The probe in a file."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise AssayError(f"There is no {path}; make it with 'assay probe'.") from fault
    except ValueError as fault:
        raise AssayError(f"{path} is damaged ({fault}); probe the model again.") from fault
    if isinstance(held, dict) and held.get("format") == EARLIER:
        return dict(_from_zero(held), format=FORMAT)
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise AssayError(f"{path} is not a probe of heads as this version writes it; probe the model again.")
    return held


def _from_zero(held: Any) -> Any:
    """A probe of the earlier format with layers and heads counted from 0; a list of "heads" holds drawings."""
    if isinstance(held, list):
        return [_from_zero(each) for each in held]
    if not isinstance(held, dict):
        return held
    named = {"layer", "head"} <= held.keys()
    return {key: each - 1 if named and key in ("layer", "head") else _from_zero(each) for key, each in held.items()}


def relations(probe: Probe) -> list[Relation]:
    """Every relation in every direction, those with the surest lead over the fixed offset first."""
    found = [_relation(each) for each in probe["sections"].get("relations") or ()]
    return sorted(found, key=lambda each: (-known(each.lead, -math.inf), each.relation, each.direction))


def single(found: Sequence[Relation]) -> list[Relation]:
    """Those that are one relation, not all together."""
    return [each for each in found if each.relation != ANY]


def best_directions(found: Sequence[Relation]) -> list[Relation]:
    """Of each relation the direction in which its head leads most surely, in the order given."""
    first: dict[str, Relation] = {}
    for each in found:
        first.setdefault(each.relation, each)
    return list(first.values())


def real(value: Any) -> float:
    """A number, nan where there is none."""
    return math.nan if value is None else float(value)


def known(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def _relation(held: Mapping[str, Any]) -> Relation:
    kept = ("relation", "direction", "every")
    whole = ("n", "n_dev", "layer", "head", "offset")
    values: dict[str, Any] = {}
    for field in fields(Relation):
        value = held.get(field.name)
        if field.name in whole:
            values[field.name] = int(value or 0)
        else:
            values[field.name] = value if field.name in kept else real(value)
    return Relation(**values)


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


# Small drawings as SVG, made here and escaped here: accuracies, squares of layers and heads, lines between words

LEVELS = 8
CELL = 14
WORD = 18  # letters; a longer word is cut
FAINT = 0.04  # weights below this are not drawn
LEFT, RIGHT, TALL, TOP = 124, 216, 19, 14  # of the lines between words


@dataclass(frozen=True)
class Shade:
    """How numbers become shades: 0 at `middle`, the darkest at `far` on either side."""

    middle: float = 0.0
    far: float = 1.0

    def level(self, value: float | None) -> int:
        """A step from -LEVELS to LEVELS; 0 where there is no number."""
        if value is None or math.isnan(value) or self.far <= self.middle:
            return 0
        part = (value - self.middle) / (self.far - self.middle)
        return round(LEVELS * max(-1.0, min(1.0, part)))


def square(values: Cells, label: str, shade: Shade = Shade(), ringed: tuple[int, int] | None = None) -> str:  # noqa: B008
    """Layers from top to bottom, heads from left to right, as one drawing; `ringed` is a layer and a head."""
    layers, heads = len(values), len(values[0])
    left, top = 24, 16
    cells = _shaded([[shade.level(value) for value in line] for line in values], (left, top), (CELL, CELL))
    ring = ""
    if ringed and 0 <= ringed[0] < layers and 0 <= ringed[1] < heads:
        x, y = left + CELL * ringed[1] - 1.5, top + CELL * ringed[0] - 1.5
        ring = f'<rect class="ring" x="{x}" y="{y}" width="16" height="16" rx="2"/>'
    marks = _ticks(heads, left, top, across=True) + _ticks(layers, left, top, across=False)
    width, height = left + CELL * heads + 3, top + CELL * layers + 3
    return drawing(width, height, label, cells + ring + marks)


def _shaded(levels: Sequence[Sequence[int]], corner: tuple[int, int], cell: tuple[int, int]) -> str:
    """Cells of a table on their ground, one path for each shade."""
    (left, top), (wide, tall) = corner, cell
    paths: dict[int, list[str]] = {}
    for row, line in enumerate(levels):
        for column, level in enumerate(line):
            if level:
                start = f"M{left + wide * column} {top + tall * row}"
                paths.setdefault(level, []).append(f"{start}h{wide - 1}v{tall - 1}h{1 - wide}z")
    width, height = wide * len(levels[0]) + 1, tall * len(levels) + 1
    ground = f'<rect class="ground" x="{left - 1}" y="{top - 1}" width="{width}" height="{height}"/>'
    cells = (f'<path class="{_step(level)}" d="{"".join(found)}"/>' for level, found in sorted(paths.items()))
    return ground + "".join(cells)


def _ticks(size: int, left: int, top: int, across: bool) -> str:
    """The number of the first and of every third or so layer or head."""
    every = max(1, -(-size // 6) if size > 8 else 1)
    words = []
    for place in range(0, size, every):
        middle = CELL * place + 6.5
        if across:
            words.append(f'<text x="{left + middle}" y="{top - 5}" text-anchor="middle">{place}</text>')
        else:
            words.append(f'<text x="{left - 5}" y="{top + middle + 3.5}" text-anchor="end">{place}</text>')
    return "".join(words)


def _step(level: int) -> str:
    return f"{'p' if level > 0 else 'n'}{abs(level)}"


def bar(found: Relation) -> str:
    """The accuracy of a head with its interval, the fixed offset as an upright stroke and the control as a cross."""
    width, middle = 200, 10
    parts = [f'<line class="axis" x1="0" x2="{width}" y1="{middle}" y2="{middle}"/>']
    if not math.isnan(found.low) and not math.isnan(found.high):
        start, end = width * found.low, width * found.high
        parts.append(f'<line class="interval" x1="{start:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}"/>')
    if not math.isnan(found.control_accuracy):
        parts.append(f'<path class="control" d="{_cross(width * found.control_accuracy, middle)}"/>')
    if not math.isnan(found.offset_accuracy):
        x = width * found.offset_accuracy
        parts.append(f'<line class="offset" x1="{x:.1f}" x2="{x:.1f}" y1="2" y2="18"/>')
    if not math.isnan(found.accuracy):
        parts.append(f'<circle class="found" cx="{width * found.accuracy:.1f}" cy="{middle}" r="4.5"/>')
    label = (
        f"{found.name}: head {percent(found.accuracy)}, fixed offset {percent(found.offset_accuracy)}, "
        f"control {percent(found.control_accuracy)}"
    )
    return drawing(width, 20, label, "".join(parts), margin=5)


def _cross(x: float, y: int, size: float = 3.5) -> str:
    return f"M{x - size:.1f} {y - size}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} {2 * size}"


def profile(shares: Cells, uniform: Sequence[float], tags: Sequence[str], label: str) -> str:
    """The heads of one layer from top to bottom, parts of speech from left to right: more or less than evenly spread.

    The darkest shade is four times the share that even attention gives, or a fourth of it.
    """
    left, top, wide, tall = 24, 48, 18, 16
    shade = Shade(0.0, 2.0)
    levels = [[shade.level(ratio(*each)) for each in zip(line, uniform, strict=True)] for line in shares]
    cells = _shaded(levels, (left, top), (wide, tall))
    width, height = wide * len(tags), tall * len(shares)
    names = "".join(
        f'<text transform="translate({left + wide * place + 12} {top - 5}) rotate(-90)">{escaped(tag, 6)}</text>'
        for place, tag in enumerate(tags)
    )
    rows = "".join(
        f'<text x="{left - 5}" y="{top + tall * row + 11.5}" text-anchor="end">{row}</text>'
        for row in range(len(shares))
    )
    return drawing(left + width + 3, top + height + 3, label, cells + names + rows)


def ratio(share: float | None, even: float | None) -> float:
    """How many times the even share it is, as a power of two; nan where it cannot be told."""
    share, even = real(share), real(even)
    if math.isnan(share) or math.isnan(even) or even <= 0:
        return math.nan
    return math.log2(max(share, even / 64) / even)


def escaped(word: str, most: int = WORD) -> str:
    """A word as text, cut where it is long."""
    return html.escape(word if len(word) <= most else f"{word[: most - 1]}…")


def drawing(width: int, height: int, label: str, inside: str, margin: int = 0) -> str:
    box = f"{-margin} 0 {width + 2 * margin} {height}"
    return (
        f'<svg viewBox="{box}" width="{width + 2 * margin}" height="{height}" role="img" '
        f'aria-label="{escaped(label, 400)}">{inside}</svg>'
    )


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


def sample(inside: str, width: int = 40) -> str:
    """A sign of a drawing beside what it stands for."""
    return f'<svg viewBox="0 0 {width} 20" width="{width}" height="20" aria-hidden="true">{inside}</svg>'


def shades(sign: str) -> str:
    """All shades of one colour, from faint to strong; those against something from strong to faint."""
    levels = range(1, 9) if sign == "p" else range(8, 0, -1)
    cells = "".join(
        f'<path class="{sign}{level}" d="M{17 * place} 4h16v12h-16z"/>' for place, level in enumerate(levels)
    )
    return sample(cells, 136)
