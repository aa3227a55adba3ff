"""The figures of a report, each by its kind from a record alone; None where the numbers behind it are not there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from assay.grading.differences import Comparison, headline
from assay.grading.grade import scale
from assay.lookup import BASELINES
from assay.records import Record
from assay.report import explainer_figures as explainers
from assay.report import model_figures as models
from assay.report import text_figures as texts
from assay.report.canvas import GRADE_SHAPES, INK, Figure, Rows, beside, drawn, ends, graded, known, save, sheet, svg
from assay.report.sections import MOST, drawings
from assay.writing import line, number

__all__ = ["KINDS", "VERDICT", "figure", "figures", "names", "save", "svg"]


VERDICT = "verdict"
"""The name of the figure of the verdict, which every record has."""

KINDS: dict[str, Callable[[Record, str, Mapping[str, Any]], Figure | None]] = {
    "dots": explainers.dots,
    "curves": explainers.removals,
    "histogram": texts.histogram,
    "quarters": texts.quarters,
    "boxes": texts.erased,
    "binned": texts.binned,
    "models": models.models,
    "strengths": models.strengths,
    "thresholds": models.thresholds,
    "distances": models.distances,
    "tradeoff": models.tradeoff,
    "layers": models.by_layer,
}
"""Each takes a record, the name of an audit and the options of its drawing."""


def names(record: Record) -> list[str]:
    """The names of the figures that a record may have, that of the verdict first."""
    return [VERDICT, *drawings(record)]


def figure(record: Record, name: str) -> Figure | None:
    """One figure by its name."""
    if name == VERDICT:
        return explainers.verdict(record)
    found = drawings(record).get(name)
    if found is None or found[1].kind not in KINDS:
        return None
    audit, drawing = found
    said = record.conclusions.get(audit)
    return KINDS[drawing.kind](record, audit, {**drawing.options, **(said.drawn.get(name, {}) if said else {})})


def figures(record: Record) -> dict[str, Figure]:
    """All figures that a record has."""
    drawn = {name: figure(record, name) for name in names(record)}
    return {name: each for name, each in drawn.items() if each is not None}


# Small panels with a dot and an interval in each line: the explainers of a comparison over its runs.


WIDTH = 150
LONG = 24  # letters of a name beside the axis
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
    called = dict(zip(comparison.records, labels(list(comparison.records)), strict=True))
    made: dict[str, Rows] = {subject: [] for subject in subjects}
    for subject, rows in made.items():
        for run in comparison.records:
            value = comparison.values.get((quantity, subject, run))
            if value is not None:
                grade = value.grade if value.grade in GRADE_SHAPES else PLAIN
                look = {"run": called[run], "grade": grade, "label": number(value.mean, 2), "null": nulls.get(run)}
                rows.append(look | ends(value))
    reached = known(row[key] for rows in made.values() for row in rows for key in ("low", "mean", "high"))
    if not reached:
        return []
    domain = (min(0.0, math.floor(10 * min(reached)) / 10), max(1.0, math.ceil(10 * max(reached)) / 10))
    return [
        (line(subject), _run_panel(subject, rows, domain, quantity.title)) for subject, rows in made.items() if rows
    ]


def _run_panel(subject: str, rows: Rows, domain: tuple[float, float], title: str) -> Figure:
    colour, shape = graded()
    names = alt.Axis(labelFontSize=12, labelLimit=140, grid=False)
    shared = sheet(rows).encode(y=alt.Y("run:N", sort=None, title=None, axis=names))
    axis = alt.Axis(values=[place / 2 for place in range(-2, 3)], format=".1f")
    x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), title=None, axis=axis)
    spans = shared.mark_rule(strokeWidth=4, opacity=0.5, strokeCap="round").encode(x=x, x2="high:Q", color=colour)
    dots = shared.mark_point(filled=True, size=90, opacity=1).encode(x="mean:Q", color=colour, shape=shape)
    nulls = [row for row in rows if row["null"] is not None]
    ticks = sheet(nulls).mark_tick(color=INK, thickness=1.5, size=14, opacity=0.7)
    marks = [ticks.encode(x="null:Q", y=alt.Y("run:N", sort=None))] if nulls else []
    told = ", ".join(f"{row['run']} {row['label']}" for row in rows)
    charts = [spans, *marks, dots, beside(shared, WIDTH + 8)]
    return drawn(charts, WIDTH, alt.Step(22), f"{title} of {line(subject)} in each run: {told}.")


def labels(names: Sequence[str]) -> list[str]:
    """Names short enough for an axis, and still all different."""
    return [
        name if len(name) <= LONG else f"{name[: LONG - 6]}… ({place})" for place, name in enumerate(names, start=1)
    ]
