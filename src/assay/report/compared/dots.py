"""Figures with a line for each model, or for each kind of importance: mean and 95 % interval, and the number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import altair as alt

from assay.records import Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.compared.found import subjects
from assay.report.compared.four import GUIDES
from assay.report.compared.levels import BASE, SHORT
from assay.report.compared.spreads import IMPORTANCES
from assay.report.dots import names
from assay.writing import number, percent

STEP = 24
WHOLE, LETTER, LABEL = 345, 7, 60
"""Of the width in pixels about so much goes to each letter of the longest name, and to the numbers on the right."""


@dataclass(frozen=True)
class Models:
    """What one figure shows: a measure of an audit, for these subjects in this order with what they are called.

    The dashed line stands at the mean of the subject `null`.
    """

    audit: str
    measure: str
    title: str
    called: Mapping[str, str] = field(default_factory=dict)
    null: str | None = None
    shares: bool = False  # whether numbers are percentages


RIGHT = "texts on which it is right"
UNIFORM = Models(
    "frozen_uniform", "right", RIGHT, {"learnt": "learnt attention", "uniform": "uniform attention"}, None, shares=True
)
GUIDED = Models("guide", "right", RIGHT, GUIDES, "learnt", shares=True)
ENTROPIES = Models("dispersion", "entropy", "normalised entropy (1: all alike)", IMPORTANCES)
LEVELS = {
    "word_level_right": Models("word_level", "right", RIGHT, SHORT, BASE, shares=True),
    "word_level_information": Models(
        "word_level", "information", "information on the word, at least (bits)", SHORT, BASE
    ),
    "word_level_shuffled": Models("word_level", "median_tvd", "change when shuffled (TVD)", SHORT, BASE),
}


def draw(record: Record, spec: Models) -> Figure | None:
    """A dot with its interval for each subject that has a number; None where none has."""
    found = subjects(record, spec.audit, spec.measure)
    ordered = [*(name for name in spec.called if name in found), *(name for name in found if name not in spec.called)]
    rows: Rows = [
        {
            "name": spec.called.get(name, name),
            "mean": found[name].mean,
            "low": found[name].low,
            "high": found[name].high,
        }
        | {"label": percent(found[name].mean) if spec.shares else number(found[name].mean, 2)}
        for name in ordered
    ]
    if not rows:
        return None
    width = max(170, WHOLE - LABEL - LETTER * max(len(row["name"]) for row in rows))
    shared, colour = sheet(rows).encode(y=names()), CLASS_COLOURS[0]
    axis = alt.Axis(tickCount=4, format="%" if spec.shares else "", labelFlush=False)
    x = alt.X("low:Q", title=spec.title, axis=axis, scale=alt.Scale(zero=False))
    at = [] if spec.null not in found else [{"x": found[spec.null].mean}]
    lines = [sheet([row]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q") for row in at]
    marks = [
        shared.mark_rule(strokeWidth=4, opacity=0.5, color=colour).encode(x=x, x2="high:Q"),
        shared.mark_point(filled=True, size=90, opacity=1, color=colour).encode(x="mean:Q"),
        shared.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(width + 10), text="label:N"),
    ]
    told = ", ".join(f"{row['name']} {row['label']}" for row in rows)
    figure = layers(*lines, *marks).properties(width=width, height=alt.Step(STEP))
    return finish(figure, f"{spec.title}, mean and 95 % interval: {told}.")
