"""Figures of models: a line for each, curves over a strength or a threshold, distances as points, layers, heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from assay.lookup import named, over_all, short, subjects
from assay.records import Finding, Record
from assay.report import canvas
from assay.report.canvas import CLASS_COLOURS, DASHES, INK, Figure, Rows, drawn, ends, known, null_line, sheet
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
ORDERS = {
    "accuracy": ("least important first", CLASS_COLOURS[1], [1, 0]),
    "random": ("random order", "#7d8794", DASHES),
    "reverse": ("most important first", CLASS_COLOURS[4], [7, 2]),
}
"""In what order heads are pruned: the name, the colour and the dashes of each."""


def models(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """A dot with its interval for each subject that has a number; the dashed line stands at the mean of `null`."""
    found, called, title = subjects(record, audit, options["measure"]), options.get("called", {}), options["title"]
    shares, null = options.get("shares", False), options.get("null")
    ordered = [*(name for name in called if name in found), *(name for name in found if name not in called)]
    rows: Rows = [
        {"name": called.get(name, name)}
        | ends(found[name])
        | {"label": percent(found[name].mean) if shares else number(found[name].mean, 2)}
        for name in ordered
    ]
    if not rows:
        return None
    width = max(170, WHOLE - LABEL - LETTER * max(len(row["name"]) for row in rows))
    axis = alt.Axis(tickCount=4, format="%" if shares else "", labelFlush=False)
    x = alt.X("low:Q", title=title, axis=axis, scale=alt.Scale(zero=False))
    lines = [null_line(x=found[null].mean)] if null in found else []
    told = f"{title}, mean and 95 % interval: {canvas.listing(rows)}."
    return drawn([*lines, *canvas.intervals(rows, x, width)], width, alt.Step(STEP), told)


def thresholds(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """A measure by the threshold at which it is taken, a line for each model; as Tutek and Šnajder (2020)."""
    start, title = f"{options['measure']}@", options["title"]
    measures = {f.measure for f in record.findings if f.audit == audit and f.measure.startswith(start)}
    ordered = sorted(measures, key=lambda measure: float(measure.removeprefix(start)))
    epsilons = {measure: f"{float(measure.removeprefix(start)):g}" for measure in ordered}
    rows: Rows = [
        {"x": epsilon, "mean": f.mean, "name": name}
        for measure, epsilon in epsilons.items()
        for name, f in subjects(record, audit, measure).items()
    ]
    if not rows:
        return None
    called = sorted(dict.fromkeys(row["name"] for row in rows), key=lambda name: name != options["first"])
    x = alt.X("x:O", sort=list(epsilons.values()), title=options["by"], axis=alt.Axis(labelAngle=0))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=True))
    charts = [chart.encode(x=x, y=y) for chart in _curves(rows, called)]
    smallest = epsilons[ordered[0]]
    told = ", ".join(f"{row['name']} {number(row['mean'], 2)}" for row in rows if row["x"] == smallest)
    beginning = f"{title[0].upper()}{title[1:]} by allowed change"
    return drawn(charts, WIDTH, HEIGHT, f"{beginning}; at {smallest}: {told}.")


def strengths(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Measures by the strength of a projection, a line for each; Meister et al. (2021), figures 1 and 3."""
    title, bars = options["title"], options.get("bars", False)
    places = {name: short(value) for name, value in options.get("strengths", {}).items()}
    every = places if SOFTMAX in places else {SOFTMAX: SOFTMAX} | places
    rows: Rows = [
        {"x": place, "name": word} | ends(found[subject])
        for measure, word in options["measures"].items()
        if (found := _as_share(record, audit, measure, options.get("share", "")))
        for subject, place in every.items()
        if subject in found
    ]
    joined, apart = ([row for row in rows if (row["x"] == SOFTMAX) is alone] for alone in (False, True))
    if not joined:
        return None
    called = list(dict.fromkeys(row["name"] for row in rows))
    axis = alt.Axis(labelAngle=0, labelOverlap="greedy")
    x = alt.X("x:O", sort=[SOFTMAX, *places.values()], title=f"{options['of']} (right: sparser)", axis=axis)
    low, mean = (alt.Y(f"{end}:Q", title=title, scale=alt.Scale(zero=False)) for end in ("low", "mean"))
    marks = [*_curves(joined, called), *(_curves(apart, called)[1:] if apart else [])]
    charts = [mark.encode(x=x, y=mean) for mark in marks]
    if bars:
        colour, _ = canvas.told_apart("name:N", called)
        spans = sheet(rows).mark_rule(strokeWidth=4, opacity=0.4).encode(color=colour, x=x, y=low, y2="high:Q")
        charts = [null_line(y=0), spans, *charts]
    paths = {name: ", ".join(number(row["mean"], 2) for row in joined if row["name"] == name) for name in called}
    told = "; ".join(f"{name} {path}" for name, path in paths.items())
    span = f"{options['symbol']} from {joined[0]['x']} to {joined[-1]['x']}"
    return drawn(charts, WIDTH, HEIGHT, f"{title} by {span}: {told}.")


def _as_share(record: Record, audit: str, measure: str, share: str) -> dict[str, Finding]:
    found = subjects(record, audit, measure)
    # a support may be told as a number of words; then it does not fit an axis of shares
    return {} if measure == share and any(f.mean > 1 for f in found.values()) else found


def _curves(rows: Rows, names: Sequence[str]) -> list[alt.Chart]:
    return canvas.curves(rows, names, 2 if max(map(len, names)) <= 24 else 1)


def distances(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Change of the predictions against that of attention: the adversary's path, and the seeds as its null.

    Wiegreffe and Pinter (2019), figure 5: the audited model is the origin.
    """
    path = _pairs(record, options["path"], ("tvd", "jsd"), "λ=", ADVERSARY)
    clouds = (_pairs(record, audit, ("tvd", "jsd"), "seed ", SEED) for audit in options["clouds"])
    seeds = next(filter(None, clouds), [])
    if not path and not seeds:
        return None
    widest = max(row["x"] for row in path + seeds) or 1e-3
    highest = max(known(row[key] for row in path + seeds for key in ("high", "y") if key in row)) or 1e-3
    x = alt.X("x:Q", title="change of the predictions (TVD)", axis=_axis(), scale=_from(1.12 * widest))
    y = alt.Y("y:Q", title="distance of attention (JSD)", scale=_from(1.1 * highest))
    colours = {kind: CLASS_COLOURS[place] for place, kind in enumerate((ADVERSARY, SEED)) if (path, seeds)[place]}
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    colour = alt.Color("kind:N", scale=scale, legend=alt.Legend(columns=1))
    charts = _points(path, _spaced(path, widest, highest), colour)
    if seeds:
        diamonds = sheet(seeds).mark_point(filled=True, shape="diamond", size=60, opacity=0.85)
        charts.append(diamonds.encode(color=colour))
    base = sheet([{"x": 0, "y": 0}]).mark_point(shape="cross", size=90, color=INK, filled=True, opacity=1)
    told = ", ".join(f"{row['label']} TVD {number(row['x'], 3)} JSD {number(row['y'], 2)}" for row in path + seeds)
    told = f"Distance of attention against change of the predictions: {told}; the audited model 0, 0."
    return drawn([chart.encode(x=x, y=y) for chart in (*charts, base)], WIDTH, TALL, told)


def _pairs(record: Record, audit: str, measures: tuple[str, str], start: str, kind: str) -> Rows:
    """A point for each model that both measures of an audit have a number of; those of a path are in order."""
    across, up = (named(record, audit, measure, start) for measure in measures)
    rows: Rows = [
        {"x": across[name].mean, "y": up[name].mean, "label": name, "kind": kind} for name in up if name in across
    ]
    if kind == SEED:
        return rows
    more = ({"low": up[row["label"]].low, "high": up[row["label"]].high} for row in rows)
    return [row | own | {"place": place} for place, (row, own) in enumerate(zip(rows, more, strict=True))]


def tradeoff(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """Accuracy against the attention that is left on the avoided words, a point for each λ, and the model without."""
    rows = _pairs(record, audit, (options["x"], options["y"]), "λ=", ADVERSARY)
    if not rows:
        return None
    without = subjects(record, audit, options["y"]).get(options["line"])
    lines: Rows = [] if without is None else [{"y": without.mean, "label": "without these words"}]
    ys = known(row[key] for row in rows + lines for key in ("low", "y", "high") if key in row)
    widest, span = max(row["x"] for row in rows) or 1e-3, max(ys) - min(ys) or 0.1
    x = alt.X("x:Q", title="attention on the avoided words", axis=_axis("~%"), scale=_from(1.12 * widest))
    bounds = alt.Scale(domain=(min(ys) - 0.08 * span, max(ys) + 0.08 * span), nice=False)
    y = alt.Y("y:Q", title="texts on which it is right", axis=alt.Axis(format="~%", tickCount=5), scale=bounds)
    points = _points(rows, _spaced(rows, widest, span), alt.value(CLASS_COLOURS[0]))
    charts = [chart.encode(x=x, y=y) for chart in points]
    if lines:
        ruled = sheet(lines).encode(y=y)
        words = ruled.mark_text(align="right", baseline="bottom", dy=-4, fontSize=11, color=INK)
        control = words.encode(x=alt.value(WIDTH), text="label:N")
        charts = [ruled.mark_rule(color=INK, strokeDash=DASHES), control, *charts]
    told = ", ".join(f"{row['label']} {percent(row['x'])} and {percent(row['y'])}" for row in rows)
    ending = "" if without is None else f"; without these words {percent(without.mean)}"
    return drawn(charts, WIDTH, TALL, f"Attention on the avoided words, and accuracy: {told}{ending}.")


def _axis(format_: str = "") -> alt.Axis:
    """Few numbers, each below its line."""
    return alt.Axis(format=format_, tickCount=5, labelFlush=False)


def _from(last: float) -> alt.Scale:
    return alt.Scale(domain=(0, last))


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
    bars = sheet([row | {"y": row["low"]} for row in rows]).mark_rule(strokeWidth=3, opacity=0.35)
    return [
        shared.mark_line(strokeWidth=1.5, opacity=0.6).encode(order="place:Q"),
        bars.encode(y2="high:Q", color=colour),
        shared.mark_point(filled=True, size=70, opacity=1),
        words.mark_text(align="left", dx=5, dy=-12, fontSize=11, color=INK).encode(text="label:N"),
    ]


def by_layer(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """How far the prediction moves without the attention of each layer, and of all of them."""
    every, kinds = options["all"], list(options["measures"].values())
    rows: Rows = [
        {"name": "all" if subject == every else subject.removeprefix("layer "), "kind": kind} | ends(f)
        for measure, kind in options["measures"].items()
        for subject, f in _layers(record, audit, measure, every).items()
    ]
    if not rows:
        return None
    called = list(dict.fromkeys(row["name"] for row in rows))
    colour, shape = canvas.told_apart("kind:N", kinds)
    shared = sheet(rows).encode(
        x=alt.X("name:N", sort=called, title="layer", axis=alt.Axis(labelAngle=0, labelOverlap="greedy")),
        xOffset=alt.XOffset("kind:N", sort=kinds),
        color=colour,
    )
    title = "change of the prediction (TVD)"
    y = alt.Y("low:Q", title=title, scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=5))
    bars = shared.mark_rule(strokeWidth=4, opacity=0.5).encode(y=y, y2="high:Q")
    dots = shared.mark_point(filled=True, size=70, opacity=1).encode(y="mean:Q", shape=shape)
    told = ", ".join(f"{row['name']} {row['kind']} {number(row['mean'], 2)}" for row in rows)
    return drawn([bars, dots], LAYERS, HEIGHT, f"{title} by layer: {told}.")


def _layers(record: Record, audit: str, measure: str, every: str) -> dict[str, Finding]:
    """The findings of single layers, the lowest first, then that of all of them."""
    found = {f.subject: f for f in over_all(record, audit, measure)}
    return {name: found[name] for name in sorted(found, key=lambda name: name == every)}


def pruning(section: Mapping[str, Any]) -> Figure:
    """Accuracy by share of heads pruned, for three orders; as figure 3 of Michel et al. (2019)."""
    curve, title = section["curve"], "accuracy on test texts"
    x = alt.X("share:Q", title="share of heads pruned", axis=alt.Axis(format="%", tickCount=6))
    y = alt.Y("value:Q", title=title, axis=alt.Axis(format="%", tickCount=5), scale=alt.Scale(zero=False))
    rows: Rows = [
        {"share": point["share"], "value": point[key], "order": name}
        for key, (name, _, _) in ORDERS.items()
        for point in curve
    ]
    # a dash for each line as it stands: as a channel it would be drawn into the legend
    lines = [
        sheet([row for row in rows if row["order"] == name]).mark_line(strokeWidth=2, color=colour, strokeDash=dash)
        for name, colour, dash in ORDERS.values()
    ]
    names, colours, _ = zip(*ORDERS.values(), strict=True)
    legend = alt.Legend(columns=1)
    points = (
        sheet(rows)
        .mark_point(filled=True, size=50, opacity=1)
        .encode(
            color=alt.Color("order:N", legend=legend, scale=alt.Scale(domain=names, range=colours)),
            shape=alt.Shape(
                "order:N", legend=legend, scale=alt.Scale(domain=names, range=["circle", "diamond", "square"])
            ),
        )
    )
    band = sheet(curve).mark_area(opacity=0.18, color=CLASS_COLOURS[1])
    charts = [band.encode(x=x, y=alt.Y("low:Q", title=title), y2="high:Q")]
    charts += [chart.encode(x=x, y=y) for chart in (*lines, points)]
    if section.get("majority") is not None:  # what always naming the commonest class gives
        floor = sheet([{"value": section["majority"]}]).mark_rule(color=INK, strokeDash=[2, 3])
        charts.append(floor.encode(y=alt.Y("value:Q", title=title)))
    told = "Accuracy as heads are pruned: the least important first, in random order, the most important first."
    return drawn(charts, 300, 210, told)
