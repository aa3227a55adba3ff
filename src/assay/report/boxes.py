"""Box plots of many texts: quartiles, whiskers to the last text within 1.5 interquartile ranges, as Tukey (1977)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import altair as alt
import numpy as np
from jaxtyping import Bool, Float

from assay.records import Record
from assay.report import flips, rankings
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, layers, sheet
from assay.report.dots import names
from assay.report.instances import side_by_side
from assay.report.items import items
from assay.writing import count, number, percent

WIDTH = 215
STEP = 26
STEPS, MOST = (0.01, 0.02, 0.05, 0.1), 10
"""How wide a bin of Δα may be, and how many there are at most: attention over many words has small gaps only."""

REACH = 1.5
"""Of how many interquartile ranges a whisker is long at most."""

TITLES = {"erased": "{items} erased until the decision changes", "erased_mass": "attention erased until it changes"}


def erased(record: Record, measure: str) -> Figure | None:
    """The share of items, or of attention, erased until the first flip; Serrano and Smith (2019), figure 5.

    Every box is of all texts: those that a ranking never flips lie at its right end, and their share stands beside it.
    The one that erases least is on top, and the median of the smallest set runs through all rows.
    """
    found = rankings.shares(record, measure)
    if rankings.OPTIMUM not in found:
        return None
    rows: Rows = [
        whiskers(values) | {"name": rankings.RANKINGS[name], "exact": name == rankings.OPTIMUM}
        for name, values in found.items()
    ]
    labelled = [row | {"label": _told(record, name, row["median"])} for name, row in zip(found, rows, strict=True)]
    title = items(record).named(TITLES[measure])
    axis = alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1])
    x = alt.X("low:Q", title=title, scale=alt.Scale(domain=(0, 1)), axis=axis)
    least = float(np.median(found[rankings.OPTIMUM]))
    limit = sheet([{"x": least}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    told = ", ".join(f"{row['name']} {row['label']}" for row in labelled)
    return _drawn([limit, *_boxes(labelled, x, names())], f"Box plots, {title}; medians: {told}.")


def _told(record: Record, name: str, median: float) -> str:
    """What stands beside a box: its median, and how many texts it never flips."""
    lost, total = rankings.never(record, name)
    return percent(median) + (f", never {percent(lost / total, 0)}" if lost else "")


def moved(record: Record) -> Figure | None:
    """By how much more the top item moves the output than another, by their gap; Serrano and Smith (2019), figure 3."""
    found = _gaps(record)
    if found is None:
        return None
    rows: Rows = [
        whiskers(found.more[chosen]) | {"name": name, "exact": False, "label": f"n = {count(int(chosen.sum()))}"}
        for name, chosen in found.bins.items()
    ]
    zero = sheet([{"x": 0}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    title = "how much more it moves the output (ΔJS)"
    x = alt.X("low:Q", title=title, axis=alt.Axis(tickCount=4))
    told = ", ".join(f"{row['name']} {number(row['median'])}" for row in rows)
    figure = [zero, *_boxes(rows, x, _gap_axis(found))]
    return _drawn(figure, f"Box plots, {title}, by the gap in attention; medians: {told}.")


def smaller(record: Record) -> Figure | None:
    """In how many texts the top item moves the output less than another; Serrano and Smith (2019), figure 4."""
    found = _gaps(record)
    if found is None:
        return None
    less = {name: int(found.less[chosen].sum()) for name, chosen in found.bins.items()}
    rows: Rows = [
        {"name": name, "less": less[name], "label": f"{count(less[name])} of {count(int(chosen.sum()))}"}
        for name, chosen in found.bins.items()
    ]
    shared = sheet(rows).encode(y=_gap_axis(found))
    title = "texts in which it moves the output less"
    most = max(1, *less.values())
    axis = alt.Axis(values=list(range(0, most + 1, math.ceil(most / 4))), format=",d")  # whole texts only
    x = alt.X("less:Q", title=title, axis=axis, scale=alt.Scale(domain=(0, most)))
    bars = shared.mark_bar(color=CLASS_COLOURS[1], height=STEP - 10).encode(x=x)
    told = ", ".join(f"{row['name']} {row['label']}" for row in rows)
    return _drawn([bars, _labels(shared)], f"Bars, {title}, by the gap in attention: {told}.")


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


def _gaps(record: Record) -> Gaps | None:
    """The texts by the gap between the two attention weights, without bins that hold none."""
    wanted = [f"{measure}:attention" for measure in ("delta_js", "smaller", "delta_weight")]
    values = side_by_side(record, flips.AUDIT, wanted)
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
