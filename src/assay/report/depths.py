"""The figure of the layers: how far the prediction moves without the attention of each."""

from __future__ import annotations

import altair as alt

from assay.records import Finding, Record
from assay.report.canvas import CLASS_COLOURS, Figure, Rows, finish, layers, sheet
from assay.report.known import known
from assay.report.stacks import ALL, AUDIT, KINDS, single
from assay.writing import number

WIDTH, HEIGHT = 300, 200


def by_layer(record: Record) -> Figure | None:
    """How far the prediction moves without the attention of each layer, and of all of them."""
    rows: Rows = [
        {"name": _place(subject), "kind": kind, "mean": f.mean, "low": f.low, "high": f.high}
        for measure, kind in KINDS.items()
        for subject, f in (single(record, measure) | _every(record, measure)).items()
    ]
    if not rows:
        return None
    names, kinds = list(dict.fromkeys(row["name"] for row in rows)), list(KINDS.values())
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=list(CLASS_COLOURS[:2])))
    shared = sheet(rows).encode(
        x=alt.X("name:N", sort=names, title="layer", axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
        xOffset=alt.XOffset("kind:N", sort=kinds),
        color=colour,
    )
    title = "change of the prediction (TVD)"
    y = alt.Y("low:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond"]))
    bars = shared.mark_rule(strokeWidth=4, opacity=0.5).encode(y=y, y2="high:Q")
    dots = shared.mark_point(filled=True, size=70, opacity=1).encode(y="mean:Q", shape=shape)
    told = ", ".join(f"{row['name']} {row['kind']} {number(row['mean'], 2)}" for row in rows)
    return finish(layers(bars, dots).properties(width=WIDTH, height=HEIGHT), f"{title} by layer: {told}.")


def _every(record: Record, measure: str) -> dict[str, Finding]:
    found = known(record, AUDIT, measure, ALL)
    return {} if found is None else {ALL: found}


def _place(subject: str) -> str:
    return "all" if subject == ALL else subject.removeprefix("layer ")
