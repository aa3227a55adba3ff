"""Figures of explainers: a line with the mean and 95 % interval of each, and curves of a few over words removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from assay.lookup import BASELINES, RANDOM
from assay.records import CHANCE, Finding, Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.sections import MOST
from assay.writing import number, significance

FEW = 5
"""More curves than this cannot be told apart."""

WIDTH = 250
NARROW = 200  # where numbers stand beside the dots
SHAPES = ("circle", "diamond", "triangle-up", "square", "cross", "triangle-down")


@dataclass(frozen=True)
class Dots:
    """What one figure shows: the measures of an audit with their names in the legend.

    Of two the first gives the order, from high to low; of more, their mean. `null` is where the dashed line stands;
    without it, where random scores are.
    """

    audit: str
    measures: Mapping[str, str]
    title: str
    null: float | None = None


def dots(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Mean and 95 % interval of each explainer, the highest at the top; None where the audit gave no such number."""
    spec = Dots(audit, options["measures"], options.get("title", ""), options.get("null"))
    if (start := options.get("depths")) is not None:
        spec = _sampled(record, spec, start, options.get("last", ()))
    return draw(record, spec)


def _sampled(record: Record, spec: Dots, start: str, last: Sequence[str]) -> Dots:
    """Of a deep model, some of the depths down to which it was randomised, and the `last` measures."""
    steps = [f.measure for f in record.findings if f.audit == spec.audit and f.measure.startswith(start)]
    depths = [step for step in dict.fromkeys(steps) if step not in spec.measures]
    if not depths:
        return spec
    last = [step for step in last if step in steps]
    room = len(SHAPES) - len(last)
    chosen = depths if len(depths) <= room else [depths[round(n * (len(depths) - 1) / (room - 1))] for n in range(room)]
    titles = {step: f"down to {step.removeprefix(start)}" for step in chosen}
    titles[chosen[0]] = f"{chosen[0].removeprefix(start)} randomised"
    return replace(spec, measures=titles | {step: spec.measures[step] for step in last})


def draw(record: Record, spec: Dots) -> Figure | None:
    """Mean and 95 % interval of each explainer, the highest at the top; None where the audit gave no such number."""
    found = [
        f
        for f in record.findings
        if f.audit == spec.audit and f.measure in spec.measures and f.group == "all" and f.n > 0 and f.subject != CHANCE
    ]
    if not found:
        return None
    rows = [_row(f, spec) for name in _ordered(found, spec)[:MOST] for f in found if f.subject == name]
    title = spec.title or "mean and 95 % interval"
    marks = _labelled(rows, title) if len(spec.measures) == 1 else _mixed(rows, spec, title)
    lines = [sheet([{"x": x}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q") for x in _null(found, spec)]
    told = ", ".join(f"{row['name']} {row['kind']} {number(row['mean'], 2)}" for row in rows)
    width = NARROW if len(spec.measures) == 1 else WIDTH
    figure = layers(*lines, *marks).properties(width=width, height=alt.Step(16 if len(spec.measures) == 2 else 22))
    return finish(figure, f"{title}, mean of each explainer: {told}.")


def names() -> alt.Y:
    """The explainers down the left side, in the order of the rows."""
    return alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelFontSize=12, labelLimit=165, grid=False))


def _ordered(found: list[Finding], spec: Dots) -> list[str]:
    """All subjects, the highest first by the mean over the measures that a figure orders by."""
    leading = [next(iter(spec.measures))] if len(spec.measures) == 2 else list(spec.measures)
    means: dict[str, list[float]] = {f.subject: [] for f in found}
    for finding in found:
        if finding.measure in leading:
            means[finding.subject].append(finding.mean)
    known = [name for name, values in means.items() if values]
    return sorted(known, key=lambda name: sum(means[name]) / len(means[name]), reverse=True)


def _row(finding: Finding, spec: Dots) -> dict[str, Any]:
    words = f"{number(finding.mean, 2)}  {significance(getattr(finding, 'p_value', None))}"
    ends = {"mean": finding.mean, "low": finding.low, "high": finding.high}
    return {"name": finding.subject, "kind": spec.measures[finding.measure], "label": words} | ends


def _null(found: list[Finding], spec: Dots) -> list[float]:
    if spec.null is not None:
        return [spec.null]
    leading = next(iter(spec.measures))
    return [f.mean for f in found if f.subject == RANDOM and f.measure == leading]


def _labelled(rows: Rows, title: str) -> list[alt.Chart]:
    """One dot with its bar a line, and the number beside it."""
    shared = sheet(rows).encode(y=names())
    x, colour = alt.X("low:Q", title=title, axis=alt.Axis(tickCount=4)), CLASS_COLOURS[0]
    return [
        shared.mark_rule(strokeWidth=4, opacity=0.5, color=colour).encode(x=x, x2="high:Q"),
        shared.mark_point(filled=True, size=90, opacity=1, color=colour).encode(x="mean:Q"),
        shared.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(NARROW + 10), text="label:N"),
    ]


def _mixed(rows: Rows, spec: Dots, title: str) -> list[alt.Chart]:
    """Two measures below each other with their bars, or more of them as dots on one line."""
    kinds = [words for words in spec.measures.values() if any(row["kind"] == words for row in rows)]
    legend = alt.Legend(columns=1 if len(kinds) == 2 else 2)
    shared = sheet(rows).encode(
        y=names(),
        color=alt.Color(
            "kind:N", legend=legend, scale=alt.Scale(domain=kinds, range=list(CLASS_COLOURS[: len(kinds)]))
        ),
    )
    shape = alt.Shape("kind:N", legend=legend, scale=alt.Scale(domain=kinds, range=list(SHAPES[: len(kinds)])))
    dots = shared.mark_point(filled=True, size=80, opacity=1).encode(x=alt.X("mean:Q", title=title), shape=shape)
    if len(spec.measures) > 2:
        return [dots]
    shared = shared.encode(yOffset=alt.YOffset("kind:N", sort=kinds))
    bars = shared.mark_rule(strokeWidth=4, opacity=0.5).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    return [bars, dots.encode(yOffset=alt.YOffset("kind:N", sort=kinds))]


def curves(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """`measure@share` of the explainers with the highest `best`, and of chance, over the share of words."""
    measure, best, title = options["measure"], options["best"], options["title"]
    found = [f for f in record.findings if f.audit == audit and f.group == "all" and f.n > 0]
    leading = sorted((f for f in found if f.measure == best and f.subject not in BASELINES), key=lambda f: -f.mean)
    names = [f.subject for f in leading[:FEW]]
    points = [f for f in found if f.measure.startswith(f"{measure}@") and f.subject in (*names, CHANCE)]
    if not names or not points:
        return None
    shares = [f"{100 * share:g} %" for share in sorted({_share(f) for f in points})]
    x = alt.X("share:O", sort=shares, title="share of words taken away", axis=alt.Axis(labelAngle=0))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
    rows = _steps(points, names)
    charts = [chart.encode(x=x, y=y) for chart in (*_chance(rows, shares), *_lines(rows, names))]
    figure = layers(*charts).properties(width=280, height=190)
    return finish(figure, f"{title}, by share of words taken away, for {', '.join(names)} and for random words.")


def _steps(points: list[Finding], names: list[str]) -> Rows:
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


def _chance(rows: Rows, shares: list[str]) -> list[alt.Chart]:
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
