"""The figures of a report, each from a record alone; None where the audit behind it was not run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import altair as alt
import numpy as np
from jaxtyping import Float

from assay.metrics.divergence import MAX_JSD
from assay.records import Record
from assay.report import boxes, curves, depths, dots
from assay.report.bins import QUARTERS, Column, classes, column, histogram, quarters
from assay.report.canvas import CLASS_COLOURS, INK, Figure, finish, layers, save, sheet, svg
from assay.report.compared.figures import FIGURES as COMPARED
from assay.report.grades import verdict
from assay.report.yardsticks import REFERENCE

__all__ = ["FIGURES", "save", "svg"]
WIDTH = 330
DASHES = [4, 3]


def agreement_gradient(record: Record) -> Figure | None:
    """How well attention agrees with gradients, text by text; Jain and Wallace (2019), figure 2."""
    return _agreement(record, "gradient", "gradients")


def agreement_leave_one_out(record: Record) -> Figure | None:
    """How well attention agrees with leave-one-out, text by text; as figure 2 of Jain and Wallace (2019)."""
    return _agreement(record, REFERENCE, "leave-one-out")


def permutation(record: Record) -> Figure | None:
    """Output change under shuffling against the largest weight; Jain and Wallace (2019), figure 6."""
    return _boxes(record, column(record, "permutation", "median_tvd"), "median change of the prediction (TVD)")


def adversary(record: Record) -> Figure | None:
    """How far an attention with the same prediction can lie; Jain and Wallace (2019), figure 7."""
    data = column(record, "adversary", "jsd")
    if data is None:
        return None
    steps = _steps(record, data, np.linspace(0, 0.7, 15), "JSD from the observed attention")
    limit = sheet([{"x": MAX_JSD, "label": "limit 0.69"}]).encode(x="x:Q")
    word = limit.mark_text(color=INK, align="right", dx=-5, dy=-2, baseline="top", fontSize=11)
    figure = layers(
        steps,
        limit.mark_rule(color=INK, strokeDash=DASHES),
        word.encode(y=alt.value(0), text="label:N"),
    )
    return _sized(figure, "Histogram of the furthest equal-prediction attention (JSD) by predicted class.")


def adversary_by_attention(record: Record) -> Figure | None:
    """The furthest equal-prediction attention by largest weight; Jain and Wallace (2019), figure 8."""
    return _boxes(record, column(record, "adversary", "jsd"), "JSD from the observed attention")


FIGURES: dict[str, Callable[[Record], Figure | None]] = {
    "verdict": verdict,
    "agreement_gradient": agreement_gradient,
    "agreement_leave_one_out": agreement_leave_one_out,
    "permutation": permutation,
    "adversary": adversary,
    "adversary_by_attention": adversary_by_attention,
    "layers": depths.by_layer,
    "deciding": partial(dots.draw, spec=dots.DECIDING),
    "truth": partial(dots.draw, spec=dots.TRUTH),
    "erasure": partial(dots.draw, spec=dots.ERASURE),
    "erasure_by_share": partial(
        curves.draw,
        audit="erasure",
        measure="comprehensiveness",
        best="comprehensiveness",
        title="probability lost without them",
    ),
    "roar": partial(dots.draw, spec=dots.ROAR),
    "roar_by_share": partial(
        curves.draw, audit="roar", measure="accuracy", best="fall_gain", title="accuracy after retraining without them"
    ),
    "shortcut": partial(dots.draw, spec=dots.SHORTCUT),
    "sanity": dots.sanity,
    "stability": partial(dots.draw, spec=dots.STEADINESS),
    "plausibility": partial(dots.draw, spec=dots.PLAUSIBILITY),
    "single_weight": boxes.moved,
    "single_weight_smaller": boxes.smaller,
    "minimal_set": partial(boxes.erased, measure="erased"),
    "minimal_set_mass": partial(boxes.erased, measure="erased_mass"),
    **COMPARED,
}
"""Each takes a record and gives its figure, or None."""


def _agreement(record: Record, other: str, shown: str) -> Figure | None:
    pairs = (f"attention~{other}", f"{other}~attention")
    found = (column(record, "agreement", f"tau:{pair}") for pair in pairs)
    data = next((each for each in found if each is not None), None)
    if data is None:
        return None
    steps = _steps(record, data, np.linspace(-1, 1, 21), f"Kendall τ of attention with {shown}")
    zero = sheet([{"x": 0}]).mark_rule(color=INK, strokeDash=DASHES).encode(x="x:Q")
    return _sized(layers(steps, zero), f"Histogram of Kendall τ of attention with {shown} by predicted class.")


def _steps(record: Record, data: Column, edges: Float[np.ndarray, " E"], title: str) -> alt.Chart:
    """Overlaid histograms, one a predicted class, each as the share of that class's examples."""
    labels = classes(record, data.predicted)
    corners = histogram(data, labels, edges)
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


def _boxes(record: Record, data: Column | None, title: str) -> Figure | None:
    """By quarter of the largest weight and class: line for 5–95 %, bar for 25–75 %, tick at the median."""
    if data is None or data.attention is None:
        return None
    labels = classes(record, data.predicted)
    shared = sheet(quarters(data, labels)).encode(
        y=alt.Y("quarter:N", sort=list(reversed(QUARTERS)), title="largest attention weight"),
        yOffset=alt.YOffset("class:N", sort=list(labels.values())),
        color=alt.Color("class:N", scale=_colours(labels), legend=_legend(labels)),
    )
    step = max(14, 40 // len(labels))
    lines = shared.mark_rule(strokeWidth=1.5).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    bars = shared.mark_bar(opacity=0.4, height=step - 5).encode(x="first:Q", x2="third:Q")
    medians = shared.mark_tick(thickness=3, size=step - 5, opacity=1).encode(x="median:Q")
    sizes = shared.mark_text(align="left", fontSize=10).encode(
        x=alt.value(WIDTH - 75), text="size:N", color=alt.value(INK)
    )
    figure = layers(lines, bars, medians, sizes).properties(width=WIDTH - 80, height=alt.Step(step))
    return finish(figure, f"{title} by largest attention weight and predicted class: quantiles.")


def _sized(figure: alt.LayerChart, description: str) -> Figure:
    return finish(figure.properties(width=WIDTH, height=170), description)


def _colours(labels: dict[int, str]) -> alt.Scale:
    """A class keeps its colour in every figure, as long as there is one for each."""
    places = list(labels) if max(labels) < len(CLASS_COLOURS) else list(range(len(labels)))
    colours = [CLASS_COLOURS[max(place, 0)] for place in places]
    return alt.Scale(domain=list(labels.values()), range=colours)


def _legend(labels: dict[int, str]) -> alt.Legend:
    """As many columns as fit above a figure that must not grow wider than a phone."""
    return alt.Legend(columns=2 if max(map(len, labels.values())) <= 22 else 1)
