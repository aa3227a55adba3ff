"""The figure of the verdict: all explainers on the scale of the yardstick, with the limits of the grades."""

from __future__ import annotations

import math

import altair as alt

from assay.lookup import RANDOM
from assay.records import Record
from assay.report.canvas import GRADE_COLOURS, INK, Figure, Rows, finish, known, layers, sheet
from assay.report.figures.explainers import WIDTH, names
from assay.report.verdicts import ranked, verdicts
from assay.report.yardsticks import TRUTH, scale
from assay.writing import number

SHAPES = {"pass": "circle", "warn": "triangle-up", "fail": "diamond", "reference": "square"}
FEW = 10
"""From here on lines stand closer."""


def verdict(record: Record) -> Figure | None:
    """All explainers on one scale, best first: effect with 95 % interval, the null, and the limits of the grades."""
    graded = [v for v in verdicts(record) if v.effect is not None] if ranked(record) else []
    rows: Rows = [
        {"name": v.name, "mean": v.effect, "low": v.low, "high": v.high, "grade": v.grade}
        | {"label": f"{number(v.effect, 2)}  {'null' if v.name == RANDOM else v.grade}"}
        for v in graded
    ]
    if not rows:
        return None
    lowest = min(known(end for v in graded for end in (v.low, v.effect)))
    domain = (min(0.0, math.floor(10 * lowest) / 10), 1.0)
    colour = alt.Color("grade:N", legend=None, scale=_scale(GRADE_COLOURS))
    shape = alt.Shape("grade:N", legend=None, scale=_scale(SHAPES))
    rule = scale(record).rule
    title = f"{rule.symbol} {'for' if rule is TRUTH else 'of finding'} the words that decide"
    shared = sheet(rows).encode(y=names())
    ticks = alt.Axis(values=[place / 5 for place in range(-5, 6)], format=".1f")
    spans = shared.mark_rule(strokeWidth=4, opacity=0.5, strokeCap="round").encode(
        x=alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), title=title, axis=ticks),
        x2="high:Q",
        color=colour,
    )
    dots = shared.mark_point(filled=True, size=120, opacity=1).encode(x="mean:Q", color=colour, shape=shape)
    words = shared.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(WIDTH + 12), text="label:N")
    height = (30 if len(rows) <= FEW else 20) * len(rows)
    figure = layers(*_limits(record, domain), spans, dots, words).properties(width=WIDTH, height=height)
    told = ", ".join(f"{row['name']} {row['label']}" for row in rows)
    return finish(figure, f"{title}, mean and 95 % interval of each explainer: {told}.")


def _scale(values: dict[str, str]) -> alt.Scale:
    return alt.Scale(domain=list(values), range=list(values.values()))


def _limits(record: Record, domain: tuple[float, float]) -> list[alt.Chart]:
    """The zones of fail and pass as pale grounds with their names on top, and the null as a dashed line."""
    laid = scale(record)
    rule = laid.rule
    zones: Rows = [
        {"from": domain[0], "to": rule.fails, "zone": "fail", "name": f"fails below {number(rule.fails, 2)}"},
        {"from": rule.passes, "to": domain[1], "zone": "pass", "name": f"passes from {number(rule.passes, 2)}"},
    ]
    shared = sheet(zones)
    grounds = shared.mark_rect(opacity=0.1).encode(x="from:Q", x2="to:Q", color=alt.Color("zone:N", legend=None))
    titles = shared.mark_text(align="left", baseline="bottom", dx=2, dy=-5, fontSize=11, color=INK).encode(
        x="from:Q", y=alt.value(0), text="name:N"
    )
    line = sheet([{"x": laid.null}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    return [grounds, titles, line]
