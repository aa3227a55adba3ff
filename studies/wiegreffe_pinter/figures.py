"""The figure of the page: what an adversary gives up to look elsewhere."""

from __future__ import annotations

from pathlib import Path

import altair as alt

from assay.metrics.information import MAX_JSD
from assay.report.canvas import CLASS_COLOURS, Figure, Rows, finish, layers, save, sheet
from studies.wiegreffe_pinter.tables import TITLES, Results, cloud, curve


def draw(results: Results, folder: Path) -> None:
    """Writes the figure."""
    folder.mkdir(exist_ok=True)
    save(parted(results), folder / "parted.svg")


def parted(results: Results) -> Figure:
    """TVD of the output against JSD of the attention: a line for the adversaries of a corpus, points for its seeds."""
    names = [TITLES[name] for name in results]
    lines: Rows = [
        {"corpus": TITLES[name], "strength": strength, "jsd": jsd, "tvd": tvd}
        for name, result in results.items()
        for strength, jsd, tvd in curve(result)
    ]
    points: Rows = [
        {"corpus": TITLES[name], "jsd": jsd, "tvd": tvd}
        for name, result in results.items()
        for jsd, tvd in cloud(result)
    ]
    x = alt.X("jsd:Q", title="JSD of the attention", scale=alt.Scale(domain=(0, MAX_JSD)))
    y = alt.Y("tvd:Q", title="TVD of the output", scale=alt.Scale(zero=True))
    colour = alt.Color("corpus:N", scale=alt.Scale(domain=names, range=list(CLASS_COLOURS[: len(names)])))
    shared = sheet(lines).encode(x=x, y=y, color=colour)
    figure = layers(
        shared.mark_line(strokeWidth=2).encode(order="strength:Q"),
        shared.mark_point(filled=True, size=28, opacity=1),
        sheet(points).mark_point(filled=False, size=45, shape="diamond", opacity=0.8).encode(x=x, y=y, color=colour),
    ).properties(width=520, height=300)
    told = "TVD of the output against JSD of the attention, of trained adversaries and of models of other seeds."
    return finish(figure, told)
