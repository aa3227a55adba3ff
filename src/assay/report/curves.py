"""Figures with a line for each of a few explainers: what happens as more and more words are taken away."""

from __future__ import annotations

import altair as alt

from assay.records import CHANCE, Finding, Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.dots import SHAPES
from assay.report.measures import BASELINES

FEW = 5
"""More lines than this cannot be told apart."""


def draw(record: Record, audit: str, measure: str, best: str, title: str) -> Figure | None:
    """`measure@share` of the explainers with the highest `best`, and of chance, over the share of words."""
    found = [f for f in record.findings if f.audit == audit and f.group == "all" and f.n > 0]
    leading = sorted((f for f in found if f.measure == best and f.subject not in BASELINES), key=lambda f: -f.mean)
    names = [f.subject for f in leading[:FEW]]
    points = [f for f in found if f.measure.startswith(f"{measure}@") and f.subject in (*names, CHANCE)]
    if not names or not points:
        return None
    shares = [f"{100 * share:g} %" for share in sorted({_share(f) for f in points})]
    x = alt.X("share:O", sort=shares, title="share of words taken away", axis=alt.Axis(labelAngle=0))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
    rows = _rows(points, names)
    charts = [chart.encode(x=x, y=y) for chart in (*_null(rows, shares), *_lines(rows, names))]
    figure = layers(*charts).properties(width=280, height=190)
    return finish(figure, f"{title}, by share of words taken away, for {', '.join(names)} and for random words.")


def _rows(points: list[Finding], names: list[str]) -> Rows:
    """A row for each point; without any words taken away all explainers are where chance is."""
    start = [f for f in points if _share(f) == 0 and f.subject == CHANCE]
    shared = [(f, name) for f in start for name in names] + [(f, f.subject) for f in points]
    return [{"share": f"{100 * _share(f):g} %", "mean": f.mean, "name": name} for f, name in shared]


def _lines(rows: Rows, names: list[str]) -> list[alt.Chart]:
    legend = alt.Legend(columns=2)
    colour = alt.Color("name:N", legend=legend, scale=_scale(names, CLASS_COLOURS))
    shape = alt.Shape("name:N", legend=legend, scale=_scale(names, SHAPES))
    shared = sheet([row for row in rows if row["name"] in names]).encode(color=colour)
    return [shared.mark_line(strokeWidth=2), shared.mark_point(filled=True, size=60, opacity=1).encode(shape=shape)]


def _null(rows: Rows, shares: list[str]) -> list[alt.Chart]:
    """What random words give, as a dashed line with its name at the end."""
    mine = [row | {"label": "random" if row["share"] == shares[-1] else ""} for row in rows if row["name"] == CHANCE]
    if not mine:
        return []
    shared = sheet(mine)
    words = shared.mark_text(align="left", dx=8, fontSize=11, color=INK).encode(text="label:N")
    return [shared.mark_line(color=INK, strokeDash=[4, 3]), words]


def _share(finding: Finding) -> float:
    return float(finding.measure.partition("@")[2])


def _scale(names: list[str], values: tuple[str, ...]) -> alt.Scale:
    return alt.Scale(domain=names, range=list(values[: len(names)]))
