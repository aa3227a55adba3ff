"""Figures of many texts, reduced before they are drawn: histograms, quantiles, and box plots as Tukey's (1977)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from jaxtyping import Bool, Float, Int

from assay.lookup import items, side_by_side
from assay.records import Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.figures.explainers import names
from assay.writing import count, number, percent

MAX_CLASSES = 6
QUARTERS = ("0 – 0.25", "0.25 – 0.5", "0.5 – 0.75", "0.75 – 1")
LABEL_LENGTH = 26
WIDE = 330
WIDTH = 215
STEP = 26
STEPS, MOST = (0.01, 0.02, 0.05, 0.1), 10
"""How wide a bin of a gap may be, and how many there are at most: attention over many words has small gaps only."""

REACH = 1.5
"""Of how many interquartile ranges a whisker is long at most."""

DASHES = [4, 3]


def histogram(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """How the texts spread over the values of the first of some columns that there is, by predicted class."""
    found = (column(record, audit, name) for name in options["columns"])
    data = next((each for each in found if each is not None), None)
    if data is None:
        return None
    first, last, bins = options["edges"]
    steps = _steps(record, data, np.linspace(first, last, bins + 1), options["title"])
    label = options.get("line_label")
    limit = sheet([{"x": options["line"]} | ({"label": label} if label else {})]).encode(x="x:Q")
    charts = [steps, limit.mark_rule(color=INK, strokeDash=DASHES)]
    if label:
        word = limit.mark_text(color=INK, align="right", dx=-5, dy=-2, baseline="top", fontSize=11)
        charts.append(word.encode(y=alt.value(0), text="label:N"))
    told = f"Histogram of {options.get('of', options['title'])} by predicted class."
    return finish(layers(*charts).properties(width=WIDE, height=170), told)


def quarters(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """By quarter of the largest weight and class: line for 5–95 %, bar for 25–75 %, tick at the median."""
    data, title = column(record, audit, options["column"]), options["title"]
    if data is None or data.attention is None:
        return None
    labels = classes(record, data.predicted)
    shared = sheet(quantiles(data, labels)).encode(
        y=alt.Y("quarter:N", sort=list(reversed(QUARTERS)), title="largest attention weight"),
        yOffset=alt.YOffset("class:N", sort=list(labels.values())),
        color=alt.Color("class:N", scale=_colours(labels), legend=_legend(labels)),
    )
    step = max(14, 40 // len(labels))
    lines = shared.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    bars = shared.mark_bar(opacity=0.4, height=step - 5).encode(x="first:Q", x2="third:Q")
    medians = shared.mark_tick(thickness=3, size=step - 5, opacity=1).encode(x="median:Q")
    sizes = shared.mark_text(align="left", fontSize=10).encode(
        x=alt.value(WIDE - 75), text="size:N", color=alt.value(INK)
    )
    figure = layers(lines, bars, medians, sizes).properties(width=WIDE - 80, height=alt.Step(step))
    return finish(figure, f"{title} by largest attention weight and predicted class: quantiles.")


def boxes(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """The share of items, or of attention, erased until the first flip; Serrano and Smith (2019), figure 5.

    Every box is of all texts: those that a ranking never flips lie at its right end, and their share stands beside it.
    The one that erases least is on top, and the median of the exact one runs through all rows.
    """
    found, never = _extents(record, audit, options)
    exact, called = options["exact"], options["called"]
    if exact not in found:
        return None
    rows: Rows = [whiskers(values) | {"name": called[name], "exact": name == exact} for name, values in found.items()]
    labelled = [row | {"label": _beside(never[name], row["median"])} for name, row in zip(found, rows, strict=True)]
    title = items(record).named(options["title"])
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("low:Q", title=title, scale=alt.Scale(domain=(0, 1)), axis=axis)
    least = float(np.median(found[exact]))
    limit = sheet([{"x": least}]).mark_rule(color=INK, strokeDash=DASHES).encode(x="x:Q")
    told = ", ".join(f"{row['name']} {row['label']}" for row in labelled)
    return _drawn([limit, *_boxes(labelled, x, names())], f"Box plots, {title}; medians: {told}.")


def _extents(
    record: Record, audit: str, options: Mapping[str, Any]
) -> tuple[dict[str, Float[np.ndarray, " n"]], dict[str, Float[np.ndarray, " n"]]]:
    """The shares of each subject, the least on average first, and in which texts it never changes the decision.

    Where older records hold no share of such a text, everything counts as erased.
    """
    found, never = {}, {}
    for name in options["called"]:
        columns = [f"{options[key]}:{name}" for key in ("measure", "older", "never")]
        values, older, lost = side_by_side(record, audit, columns).T
        values = np.where(np.isfinite(values), values, np.where(lost == 1, 1.0, older))
        if len(there := values[np.isfinite(values)]):
            found[name], never[name] = there, lost[np.isfinite(lost)]
    means = {name: lost.mean() if len(lost) else 0 for name, lost in never.items()}
    ordered = sorted(found, key=lambda name: (round(found[name].mean(), 9), means[name]))
    return {name: found[name] for name in ordered}, never


def _beside(never: Float[np.ndarray, " n"], median: float) -> str:
    """What stands beside a box: its median, and how many texts it never flips."""
    return percent(median) + (f", never {percent(never.mean(), 0)}" if never.any() else "")


def binned(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """What one erased item does beyond another by the gap in attention; Serrano and Smith (2019), figures 3 and 4.

    Boxes of the difference, or counts of the texts in which it is negative.
    """
    found, title = _gaps(record, audit, options), options["title"]
    if found is None:
        return None
    return _counts(found, title) if options.get("counts") else _differences(found, title)


def _differences(found: Gaps, title: str) -> Figure:
    rows: Rows = [
        whiskers(found.more[chosen]) | {"name": name, "exact": False, "label": f"n = {count(int(chosen.sum()))}"}
        for name, chosen in found.bins.items()
    ]
    zero = sheet([{"x": 0}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    x = alt.X("low:Q", title=title, axis=alt.Axis(tickCount=4))
    told = ", ".join(f"{row['name']} {number(row['median'])}" for row in rows)
    figure = [zero, *_boxes(rows, x, _gap_axis(found))]
    return _drawn(figure, f"Box plots, {title}, by the gap in attention; medians: {told}.")


def _counts(found: Gaps, title: str) -> Figure:
    less = {name: int(found.less[chosen].sum()) for name, chosen in found.bins.items()}
    rows: Rows = [
        {"name": name, "less": less[name], "label": f"{count(less[name])} of {count(int(chosen.sum()))}"}
        for name, chosen in found.bins.items()
    ]
    shared = sheet(rows).encode(y=_gap_axis(found))
    most = max(1, *less.values())
    axis = alt.Axis(values=list(range(0, most + 1, math.ceil(most / 4))), format=",d")  # whole texts only
    x = alt.X("less:Q", title=title, axis=axis, scale=alt.Scale(domain=(0, most)))
    bars = shared.mark_bar(color=CLASS_COLOURS[1], height=STEP - 10).encode(x=x)
    told = ", ".join(f"{row['name']} {row['label']}" for row in rows)
    return _drawn([bars, _labels(shared)], f"Bars, {title}, by the gap in attention: {told}.")


def _steps(record: Record, data: Column, edges: Float[np.ndarray, " E"], title: str) -> alt.Chart:
    """Overlaid histograms, one a predicted class, each as the share of that class's examples."""
    labels = classes(record, data.predicted)
    corners = outlines(data, labels, edges)
    # the headroom keeps what is written at the top clear of the outlines
    tallest = max(corner["share"] for corner in corners)
    shown = sheet(corners).mark_line(strokeWidth=1.8, fillOpacity=0.25 if len(labels) <= 3 else 0)
    share = alt.Scale(domain=(0, 1.15 * tallest), nice=False)
    encoded: alt.Chart = shown.encode(
        x=alt.X("x:Q", title=title, scale=alt.Scale(domain=(edges[0], edges[-1]), nice=False)),
        y=alt.Y("share:Q", title="share of texts", scale=share, axis=alt.Axis(format="%", tickCount=4)),
        color=alt.Color("class:N", scale=_colours(labels), legend=_legend(labels)),
        fill=alt.Fill("class:N", scale=_colours(labels), legend=_legend(labels)),
        order="corner:Q",
    )
    return encoded


def _colours(labels: dict[int, str]) -> alt.Scale:
    """A class keeps its colour in every figure, as long as there is one for each."""
    places = list(labels) if max(labels) < len(CLASS_COLOURS) else list(range(len(labels)))
    colours = [CLASS_COLOURS[max(place, 0)] for place in places]
    return alt.Scale(domain=list(labels.values()), range=colours)


def _legend(labels: dict[int, str]) -> alt.Legend:
    """As many columns as fit above a figure that must not grow wider than a phone."""
    return alt.Legend(columns=2 if max(map(len, labels.values())) <= 22 else 1)


@dataclass(frozen=True)
class Column:
    """One measure of one audit: a value and a predicted class for each example where the measure exists."""

    values: Float[np.ndarray, " N"]
    predicted: Int[np.ndarray, " N"]
    attention: Float[np.ndarray, " N"] | None


def column(record: Record, audit: str, name: str) -> Column | None:
    """The measure's finite values, or None where the audit or the measure is absent."""
    table = record.audit_rows(audit)
    if name not in table.column_names:
        return None
    values = table[name].to_numpy().astype(float)
    there = np.isfinite(values)
    if not there.any():
        return None
    peaks = table["max_attention"].to_numpy().astype(float) if "max_attention" in table.column_names else None
    return Column(
        values[there],
        table["predicted"].to_numpy()[there],
        None if peaks is None else np.nan_to_num(peaks[there]),
    )


def classes(record: Record, predicted: Int[np.ndarray, " N"]) -> dict[int, str]:
    """A label with n for each predicted class; one for all of them where there are too many to tell apart."""
    names = record.summary["corpus"]["classes"]
    present, counts = np.unique(predicted, return_counts=True)
    if len(present) > MAX_CLASSES:
        return {-1: f"all {len(present)} classes (n = {count(len(predicted))})"}
    sizes = zip(present.tolist(), counts.tolist(), strict=True)
    return {label: f"{_short(str(names[label]), label)} (n = {count(n)})" for label, n in sizes}


def members(data: Column, which: int) -> Bool[np.ndarray, " N"]:
    """Which examples belong to a class of `classes`; -1 stands for all."""
    return np.full(len(data.values), True) if which < 0 else data.predicted == which


def outlines(data: Column, labels: dict[int, str], edges: Float[np.ndarray, " E"]) -> list[dict[str, Any]]:
    """The share of a class's examples in each bin, as the corners of an outline that starts and ends at 0."""
    corners: list[dict[str, Any]] = []
    for which, label in labels.items():
        values = data.values[members(data, which)]
        shares = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / len(values)
        filled = np.flatnonzero(shares)
        first, last = filled[0], filled[-1] + 1
        heights = np.concatenate([[0], np.repeat(shares[first:last], 2), [0]])
        places = np.repeat(edges[first : last + 1], 2)
        corners += [
            {"x": float(x), "share": float(y), "class": label, "corner": corner}
            for corner, (x, y) in enumerate(zip(places, heights, strict=True))
        ]
    return corners


def quantiles(data: Column, labels: dict[int, str]) -> list[dict[str, Any]]:
    """Quantiles of the values by class and by quarter of the largest attention weight."""
    assert data.attention is not None
    quarter = np.clip((data.attention * 4).astype(int), 0, 3)
    boxes = []
    for which, label in labels.items():
        for place, name in enumerate(QUARTERS):
            values = data.values[members(data, which) & (quarter == place)]
            if len(values) > 0:
                ends = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95]).tolist()
                keys = ("low", "first", "median", "third", "high")
                size = f"n = {count(len(values))}"
                boxes.append(dict(zip(keys, ends, strict=True)) | {"quarter": name, "class": label, "size": size})
    return boxes


def _short(name: str, place: int) -> str:
    """A class name that fits a legend, without control characters, which SVG cannot hold."""
    clean = "".join(letter if letter.isprintable() else "�" for letter in name)
    return clean if len(clean) <= LABEL_LENGTH else f"{clean[: LABEL_LENGTH - 4]}… #{place}"


def whiskers(values: Float[np.ndarray, " n"]) -> dict[str, float]:
    """Quartiles, and the outermost values within REACH interquartile ranges of them."""
    first, median, third = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    reach = REACH * (third - first)
    inside = values[(values >= first - reach) & (values <= third + reach)]
    # a quartile lies between values, so that all inside may be beyond it
    low, high = min(float(inside.min()), first), max(float(inside.max()), third)
    return {"low": low, "first": first, "median": median, "third": third, "high": high}


@dataclass(frozen=True)
class Gaps:
    """ΔJS of each text of several items, whether it is negative, and which texts lie in each bin of Δα."""

    more: Float[np.ndarray, " n"]
    less: Float[np.ndarray, " n"]
    bins: dict[str, Bool[np.ndarray, " n"]]


def _gaps(record: Record, audit: str, options: Mapping[str, Any]) -> Gaps | None:
    """The texts by the gap between the two attention weights, without bins that hold none."""
    values = side_by_side(record, audit, [options[key] for key in ("value", "flag", "by")])
    more, less, gap = values[np.isfinite(values).all(axis=1)].T
    if not len(gap):
        return None
    step = next((step for step in STEPS if gap.max() <= step * MOST), STEPS[-1])
    places = np.clip((gap / step + 1e-9).astype(int), 0, MOST - 1)  # so that 0.3 / 0.1 is 3
    names = {place: f"{place * step:.2f} – {(place + 1) * step:.2f}" for place in np.unique(places).tolist()}
    return Gaps(more, less, {name: places == place for place, name in names.items()})


def _gap_axis(found: Gaps) -> alt.Y:
    """The bins, the largest gap on top, with their title above them."""
    axis = alt.Axis(grid=False, titleAngle=0, titleAlign="right", titleX=-6, titleY=-10)
    return alt.Y("name:N", sort=list(reversed(found.bins)), title="gap (Δα)", axis=axis)


def _boxes(rows: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """A line from whisker to whisker, a bar between the quartiles, a tick at the median, and words beside them."""
    colour = alt.Color("exact:N", legend=None, scale=alt.Scale(domain=[True, False], range=list(CLASS_COLOURS[2::-2])))
    shared = sheet(rows).encode(y=y, color=colour)
    return [
        shared.mark_rule(strokeWidth=1.5).encode(x=x, x2="high:Q"),
        shared.mark_bar(opacity=0.4, height=STEP - 10).encode(x="first:Q", x2="third:Q"),
        shared.mark_tick(thickness=3, size=STEP - 10, opacity=1).encode(x="median:Q"),
        _labels(sheet(rows).encode(y=y)),
    ]


def _labels(shared: alt.Chart) -> alt.Chart:
    encoded: alt.Chart = shared.mark_text(align="left", fontSize=12, color=INK).encode(
        x=alt.value(WIDTH + 10), text="label:N"
    )
    return encoded


def _drawn(charts: list[alt.Chart], description: str) -> Figure:
    return finish(layers(*charts).properties(width=WIDTH, height=alt.Step(STEP)), description)
