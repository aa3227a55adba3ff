"""How time grows with size: the clock, the slope, and a figure of both."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import numpy as np
import torch

from assay.report.canvas import finish, save, sheet

ROUNDS, ENOUGH, LONGEST = 2, 0.3, 2.0  # seconds: above the second one run is enough, above the third none follows


@dataclass(frozen=True)
class Series:
    """Milliseconds for each of some growing sizes; a series that took too long ended before the last."""

    sizes: Sequence[int]
    times: Sequence[float]

    @property
    def growth(self) -> float:
        """The slope of log time in log size: 1 is linear, 2 is quadratic; nan where one size alone was measured."""
        return math.nan if len(self.sizes) < 2 else float(np.polyfit(np.log(self.sizes), np.log(self.times), 1)[0])

    def at(self, size: int) -> float:
        return self.times[list(self.sizes).index(size)]


def measured(runs: Mapping[int, Callable[[], object]], gpu: bool = False, longest: float = LONGEST) -> Series:
    """Each size in turn, the smallest first, until one takes more than `longest` seconds."""
    times: list[float] = []
    for run in runs.values():
        times.append(1000 * seconds(run, gpu))
        if times[-1] > 1000 * longest:
            break
    return Series(list(runs)[: len(times)], times)


def seconds(run: Callable[[], object], gpu: bool = False) -> float:
    """The fastest of some rounds after one to warm up: processor time, or on a GPU the time until it is idle."""
    clock = time.perf_counter if gpu else time.process_time
    best = math.inf
    for turn in range(ROUNDS + 1):
        started = clock()
        run()
        if gpu:
            torch.cuda.synchronize()
        spent = clock() - started
        if spent > ENOUGH and not (gpu and turn == 0):
            return min(best, spent)
        best = best if turn == 0 else min(best, spent)
    return best


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
