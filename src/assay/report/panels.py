"""Small panels with a dot and an interval in each line: explainers over runs, and subjects of a study over models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import altair as alt

from assay.lookup import BASELINES
from assay.report import study_words
from assay.report.canvas import CLASS_COLOURS, GRADE_COLOURS, INK, Figure, Rows, finish, known, layers, sheet
from assay.report.differences import Comparison
from assay.report.figures.verdict import SHAPES
from assay.report.quantities import headline
from assay.report.questions import Answer, Cell, Column, Row
from assay.report.sections import MOST
from assay.report.yardsticks import scale
from assay.writing import line, number

WIDTH = 150
LONG = 24  # letters of a name beside the axis
WIDE = 190
LETTER, LIMIT = 7.5, 170  # width of one of them, and of all
FLAT = 4  # a panel may be so many times narrower than the scale that it shares
STEP, DENSE = 22, 13  # height of a line: with one model, and of each of several
HOLDS, OPEN = "holds", "open"
PLAIN = "reference"  # the look of what is not graded


def run_panels(comparison: Comparison) -> list[tuple[str, Figure]]:
    """A figure for each explainer, on one scale: mean and 95 % interval in each run, and what random scores reach."""
    quantity = comparison.headline
    if quantity is None:
        return []
    subjects = [name for name in comparison.subjects(quantity) if name not in BASELINES][:MOST]
    nulls = {
        run: scale(record).null_measured for run, record in comparison.records.items() if headline(record) == quantity
    }
    labels = dict(zip(comparison.records, _labels(list(comparison.records)), strict=True))
    made: dict[str, Rows] = {subject: [] for subject in subjects}
    for subject, rows in made.items():
        for run in comparison.records:
            value = comparison.values.get((quantity, subject, run))
            if value is not None:
                grade = value.grade if value.grade in SHAPES else PLAIN
                ends = {"mean": value.mean, "low": value.low, "high": value.high, "null": nulls.get(run)}
                rows.append({"run": labels[run], "grade": grade, "told": number(value.mean, 2)} | ends)
    drawn = [row for rows in made.values() for row in rows]
    if not drawn:
        return []
    reached = known(row[key] for row in drawn for key in ("low", "mean", "high"))
    lowest, highest = min(reached), max(reached)
    domain = (min(0.0, math.floor(10 * lowest) / 10), max(1.0, math.ceil(10 * highest) / 10))
    return [
        (line(subject), _run_panel(subject, rows, domain, quantity.title)) for subject, rows in made.items() if rows
    ]


def _run_panel(subject: str, rows: Rows, domain: tuple[float, float], title: str) -> Figure:
    colour = alt.Color("grade:N", legend=None, scale=_scale(GRADE_COLOURS))
    shape = alt.Shape("grade:N", legend=None, scale=_scale(SHAPES))
    names = alt.Axis(labelFontSize=12, labelLimit=140, grid=False)
    shared = sheet(rows).encode(y=alt.Y("run:N", sort=None, title=None, axis=names))
    axis = alt.Axis(values=[place / 2 for place in range(-2, 3)], format=".1f")
    x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), title=None, axis=axis)
    spans = shared.mark_rule(strokeWidth=4, opacity=0.5, strokeCap="round").encode(x=x, x2="high:Q", color=colour)
    dots = shared.mark_point(filled=True, size=90, opacity=1).encode(x="mean:Q", color=colour, shape=shape)
    words = shared.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(WIDTH + 8), text="told:N")
    nulls = [row for row in rows if row["null"] is not None]
    ticks = sheet(nulls).mark_tick(color=INK, thickness=1.5, size=14, opacity=0.7)
    marks = [ticks.encode(x="null:Q", y=alt.Y("run:N", sort=None))] if nulls else []
    told = ", ".join(f"{row['run']} {row['told']}" for row in rows)
    figure = layers(spans, *marks, dots, words).properties(width=WIDTH, height=alt.Step(22))
    return finish(figure, f"{title} of {line(subject)} in each run: {told}.")


def _labels(names: list[str]) -> list[str]:
    """Names short enough for an axis, and still all different."""
    return [
        name if len(name) <= LONG else f"{name[: LONG - 6]}… ({place})" for place, name in enumerate(names, start=1)
    ]


def _scale(values: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(values), range=list(values.values()))


def study_panels(answer: Answer) -> list[tuple[str, Figure]]:
    """A figure for each corpus; of many models as many at a time as there are colours."""
    figures = []
    for corpus, models in _held(answer):
        if rows := _rows(answer, models):
            domain = _domain(answer, list(models) if apart(answer) else range(len(answer.columns)))
            figures.append((line(corpus), _study_panel(answer, rows, list(models.values()), domain)))
    return figures


def apart(answer: Answer) -> bool:
    """Whether each panel has its own scale: on one for all, some would show a single spot."""
    spans = [_domain(answer, list(models)) for _, models in _held(answer) if _cells(answer, list(models))]
    whole = _domain(answer, range(len(answer.columns)))
    return any(FLAT * (high - low) < whole[1] - whole[0] for low, high in spans)


def left(answer: Answer) -> int:
    """How many rows of the table are not drawn."""
    return max(0, len(answer.rows) - MOST)


def _held(answer: Answer) -> Iterator[tuple[str, dict[int, str]]]:
    """The corpus of each panel, and the names of its models by the places of their columns."""
    for corpus in dict.fromkeys(column.corpus for column in answer.columns):
        held = [place for place, column in enumerate(answer.columns) if column.corpus == corpus]
        for start in range(0, len(held), len(CLASS_COLOURS)):
            some = held[start : start + len(CLASS_COLOURS)]
            yield corpus, dict(zip(some, _labels([_model(answer.columns[place]) for place in some]), strict=True))


def _drawn(answer: Answer) -> Sequence[Row]:
    """The first rows, with the one that they are tested against among them."""
    first = answer.rows[:MOST]
    if any(row.subject == answer.against for row in first):
        return first
    against = [row for row in answer.rows if row.subject == answer.against]
    return [*first[: MOST - len(against)], *against]


def _cells(answer: Answer, places: Sequence[int]) -> list[Cell]:
    return [cell for row in _drawn(answer) for place in places if (cell := row.cells[place]) is not None]


def _domain(answer: Answer, places: Sequence[int]) -> tuple[float, float]:
    """From the lowest end to the highest; intervals over two seeds reach so far that only their means count."""
    found = _cells(answer, places)
    ends = [end for cell in found if cell.over == "texts" or cell.seeds > 2 for end in (cell.low, cell.high)]
    ends = known(ends) + [cell.mean for cell in found]
    lowest, highest = min(ends, default=0.0), max(ends, default=0.0)
    margin = 0.08 * (highest - lowest) or 0.05
    return lowest - margin, highest + margin


def _rows(answer: Answer, models: dict[int, str]) -> Rows:
    drawn = _drawn(answer)
    names = _labels([study_words.subject(row.subject) for row in drawn])
    shown_to = study_words.places(answer)
    return [
        _row(name, model, cell, number(cell.mean, shown_to))
        for name, row in zip(names, drawn, strict=True)
        for place, model in models.items()
        if (cell := row.cells[place]) is not None
    ]


def _row(name: str, model: str, cell: Cell, told: str) -> dict[str, Any]:
    holds = cell.difference is None or cell.difference.sure  # what was not tested is no open question
    state = {"name": name, "model": model, "state": HOLDS if holds else OPEN}
    return state | {"mean": cell.mean, "low": cell.low, "high": cell.high, "told": told}


def _study_panel(answer: Answer, rows: Rows, models: list[str], domain: tuple[float, float]) -> Figure:
    several = len(models) > 1
    colour = alt.Color(
        "model:N",
        legend=alt.Legend(columns=2 if max(map(len, models)) <= 20 else 1) if several else None,
        scale=alt.Scale(domain=models, range=list(CLASS_COLOURS[: len(models)])),
    )
    # fonts of readers are wider than the one that is measured here
    room = min(LIMIT, LETTER * max(len(row["name"]) for row in rows))
    axis = alt.Axis(labelFontSize=12, labelLimit=LIMIT, grid=False, minExtent=room)
    shared = sheet(rows).encode(y=alt.Y("name:N", sort=None, title=None, axis=axis), color=colour)
    if several:
        shared = shared.encode(yOffset=alt.YOffset("model:N", sort=models))
    x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), title=None, axis=alt.Axis(tickCount=4))
    spans = shared.mark_rule(strokeWidth=3, opacity=0.5, clip=True).encode(x=x, x2="high:Q")
    filled = alt.Scale(domain=[HOLDS, OPEN], range=[1, 0])
    dots = shared.mark_point(size=60, opacity=1, strokeWidth=2).encode(
        x="mean:Q", fill=colour, fillOpacity=alt.FillOpacity("state:N", legend=None, scale=filled)
    )
    told = "; ".join(f"{row['name']}, {row['model']}: {row['told']}" for row in rows)
    step = alt.Step(DENSE if several else STEP)
    figure = layers(spans, dots).properties(width=WIDE, height=step)
    return finish(figure, f"{line(answer.called)}, mean over seeds: {told}.")


def _model(column: Column) -> str:
    return line(" · ".join(filter(None, (column.model, column.asked))))
