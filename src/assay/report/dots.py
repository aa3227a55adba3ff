"""Figures with one line for each explainer: a dot for the mean and a bar for its 95 % interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import altair as alt

from assay.records import CHANCE, Finding, Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.measures import MOST
from assay.report.yardsticks import NULL
from assay.writing import number, significance

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


DECIDING = Dots(
    "deciding", {"sufficient": "to keep the decision", "necessary": "to lose it"}, "fewest words, as a share of its own"
)
TRUTH = Dots("truth", {"auprc": "AUPRC", "precision": "precision at the number of deciding words"}, "")
ERASURE = Dots("erasure", {"comprehensiveness_gain": ""}, "probability lost beyond random words", null=0.0)
ROAR = Dots("roar", {"fall_gain": ""}, "accuracy lost beyond random words", null=0.0)
SHORTCUT = Dots("shortcut", {"shown": ""}, "how well the shortcut is shown")
STEADINESS = Dots("stability", {"steadiness": ""}, "τ before and after tiny changes")
PLAUSIBILITY = Dots("plausibility", {"auprc": "AUPRC", "token_f1": "token F1"}, "match with what people marked")
SANITY = Dots(
    "sanity",
    {
        "similarity_decoder": "decoder randomised",
        "similarity_alignment": "and alignment",
        "similarity_encoder": "and encoder",
        "similarity_embedding": "and embedding",
        "similarity_labels": "random labels",
    },
    "τ with the explanation of the randomised model",
    null=1.0,
)


def sanity(record: Record) -> Figure | None:
    """Likeness of the explanations as more and more of the model is random: of a deep one, some of the depths."""
    steps = [f.measure for f in record.findings if f.audit == SANITY.audit and f.measure.startswith("similarity_")]
    depths = [step for step in dict.fromkeys(steps) if step not in SANITY.measures]
    if not depths:
        return draw(record, SANITY)
    last = [step for step in ("similarity_embedding", "similarity_labels") if step in steps]
    room = len(SHAPES) - len(last)
    chosen = depths if len(depths) <= room else [depths[round(n * (len(depths) - 1) / (room - 1))] for n in range(room)]
    titles = {step: f"down to {step.removeprefix('similarity_')}" for step in chosen}
    titles[chosen[0]] = f"{chosen[0].removeprefix('similarity_')} randomised"
    return draw(record, replace(SANITY, measures=titles | {step: SANITY.measures[step] for step in last}))


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
    return [f.mean for f in found if f.subject == NULL and f.measure == leading]


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
