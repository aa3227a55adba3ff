"""The parts of the page, ready for its template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.report import drawings as drawn
from assay.report.grids import Grid
from assay.report.heads import answers, figures, words
from assay.report.heads.probe import Cells, Probe, Relation, real
from assay.report.matrices import Cell
from assay.report.writing import number, percent

FIRST = 12
"""So many relations are shown before the rest, which is folded away."""
ROOM = 24_000
"""Of more cells than this the numbers stand in probe.json alone: a page must stay small enough to be sent."""


@dataclass(frozen=True)
class Square:
    """Layers and heads as a drawing with a caption."""

    title: str
    drawing: str
    caption: str


@dataclass(frozen=True)
class Numbers:
    """Layers and heads as a table of shaded numbers."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Block:
    """One section below that of the relations."""

    name: str
    title: str
    answer: str
    reading: str
    squares: tuple[Square, ...]
    figure: Any
    table: Grid | None
    numbers: tuple[Numbers, ...]


def squares(found: Sequence[Relation]) -> list[Square]:
    """The square of every relation, in the order given."""
    made = []
    for each in found:
        caption = f"layer {each.layer}, head {each.head}: {percent(each.accuracy)}"
        label = f"Test accuracy of every head for {each.name}; chosen: layer {each.layer}, head {each.head}"
        drawing = drawn.square(each.every, label, ringed=(each.layer, each.head))
        made.append(Square(each.name, drawing, caption))
    return made


def numbers(found: Sequence[Relation]) -> list[Numbers]:
    """The same as numbers, or nothing where there are too many."""
    cells = sum(len(row) for each in found for row in each.every)
    return [_numbers(each.name, each.every) for each in found] if cells <= ROOM else []


def _numbers(title: str, values: Cells, shade: drawn.Shade = drawn.Shade()) -> Numbers:  # noqa: B008
    rows = [tuple(_cell(value, shade) for value in row) for row in values]
    return Numbers(title, tuple(rows))


def _cell(value: float | None, shade: drawn.Shade) -> Cell:
    found = real(value)
    text = "–" if math.isnan(found) else number(100 * found, 0)
    return Cell(text, shade.level(found), "")


def blocks(probe: Probe) -> list[Block]:
    """The sections after the relations, those that were run."""
    return [_block(name, probe["sections"][name]) for name in words.TITLES if probe["sections"].get(name)]


def _block(name: str, section: dict[str, Any]) -> Block:
    return Block(
        name,
        words.TITLES[name],
        answers.answer(name, section),
        words.READINGS[name],
        tuple(_squares(name, section)),
        figures.pruning(section) if name == "importance" else None,
        answers.table(name, section),
        tuple(_tables(name, section)),
    )


def _squares(name: str, section: dict[str, Any]) -> list[Square]:
    if name == "speech":
        return _profiles(section)
    if name == "importance":
        peak = _peak(section["importance"])
        where = _where(section["importance"], peak)
        drawing = drawn.square(section["importance"], "Importance of every head", drawn.Shade(0.0, peak), where)
        return [Square("importance", drawing, f"The darkest is the largest; ring: layer {where[0]}, head {where[1]}")]
    if name not in ("coreference", "negation"):
        return []
    chosen = section["layer"], section["head"]
    label = f"Test accuracy of every head for {name}"
    caption = f"layer {chosen[0]}, head {chosen[1]}: {percent(real(section['accuracy']))}"
    made = [Square("accuracy", drawn.square(section["every"], label, ringed=chosen), caption)]
    if section.get("confusion"):
        made.append(_confusion(section["confusion"], section.get("best_confusion")))
    return made


def _confusion(values: Cells, best: float | None) -> Square:
    """Cross-entropies turned round: dark is low, and low is good."""
    known = [real(value) for row in values for value in row if not math.isnan(real(value))]
    least, most = min(known, default=0.0), max(known, default=1.0)
    turned = [[most - real(value) for value in row] for row in values]
    drawing = drawn.square(turned, "Confusion of every head", drawn.Shade(0.0, most - least))
    caption = f"from {number(least, 2)} (darkest) to {number(most, 2)}; lowest on dev texts: {number(real(best), 2)}"
    return Square("confusion", drawing, caption)


def _profiles(section: dict[str, Any]) -> list[Square]:
    made = []
    for place, heads in enumerate(section["share"]):
        label = f"Profiles of the heads of layer {place} over parts of speech"
        made.append(Square(f"layer {place}", drawn.profile(heads, section["uniform"], section["tags"], label), ""))
    return made


def _tables(name: str, section: dict[str, Any]) -> list[Numbers]:
    if name == "importance":
        return [_numbers("importance × 100", section["importance"], drawn.Shade(0.0, _peak(section["importance"])))]
    return [_numbers("accuracy in %", section["every"])] if "every" in section else []


def _peak(values: Cells) -> float:
    return max((real(value) for row in values for value in row if value is not None), default=0.0)


def _where(values: Cells, wanted: float) -> tuple[int, int]:
    """The layer and the head of a number; beyond all of them where it is not there."""
    for layer, row in enumerate(values):
        for head, value in enumerate(row):
            if value is not None and value == wanted:
                return layer, head
    return -1, -1
