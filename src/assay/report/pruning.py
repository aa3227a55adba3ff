"""The pruning curve: what is left of the accuracy as heads are taken away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet

ORDERS = {"accuracy": "least important first", "random": "random order", "reverse": "most important first"}
COLOURS = (CLASS_COLOURS[1], "#7d8794", CLASS_COLOURS[4])
SHAPES = ("circle", "diamond", "square")
DASHES = ([1, 0], [4, 3], [7, 2])
TITLE = "accuracy on test texts"


def pruning(section: Mapping[str, Any]) -> Figure:
    """Accuracy by share of heads pruned, for three orders; as figure 3 of Michel et al. (2019)."""
    curve = section["curve"]
    x = alt.X("share:Q", title="share of heads pruned", axis=alt.Axis(format="%", tickCount=6))
    y = alt.Y("value:Q", title=TITLE, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(zero=False))
    band = (
        sheet(curve).mark_area(opacity=0.18, color=COLOURS[0]).encode(x=x, y=alt.Y("low:Q", title=TITLE), y2="high:Q")
    )
    charts = [band, *(chart.encode(x=x, y=y) for chart in _lines(curve))]
    if section.get("majority") is not None:
        charts.append(_floor(section["majority"]))
    figure = layers(*charts).properties(width=300, height=210)
    return finish(
        figure, "Accuracy as heads are pruned: the least important first, in random order, the most important first."
    )


def _lines(curve: Rows) -> list[alt.Chart]:
    rows = [
        {"share": point["share"], "value": point[key], "order": name} for key, name in ORDERS.items() for point in curve
    ]
    legend = alt.Legend(columns=1)
    names = list(ORDERS.values())
    colour = alt.Color("order:N", legend=legend, scale=alt.Scale(domain=names, range=list(COLOURS)))
    shape = alt.Shape("order:N", legend=legend, scale=alt.Scale(domain=names, range=list(SHAPES)))
    points = sheet(rows).mark_point(filled=True, size=50, opacity=1).encode(color=colour, shape=shape)
    # a dash for each line as it stands: as a channel it would be drawn into the legend
    return [*(_line(rows, *each) for each in zip(names, COLOURS, DASHES, strict=True)), points]


def _line(rows: Rows, name: str, colour: str, dash: list[int]) -> alt.Chart:
    mine = [row for row in rows if row["order"] == name]
    made: alt.Chart = sheet(mine).mark_line(strokeWidth=2, color=colour, strokeDash=dash)
    return made


def _floor(share: float) -> alt.Chart:
    """What always naming the commonest class gives."""
    made: alt.Chart = (
        sheet([{"value": share}]).mark_rule(color=INK, strokeDash=[2, 3]).encode(y=alt.Y("value:Q", title=TITLE))
    )
    return made
