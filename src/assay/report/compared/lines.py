"""Figures with a line for each measure or model, over the sparsity of attention or over the change that is allowed."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from assay.records import Finding, Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.compared.found import short, subjects
from assay.report.compared.levels import AUDIT, BASE
from assay.report.compared.spreads import sweep
from assay.report.dots import SHAPES
from assay.writing import number

WIDTH, HEIGHT = 280, 200
SOFTMAX = "softmax"
LEVELS = {
    "right": "accuracy",
    "entropy_attention": "entropy of attention",
    "entropy_gradient": "of words, by gradient",
    "entropy_loo": "of words, by deletion",
    "entropy_states": "of words for one state",
    "support": "words with any attention",
}
AGREEMENTS = {"tau_input": "with the importance of words", "tau_state": "with the importance of states"}


def sparsity(record: Record) -> Figure | None:
    """Accuracy, and how spread attention and importance are, by λ; Meister et al. (2021), figure 3."""
    return _over_strengths(record, LEVELS, "share, or normalised entropy", bars=False)


def sparsity_agreement(record: Record) -> Figure | None:
    """τ of attention with the importance of words and of states, by λ; Meister et al. (2021), figures 1 and 3."""
    return _over_strengths(record, AGREEMENTS, "Kendall τ of attention", bars=True)


def equivalents(record: Record) -> Figure | None:
    """How far attention can lie when the output may move by ε, a line for each variant; Tutek and Šnajder (2020)."""
    measures = {f.measure for f in record.findings if f.audit == AUDIT and f.measure.startswith("jsd@")}
    epsilons = {measure: float(measure.partition("@")[2]) for measure in measures}
    ordered = [f"{epsilon:g}" for epsilon in sorted(epsilons.values())]
    rows: Rows = [
        {"x": f"{epsilons[measure]:g}", "mean": f.mean, "name": name}
        for measure in sorted(measures, key=lambda measure: epsilons[measure])
        for name, f in subjects(record, AUDIT, measure).items()
    ]
    if not rows:
        return None
    names = list(dict.fromkeys(row["name"] for row in rows))
    names.sort(key=lambda name: name != BASE)
    x = alt.X("x:O", sort=ordered, title="allowed change of the output (TVD)", axis=alt.Axis(labelAngle=0))
    y = alt.Y("mean:Q", title="furthest attention (JSD)", scale=alt.Scale(zero=True))
    figure = layers(*(chart.encode(x=x, y=y) for chart in _lines(rows, names))).properties(width=WIDTH, height=HEIGHT)
    ends = ", ".join(f"{row['name']} {number(row['mean'], 2)}" for row in rows if row["x"] == ordered[0])
    return finish(figure, f"Furthest attention (JSD) by allowed change; at {ordered[0]}: {ends}.")


def _over_strengths(record: Record, measures: Mapping[str, str], title: str, bars: bool) -> Figure | None:
    swept = sweep(record)
    places = {name: short(value) for name, value in swept.strengths.items()}
    alone = {} if SOFTMAX in places else {SOFTMAX: SOFTMAX}
    rows: Rows = [
        {
            "x": place,
            "mean": found[subject].mean,
            "low": found[subject].low,
            "high": found[subject].high,
            "name": called,
        }
        for measure, called in measures.items()
        if (found := _as_share(record, measure))
        for subject, place in (alone | places).items()
        if subject in found
    ]
    if not any(row["x"] != SOFTMAX for row in rows):
        return None
    names = list(dict.fromkeys(row["name"] for row in rows))
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy")
    x = alt.X(
        "x:O", sort=[SOFTMAX, *places.values()], title=f"{swept.symbol} of {swept.family} (right: sparser)", axis=axis
    )
    joined = [row for row in rows if row["x"] != SOFTMAX]
    apart = [row for row in rows if row["x"] == SOFTMAX]
    y = alt.Y("low:Q", title=title, scale=alt.Scale(zero=False))
    spans = [_spans(rows, names).encode(x=x, y=y, y2="high:Q")] if bars else []
    marks = [*_lines(joined, names), *_lines(apart, names)[1:]] if apart else _lines(joined, names)
    drawn = [mark.encode(x=x, y=alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))) for mark in marks]
    zero = sheet([{"y": 0}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="y:Q")
    figure = layers(*([zero] if bars else []), *spans, *drawn).properties(width=WIDTH, height=HEIGHT)
    told = "; ".join(f"{name} {_path(joined, name)}" for name in names)
    return finish(figure, f"{title} by {swept.symbol} from {joined[0]['x']} to {joined[-1]['x']}: {told}.")


def _as_share(record: Record, measure: str) -> dict[str, Finding]:
    found = subjects(record, "sparsity", measure)
    # a support may be told as a number of words; then it does not fit an axis of shares
    return {} if measure == "support" and any(f.mean > 1 for f in found.values()) else found


def _path(rows: Rows, name: str) -> str:
    return ", ".join(number(row["mean"], 2) for row in rows if row["name"] == name)


def _lines(rows: Rows, names: list[str]) -> list[alt.Chart]:
    legend = alt.Legend(columns=2 if max(map(len, names)) <= 24 else 1)
    colour = alt.Color("name:N", legend=legend, scale=_scale(names, CLASS_COLOURS))
    shape = alt.Shape("name:N", legend=legend, scale=_scale(names, SHAPES))
    shared = sheet(rows).encode(color=colour)
    line = shared.mark_line(strokeWidth=2)
    return [line, shared.mark_point(filled=True, size=60, opacity=1).encode(shape=shape)]


def _spans(rows: Rows, names: list[str]) -> alt.Chart:
    colour = alt.Color("name:N", scale=_scale(names, CLASS_COLOURS))
    encoded: alt.Chart = sheet(rows).mark_rule(strokeWidth=4, opacity=0.4).encode(color=colour)
    return encoded


def _scale(names: list[str], values: tuple[str, ...]) -> alt.Scale:
    repeated = [values[place % len(values)] for place in range(len(names))]
    return alt.Scale(domain=names, range=repeated)
