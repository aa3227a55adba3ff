"""Figures of many texts, reduced before they are drawn: histograms, quantiles, and box plots as Tukey's (1977)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
from jaxtyping import Bool, Float, Int

from assay.lookup import Extent, extents, items, side_by_side
from assay.records import Record
from assay.report import canvas
from assay.report.canvas import CLASS_COLOURS, DASHES, INK, Figure, Rows, drawn, null_line, sheet
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


def histogram(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """How the texts spread over the values of the first of some columns that there is, by predicted class."""
    found = (column(record, audit, name) for name in options["columns"])
    data = next((each for each in found if each is not None), None)
    if data is None:
        return None
    first, last, bins = options["edges"]
    label = options.get("line_label")
    limit = sheet([{"x": options["line"]} | ({"label": label} if label else {})]).encode(x="x:Q")
    charts = [_outlined(record, data, np.linspace(first, last, bins + 1), options["title"])]
    charts.append(limit.mark_rule(color=INK, strokeDash=DASHES))
    if label:
        word = limit.mark_text(color=INK, align="right", dx=-5, dy=-2, baseline="top", fontSize=11)
        charts.append(word.encode(y=alt.value(0), text="label:N"))
    return drawn(charts, WIDE, 170, f"Histogram of {options.get('of', options['title'])} by predicted class.")


def quarters(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """By quarter of the largest weight and class: line for 5–95 %, bar for 25–75 %, tick at the median."""
    data, title = column(record, audit, options["column"]), options["title"]
    if data is None or data.attention is None:
        return None
    labels = classes(record, data.predicted)
    shared = sheet(quantiles(data, labels)).encode(
        y=alt.Y("quarter:N", sort=list(reversed(QUARTERS)), title="largest attention weight"),
        yOffset=alt.YOffset("class:N", sort=list(labels.values())),
        color=alt.Color("class:N", **_look(labels)),
    )
    step = max(14, 40 // len(labels))
    sizes = shared.mark_text(align="left", fontSize=10).encode(
        x=alt.value(WIDE - 75), text="size:N", color=alt.value(INK)
    )
    charts = [*canvas.boxes(shared, alt.X("low:Q", title=title), step - 5), sizes]
    told = f"{title} by largest attention weight and predicted class: quantiles."
    return drawn(charts, WIDE - 80, alt.Step(step), told)


def erased(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """The share of items, or of attention, erased until the first flip; Serrano and Smith (2019), figure 5.

    Every box is of all texts: those that a ranking never flips lie at its right end, and their share stands beside it.
    The one that erases least is on top, and the median of the exact one runs through all rows.
    """
    exact, called = options["exact"], options["called"]
    found = extents(record, audit, called, [options[key] for key in ("measure", "older", "never")])
    if exact not in found:
        return None
    rows: Rows = []
    for name, each in found.items():
        box = whiskers(each.erased)
        rows.append(box | {"name": called[name], "exact": name == exact, "label": _beside(each, box["median"])})
    title = items(record).named(options["title"])
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("low:Q", title=title, scale=alt.Scale(domain=(0, 1)), axis=axis)
    charts = [null_line(x=float(np.median(found[exact].erased))), *_boxes(rows, x, canvas.names())]
    return drawn(charts, WIDTH, alt.Step(STEP), f"Box plots, {title}; medians: {canvas.listing(rows)}.")


def _beside(extent: Extent, median: float) -> str:
    """What stands beside a box: its median, and how many texts it never flips."""
    return percent(median) + (f", never {percent(extent.never.mean(), 0)}" if extent.never.any() else "")


def binned(record: Record, audit: str, options: Mapping[str, Any]) -> Figure | None:
    """What one erased item does beyond another by the gap in attention; Serrano and Smith (2019), figures 3 and 4.

    Boxes of the difference, or counts of the texts in which it is negative; bins without a text are left out.
    """
    values = side_by_side(record, audit, [options[key] for key in ("value", "flag", "by")])
    more, less, gap = values[np.isfinite(values).all(axis=1)].T
    if not len(gap):
        return None
    bins, title = _bins(gap), options["title"]
    axis = alt.Axis(grid=False, titleAngle=0, titleAlign="right", titleX=-6, titleY=-10)
    y = alt.Y("name:N", sort=list(reversed(bins)), title="gap (Δα)", axis=axis)
    if options.get("counts"):
        return _counts({name: less[chosen] for name, chosen in bins.items()}, y, title)
    rows: Rows = [
        whiskers(more[chosen]) | {"name": name, "exact": False, "label": f"n = {count(int(chosen.sum()))}"}
        for name, chosen in bins.items()
    ]
    x = alt.X("low:Q", title=title, axis=alt.Axis(tickCount=4))
    told = ", ".join(f"{row['name']} {number(row['median'])}" for row in rows)
    charts = [null_line(x=0), *_boxes(rows, x, y)]
    return drawn(charts, WIDTH, alt.Step(STEP), f"Box plots, {title}, by the gap in attention; medians: {told}.")


def _bins(gap: Float[np.ndarray, " n"]) -> dict[str, Bool[np.ndarray, " n"]]:
    """Which texts lie in each bin of the gap between two attention weights."""
    step = next((step for step in STEPS if gap.max() <= step * MOST), STEPS[-1])
    places = np.clip((gap / step + 1e-9).astype(int), 0, MOST - 1)  # so that 0.3 / 0.1 is 3
    found = np.unique(places).tolist()
    return {f"{place * step:.2f} – {(place + 1) * step:.2f}": places == place for place in found}


def _counts(flags: Mapping[str, Float[np.ndarray, " n"]], y: alt.Y, title: str) -> Figure:
    less = {name: int(each.sum()) for name, each in flags.items()}
    rows: Rows = [
        {"name": name, "less": less[name], "label": f"{count(less[name])} of {count(len(each))}"}
        for name, each in flags.items()
    ]
    shared = sheet(rows).encode(y=y)
    most = max(1, *less.values())
    axis = alt.Axis(values=list(range(0, most + 1, math.ceil(most / 4))), format=",d")  # whole texts only
    x = alt.X("less:Q", title=title, axis=axis, scale=alt.Scale(domain=(0, most)))
    charts = [
        shared.mark_bar(color=CLASS_COLOURS[1], height=STEP - 10).encode(x=x),
        canvas.beside(shared, WIDTH + 10),
    ]
    told = f"Bars, {title}, by the gap in attention: {canvas.listing(rows)}."
    return drawn(charts, WIDTH, alt.Step(STEP), told)


def _boxes(rows: Rows, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Boxes with words beside them; that of the exact ranking has another colour."""
    scale = alt.Scale(domain=[True, False], range=list(CLASS_COLOURS[2::-2]))
    shared = sheet(rows).encode(y=y)
    coloured = shared.encode(color=alt.Color("exact:N", legend=None, scale=scale))
    return [*canvas.boxes(coloured, x, STEP - 10), canvas.beside(shared, WIDTH + 10)]


def _outlined(record: Record, data: Column, edges: Float[np.ndarray, " E"], title: str) -> alt.Chart:
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
        color=alt.Color("class:N", **_look(labels)),
        fill=alt.Fill("class:N", **_look(labels)),
        order="corner:Q",
    )
    return encoded


def _look(labels: dict[int, str]) -> dict[str, Any]:
    """Scale and legend of classes; each keeps its colour in every figure, as long as there is one for each.

    The legend has as many columns as fit above a figure that must not grow wider than a phone.
    """
    places = list(labels) if max(labels) < len(CLASS_COLOURS) else list(range(len(labels)))
    colours = [CLASS_COLOURS[max(place, 0)] for place in places]
    legend = alt.Legend(columns=2 if max(map(len, labels.values())) <= 22 else 1)
    return {"scale": alt.Scale(domain=list(labels.values()), range=colours), "legend": legend}


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
