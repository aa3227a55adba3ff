"""Figures of explainers: the verdict, a line with the mean and interval of each, and curves over words removed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from assay.grading.grade import TRUTH, ranked, scale, verdicts
from assay.lookup import BASELINES, RANDOM
from assay.records import CHANCE, Finding, Record
from assay.report import canvas
from assay.report.canvas import DASHES, INK, SHAPES, Figure, Rows, drawn, known, null_line, sheet
from assay.report.sections import MOST
from assay.writing import number, significance

FEW_CURVES = 5
"""More curves than this cannot be told apart."""

WIDTH = 250
NARROW = 200  # where numbers stand beside the dots
FEW = 10
"""From here on lines of the verdict stand closer."""


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
    title = (
        f"{scale(record).rule.symbol} {'for' if scale(record).rule is TRUTH else 'of finding'} the words that decide"
    )
    axis = alt.Axis(values=[place / 5 for place in range(-5, 6)], format=".1f")
    x = alt.X("low:Q", scale=alt.Scale(domain=domain, nice=False), title=title, axis=axis)
    colour, shape = canvas.graded()
    shared = sheet(rows).encode(y=canvas.names())
    spans = shared.mark_rule(strokeWidth=4, opacity=0.5, strokeCap="round").encode(x=x, x2="high:Q", color=colour)
    dots = shared.mark_point(filled=True, size=120, opacity=1).encode(x="mean:Q", color=colour, shape=shape)
    charts = [*_limits(record, domain), spans, dots, canvas.beside(shared, WIDTH + 12)]
    told = f"{title}, mean and 95 % interval of each explainer: {canvas.listing(rows)}."
    return drawn(charts, WIDTH, (30 if len(rows) <= FEW else 20) * len(rows), told)


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
    titles = shared.mark_text(align="left", baseline="bottom", dx=2, dy=-5, fontSize=11, color=INK)
    return [grounds, titles.encode(x="from:Q", y=alt.value(0), text="name:N"), null_line(x=laid.null)]


def dots(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Mean and 95 % interval of each explainer, the highest at the top; None where the audit gave no such number.

    Of two measures the first gives the order, from high to low; of more, their mean. `null` is where the dashed line
    stands; without it, where random scores are.
    """
    measures, title = options["measures"], options.get("title") or "mean and 95 % interval"
    every = [f for f in record.findings if f.audit == audit and f.group == "all" and f.n > 0 and f.subject != CHANCE]
    if (start := options.get("depths")) is not None:
        measures = _sampled(record, audit, measures, start, options.get("last", ()))
    found = [f for f in every if f.measure in measures]
    if not found:
        return None
    rows = [_row(f, measures) for name in _ordered(found, measures)[:MOST] for f in found if f.subject == name]
    marks, width, step = _mixed(rows, list(measures.values()), title), WIDTH, 16 if len(measures) == 2 else 22
    if len(measures) == 1:
        width, axis = NARROW, alt.Axis(tickCount=4)
        marks = canvas.intervals(rows, alt.X("low:Q", title=title, axis=axis), width)
    told = ", ".join(f"{row['name']} {row['kind']} {number(row['mean'], 2)}" for row in rows)
    null, leading = options.get("null"), next(iter(measures))
    random = [f.mean for f in found if f.subject == RANDOM and f.measure == leading]
    lines = [null_line(x=x) for x in (random if null is None else [null])]
    return drawn([*lines, *marks], width, alt.Step(step), f"{title}, mean of each explainer: {told}.")


def _sampled(
    record: Record, audit: str, measures: Mapping[str, str], start: str, last: Sequence[str]
) -> Mapping[str, str]:
    """Of a deep model, some of the depths down to which it was randomised, and the `last` measures."""
    steps = [f.measure for f in record.findings if f.audit == audit and f.measure.startswith(start)]
    depths = [step for step in dict.fromkeys(steps) if step not in measures]
    if not depths:
        return measures
    last = [step for step in last if step in steps]
    room = len(SHAPES) - len(last)
    chosen = depths if len(depths) <= room else [depths[round(n * (len(depths) - 1) / (room - 1))] for n in range(room)]
    titles = {step: f"down to {step.removeprefix(start)}" for step in chosen}
    titles[chosen[0]] = f"{chosen[0].removeprefix(start)} randomised"
    return titles | {step: measures[step] for step in last}


def _ordered(found: list[Finding], measures: Mapping[str, str]) -> list[str]:
    """All subjects, the highest first by the mean over the measures that a figure orders by."""
    leading = list(measures)[: 1 if len(measures) == 2 else None]
    means: dict[str, list[float]] = {f.subject: [] for f in found}
    for finding in found:
        if finding.measure in leading:
            means[finding.subject].append(finding.mean)
    return sorted(filter(means.get, means), key=lambda name: sum(means[name]) / len(means[name]), reverse=True)


def _row(finding: Finding, measures: Mapping[str, str]) -> dict[str, Any]:
    words = f"{number(finding.mean, 2)}  {significance(finding.p_value)}"
    return {"name": finding.subject, "kind": measures[finding.measure], "label": words} | canvas.ends(finding)


def _mixed(rows: Rows, called: Sequence[str], title: str) -> list[alt.Chart]:
    """Two measures below each other with their bars, or more of them as dots on one line."""
    kinds = [words for words in called if any(row["kind"] == words for row in rows)]
    legend = alt.Legend(columns=1 if len(kinds) == 2 else 2)
    colour, shape = canvas.told_apart("kind:N", kinds, legend=legend)
    shared = sheet(rows).encode(y=canvas.names(), color=colour)
    if len(called) == 2:
        shared = shared.encode(yOffset=alt.YOffset("kind:N", sort=kinds))
    dots = shared.mark_point(filled=True, size=80, opacity=1).encode(x=alt.X("mean:Q", title=title), shape=shape)
    bars = shared.mark_rule(strokeWidth=4, opacity=0.5).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    return [dots] if len(called) > 2 else [bars, dots]


def removals(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """`measure@share` of the explainers with the highest `best`, and of chance, over the share of words."""
    measure, best, title = options["measure"], options["best"], options["title"]
    found = [f for f in record.findings if f.audit == audit and f.group == "all" and f.n > 0]
    leading = sorted((f for f in found if f.measure == best and f.subject not in BASELINES), key=lambda f: -f.mean)
    names = [f.subject for f in leading[:FEW_CURVES]]
    points = [f for f in found if f.measure.startswith(f"{measure}@") and f.subject in (*names, CHANCE)]
    if not names or not points:
        return None
    shares = [f"{100 * share:g} %" for share in sorted({_share(f) for f in points})]
    # without any words taken away all explainers are where chance is
    start = [(f, name) for f in points if _share(f) == 0 and f.subject == CHANCE for name in names]
    every = [*start, *((f, f.subject) for f in points)]
    rows: Rows = [{"share": f"{100 * _share(f):g} %", "mean": f.mean, "name": name} for f, name in every]
    x = alt.X("share:O", sort=shares, title="share of words taken away", axis=alt.Axis(labelAngle=0))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
    lines = canvas.curves([row for row in rows if row["name"] in names], names, 2)
    told = f"{title}, by share of words taken away, for {', '.join(names)} and for random words."
    return drawn([chart.encode(x=x, y=y) for chart in (*_chance(rows, shares), *lines)], 280, 190, told)


def _chance(rows: Rows, shares: list[str]) -> list[alt.Chart]:
    """What random words give, as a dashed line with its name at the end."""
    mine = [row | {"label": "random" if row["share"] == shares[-1] else ""} for row in rows if row["name"] == CHANCE]
    if not mine:
        return []
    shared = sheet(mine)
    words = shared.mark_text(align="left", dx=8, fontSize=11, color=INK).encode(text="label:N")
    return [shared.mark_line(color=INK, strokeDash=DASHES), words]


def _share(finding: Finding) -> float:
    return float(finding.measure.partition("@")[2])
