"""A figure of how time grows with size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import altair as alt
import numpy as np

from assay.report.canvas import finish, save, sheet
from benchmarks.growth import Series


def drawn(panels: Mapping[str, Mapping[str, Series]], place: Path) -> None:
    """One panel for each kind of size, both axes logarithmic; the dashed line is linear growth."""
    charts = [_panel(title, lines) for title, lines in panels.items()]
    told = "Time against words, texts and corpus size on logarithmic axes, with a dashed line of linear growth"
    save(finish(alt.vconcat(*charts).resolve_scale(color="independent"), told), place)


def _panel(title: str, lines: Mapping[str, Series]) -> alt.LayerChart:
    rows = [
        {"name": name, "size": size, "ms": time}
        for name, series in lines.items()
        for size, time in zip(series.sizes, series.times, strict=True)
    ]
    sizes = sorted({row["size"] for row in rows})
    low = math.exp(float(np.mean([math.log(series.times[0]) for series in lines.values()])))
    linear = [{"size": size, "ms": low * size / sizes[0]} for size in (sizes[0], sizes[-1])]
    across = alt.X("size:Q", title=title, scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=sizes))
    up = alt.Y("ms:Q", title="milliseconds", scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=4, format="~g"))
    colour = alt.Color("name:N", sort=list(lines), legend=alt.Legend(orient="right", title=None, symbolType="stroke"))
    own = sheet(rows).mark_line(point=True, strokeWidth=1.5).encode(x=across, y=up, color=colour)
    other = sheet(linear).mark_line(strokeDash=[4, 4], color="#7d8794").encode(x=across, y=up)
    return alt.layer(other, own).properties(width=420, height=190)
