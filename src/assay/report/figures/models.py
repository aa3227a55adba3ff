"""Figures of models: a line for each, curves over a strength or a threshold, distances as points, and layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from assay.lookup import known as one
from assay.lookup import named, short, subjects
from assay.records import Finding, Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, known, layers, sheet
from assay.report.figures.explainers import SHAPES, names
from assay.writing import number, percent

STEP = 24
WHOLE, LETTER, LABEL = 345, 7, 60
"""Of the width in pixels about so much goes to each letter of the longest name, and to the numbers on the right."""

SOFTMAX = "softmax"
WIDTH, HEIGHT = 280, 200
TALL = 220
LAYERS = 300
APART = 26
"""Names closer to each other than so many pixels cannot be read; the later ones are left out."""

ADVERSARY, SEED = "trained adversary, by λ", "other seeds (null)"


def models(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """A dot with its interval for each subject that has a number; the dashed line stands at the mean of `null`."""
    found, called, title = subjects(record, audit, options["measure"]), options.get("called", {}), options["title"]
    shares, null = options.get("shares", False), options.get("null")
    ordered = [*(name for name in called if name in found), *(name for name in found if name not in called)]
    rows: Rows = [
        {
            "name": called.get(name, name),
            "mean": found[name].mean,
            "low": found[name].low,
            "high": found[name].high,
        }
        | {"label": percent(found[name].mean) if shares else number(found[name].mean, 2)}
        for name in ordered
    ]
    if not rows:
        return None
    width = max(170, WHOLE - LABEL - LETTER * max(len(row["name"]) for row in rows))
    shared, colour = sheet(rows).encode(y=names()), CLASS_COLOURS[0]
    axis = alt.Axis(tickCount=4, format="%" if shares else "", labelFlush=False)
    x = alt.X("low:Q", title=title, axis=axis, scale=alt.Scale(zero=False))
    at = [] if null not in found else [{"x": found[null].mean}]
    lines = [sheet([row]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q") for row in at]
    marks = [
        shared.mark_rule(strokeWidth=4, opacity=0.5, color=colour).encode(x=x, x2="high:Q"),
        shared.mark_point(filled=True, size=90, opacity=1, color=colour).encode(x="mean:Q"),
        shared.mark_text(align="left", fontSize=12, color=INK).encode(x=alt.value(width + 10), text="label:N"),
    ]
    told = ", ".join(f"{row['name']} {row['label']}" for row in rows)
    figure = layers(*lines, *marks).properties(width=width, height=alt.Step(STEP))
    return finish(figure, f"{title}, mean and 95 % interval: {told}.")


def thresholds(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """A measure by the threshold at which it is taken, a line for each model; as Tutek and Šnajder (2020)."""
    start, title = f"{options['measure']}@", options["title"]
    measures = {f.measure for f in record.findings if f.audit == audit and f.measure.startswith(start)}
    epsilons = {measure: float(measure.partition("@")[2]) for measure in measures}
    ordered = [f"{epsilon:g}" for epsilon in sorted(epsilons.values())]
    rows: Rows = [
        {"x": f"{epsilons[measure]:g}", "mean": f.mean, "name": name}
        for measure in sorted(measures, key=lambda measure: epsilons[measure])
        for name, f in subjects(record, audit, measure).items()
    ]
    if not rows:
        return None
    called = list(dict.fromkeys(row["name"] for row in rows))
    called.sort(key=lambda name: name != options["first"])
    x = alt.X("x:O", sort=ordered, title=options["by"], axis=alt.Axis(labelAngle=0))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=True))
    figure = layers(*(chart.encode(x=x, y=y) for chart in _lines(rows, called))).properties(width=WIDTH, height=HEIGHT)
    ends = ", ".join(f"{row['name']} {number(row['mean'], 2)}" for row in rows if row["x"] == ordered[0])
    return finish(figure, f"{title[0].upper()}{title[1:]} by allowed change; at {ordered[0]}: {ends}.")


def strengths(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Measures by the strength of a projection, a line for each; Meister et al. (2021), figures 1 and 3."""
    title, bars = options["title"], options.get("bars", False)
    places = {name: short(value) for name, value in options.get("strengths", {}).items()}
    alone = {} if SOFTMAX in places else {SOFTMAX: SOFTMAX}
    rows: Rows = [
        {
            "x": place,
            "mean": found[subject].mean,
            "low": found[subject].low,
            "high": found[subject].high,
            "name": word,
        }
        for measure, word in options["measures"].items()
        if (found := _as_share(record, audit, measure, options.get("share", "")))
        for subject, place in (alone | places).items()
        if subject in found
    ]
    if not any(row["x"] != SOFTMAX for row in rows):
        return None
    called = list(dict.fromkeys(row["name"] for row in rows))
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy")
    over = f"{options['of']} (right: sparser)"
    x = alt.X("x:O", sort=[SOFTMAX, *places.values()], title=over, axis=axis)
    joined = [row for row in rows if row["x"] != SOFTMAX]
    apart = [row for row in rows if row["x"] == SOFTMAX]
    y = alt.Y("low:Q", title=title, scale=alt.Scale(zero=False))
    spans = [_spans(rows, called).encode(x=x, y=y, y2="high:Q")] if bars else []
    marks = [*_lines(joined, called), *_lines(apart, called)[1:]] if apart else _lines(joined, called)
    drawn = [mark.encode(x=x, y=alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))) for mark in marks]
    zero = sheet([{"y": 0}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="y:Q")
    figure = layers(*([zero] if bars else []), *spans, *drawn).properties(width=WIDTH, height=HEIGHT)
    told = "; ".join(f"{name} {_path(joined, name)}" for name in called)
    return finish(figure, f"{title} by {options['symbol']} from {joined[0]['x']} to {joined[-1]['x']}: {told}.")


def _as_share(record: Record, audit: str, measure: str, share: str) -> dict[str, Finding]:
    found = subjects(record, audit, measure)
    # a support may be told as a number of words; then it does not fit an axis of shares
    return {} if measure == share and any(f.mean > 1 for f in found.values()) else found


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


def distances(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Change of the predictions against that of attention: the adversary's path, and the seeds as its null.

    Wiegreffe and Pinter (2019), figure 5: the audited model is the origin.
    """
    jsd, tvd = (named(record, options["path"], measure, "λ=") for measure in ("jsd", "tvd"))
    path: Rows = [
        {"x": tvd[name].mean, "y": jsd[name].mean, "low": jsd[name].low, "high": jsd[name].high}
        | {"label": name, "place": place, "kind": ADVERSARY}
        for place, name in enumerate(jsd)
        if name in tvd
    ]
    seeds = _cloud(record, options["clouds"])
    if not path and not seeds:
        return None
    widest = max(row["x"] for row in path + seeds) or 1e-3
    highest = max(known(row[key] for row in path + seeds for key in ("high", "y") if key in row)) or 1e-3
    x = alt.X("x:Q", title="change of the predictions (TVD)", axis=_axis(), scale=alt.Scale(domain=(0, 1.12 * widest)))
    y = alt.Y("y:Q", title="distance of attention (JSD)", scale=alt.Scale(domain=(0, 1.1 * highest)))
    labelled = _spaced(path, widest, highest)
    charts = [*_points(path, labelled, _colours(path, seeds)), *_seeds(seeds, _colours(path, seeds)), _base()]
    figure = layers(*(chart.encode(x=x, y=y) for chart in charts)).properties(width=WIDTH, height=TALL)
    told = ", ".join(f"{row['label']} TVD {number(row['x'], 3)} JSD {number(row['y'], 2)}" for row in path + seeds)
    return finish(figure, f"Distance of attention against change of the predictions: {told}; the audited model 0, 0.")


def _cloud(record: Record, audits: Sequence[str]) -> Rows:
    """The models of other seeds, from the first of the audits that trained them."""
    for audit in audits:
        jsd, tvd = (named(record, audit, measure, "seed ") for measure in ("jsd", "tvd"))
        both = [name for name in jsd if name in tvd]
        if both:
            return [{"x": tvd[name].mean, "y": jsd[name].mean, "label": name, "kind": SEED} for name in both]
    return []


def tradeoff(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Accuracy against the attention that is left on the avoided words, a point for each λ, and the model without."""
    mass, right = (named(record, audit, options[axis], "λ=") for axis in ("x", "y"))
    rows: Rows = [
        {"x": mass[name].mean, "y": right[name].mean, "low": right[name].low, "high": right[name].high}
        | {"label": name, "place": place, "kind": ADVERSARY}
        for place, name in enumerate(mass)
        if name in right
    ]
    if not rows:
        return None
    without = subjects(record, audit, options["y"]).get(options["line"])
    lines: Rows = [] if without is None else [{"y": without.mean, "label": "without these words"}]
    ys = known(row[key] for row in rows + lines for key in ("low", "y", "high") if key in row)
    widest, span = max(row["x"] for row in rows) or 1e-3, max(ys) - min(ys) or 0.1
    x = alt.X("x:Q", title="attention on the avoided words", axis=_axis("~%"), scale=_from(widest))
    bounds = alt.Scale(domain=(min(ys) - 0.08 * span, max(ys) + 0.08 * span), nice=False)
    y = alt.Y("y:Q", title="texts on which it is right", axis=alt.Axis(format="~%", tickCount=5), scale=bounds)
    charts = [
        chart.encode(x=x, y=y) for chart in _points(rows, _spaced(rows, widest, span), alt.value(CLASS_COLOURS[0]))
    ]
    ruled = sheet(lines).encode(y=y) if lines else None
    control = [] if ruled is None else [ruled.mark_rule(color=INK, strokeDash=[4, 3]), _word(ruled)]
    figure = layers(*control, *charts).properties(width=WIDTH, height=TALL)
    told = ", ".join(f"{row['label']} {percent(row['x'])} and {percent(row['y'])}" for row in rows)
    ending = "" if without is None else f"; without these words {percent(without.mean)}"
    return finish(figure, f"Attention on the avoided words, and accuracy: {told}{ending}.")


def _axis(format_: str = "") -> alt.Axis:
    """Few numbers, each below its line."""
    return alt.Axis(format=format_, tickCount=5, labelFlush=False)


def _from(widest: float) -> alt.Scale:
    return alt.Scale(domain=(0, 1.12 * widest))


def _spaced(rows: Rows, width: float, height: float) -> Rows:
    """The rows whose names can be read, from the last one on, for the strongest λ says most."""
    chosen: Rows = []
    for row in reversed(rows):
        far = [
            abs(row["x"] - other["x"]) / width * WIDTH > 2 * APART
            or abs(row["y"] - other["y"]) / height * TALL > APART / 2
            for other in chosen
        ]
        chosen += [row] if all(far) else []
    return chosen[::-1]


def _points(rows: Rows, labelled: Rows, colour: Any) -> list[alt.Chart]:
    """Points in the order of λ, joined by a line, with bars for the intervals and names beside them."""
    if not rows:
        return []
    shared, words = sheet(rows).encode(color=colour), sheet(labelled)
    return [
        shared.mark_line(strokeWidth=1.5, opacity=0.6).encode(order="place:Q"),
        sheet([row | {"y": row["low"]} for row in rows])
        .mark_rule(strokeWidth=3, opacity=0.35)
        .encode(y2="high:Q", color=colour),
        shared.mark_point(filled=True, size=70, opacity=1),
        words.mark_text(align="left", dx=5, dy=-12, fontSize=11, color=INK).encode(text="label:N"),
    ]


def _seeds(rows: Rows, colour: alt.Color) -> list[alt.Chart]:
    return (
        [sheet(rows).mark_point(filled=True, shape="diamond", size=60, opacity=0.85).encode(color=colour)]
        if rows
        else []
    )


def _base() -> alt.Chart:
    chart: alt.Chart = sheet([{"x": 0, "y": 0}]).mark_point(shape="cross", size=90, color=INK, filled=True, opacity=1)
    return chart


def _colours(path: Rows, seeds: Rows) -> alt.Color:
    kinds = [kind for kind, rows in ((ADVERSARY, path), (SEED, seeds)) if rows]
    colours = {ADVERSARY: CLASS_COLOURS[0], SEED: CLASS_COLOURS[1]}
    scale = alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds])
    return alt.Color("kind:N", scale=scale, legend=alt.Legend(columns=1))


def _word(ruled: alt.Chart) -> alt.Chart:
    encoded: alt.Chart = ruled.mark_text(align="right", baseline="bottom", dy=-4, fontSize=11, color=INK).encode(
        x=alt.value(WIDTH), text="label:N"
    )
    return encoded


def by_layer(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """How far the prediction moves without the attention of each layer, and of all of them."""
    rows: Rows = [
        {
            "name": "all" if subject == options["all"] else subject.removeprefix("layer "),
            "kind": kind,
            "mean": f.mean,
            "low": f.low,
            "high": f.high,
        }
        for measure, kind in options["measures"].items()
        for subject, f in _layers(record, audit, measure, options["all"]).items()
    ]
    if not rows:
        return None
    called, kinds = list(dict.fromkeys(row["name"] for row in rows)), list(options["measures"].values())
    colour = alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=list(CLASS_COLOURS[:2])))
    shared = sheet(rows).encode(
        x=alt.X("name:N", sort=called, title="layer", axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
        xOffset=alt.XOffset("kind:N", sort=kinds),
        color=colour,
    )
    title = "change of the prediction (TVD)"
    y = alt.Y("low:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond"]))
    bars = shared.mark_rule(strokeWidth=4, opacity=0.5).encode(y=y, y2="high:Q")
    dots = shared.mark_point(filled=True, size=70, opacity=1).encode(y="mean:Q", shape=shape)
    told = ", ".join(f"{row['name']} {row['kind']} {number(row['mean'], 2)}" for row in rows)
    return finish(layers(bars, dots).properties(width=LAYERS, height=HEIGHT), f"{title} by layer: {told}.")


def _layers(record: Record, audit: str, measure: str, every: str) -> dict[str, Finding]:
    """The findings of single layers, the lowest first, then that of all of them."""
    mine = [f for f in record.findings if (f.audit, f.measure, f.group) == (audit, measure, "all") and f.n > 0]
    found = {f.subject: f for f in mine if f.subject != every}
    whole = one(record, audit, measure, every)
    return found if whole is None else found | {every: whole}
