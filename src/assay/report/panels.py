"""Small panels with a dot and an interval in each line: explainers over runs, and subjects of a study over models."""

from __future__ import annotations

import math

import altair as alt

from assay.report.canvas import GRADE_COLOURS, INK, Figure, Rows, finish, known, layers, sheet
from assay.report.differences import Comparison
from assay.report.grades import SHAPES
from assay.report.measures import BASELINES, MOST
from assay.report.plain import line
from assay.report.quantities import headline
from assay.report.writing import number
from assay.report.yardsticks import scale

WIDTH = 150
LONG = 22  # letters of the name of a run
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
    labels = _labels(list(comparison.records))
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


def _labels(names: list[str]) -> dict[str, str]:
    """Names short enough for an axis, and still all different."""
    labels: dict[str, str] = {}
    for place, name in enumerate(names, start=1):
        short = name if len(name) <= LONG else f"{name[: LONG - 6]}… ({place})"
        labels[name] = short
    return labels


def _scale(values: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(values), range=list(values.values()))
