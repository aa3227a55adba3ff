"""The figures of the page, in the shape of the paper's: what is erased (5, 6, 10), what a weight does (3, 4, 7, 8)."""

from __future__ import annotations

from pathlib import Path

import altair as alt

from assay.report.canvas import CLASS_COLOURS, Figure, Rows, finish, layers, save
from studies.results import Result, finding
from studies.serrano_smith.tables import BINS, RANKINGS, Results, quantiles

NAMES = ("low", "first", "median", "third", "high")  # 5, 25, 50, 75 and 95 %


def draw(results: Results, folder: Path) -> None:
    """Writes all figures."""
    folder.mkdir(exist_ok=True)
    save(erased(results), folder / "erased.svg")
    save(moved(results), folder / "moved.svg")


def erased(results: Results) -> Figure:
    """Shares of items erased until the first flip, a box of all texts for each ranking; never stands at the end."""
    rows: Rows = []
    for (corpus, model), result in results.items():
        for name in RANKINGS:
            if (found := quantiles(result, name)) is not None:
                lost = finding(result, "minimal_set", name, "never")
                never = f"{lost.mean:.0%}" if lost is not None and lost.mean > 0 else ""
                row = {"corpus": _title(corpus, result), "model": model, "ranking": name.replace("_", " ")}
                row |= {"never": never}
                rows.append(row | dict(zip(NAMES, found, strict=True)) | {"exact": name == "optimum"})
    order = [name.replace("_", " ") for name in RANKINGS]
    y = alt.Y("ranking:N", sort=order, title=None)
    colour = alt.Color("exact:N", legend=None, scale=alt.Scale(domain=[True, False], range=list(CLASS_COLOURS[2::-2])))
    x = alt.X("low:Q", title="share of items erased", scale=alt.Scale(domain=(0, 1)), axis=alt.Axis(format="%"))
    shared = alt.Chart().encode(y=y, color=colour)
    boxes = layers(
        shared.mark_rule().encode(x=x, x2="high:Q"),
        shared.mark_bar(opacity=0.4, height=9).encode(x="first:Q", x2="third:Q"),
        shared.mark_tick(thickness=2.5, size=9, opacity=1).encode(x="median:Q"),
        alt.Chart().mark_text(align="left", fontSize=10).encode(y=y, x=alt.value(194), text="never:N"),
    ).properties(width=190, height=alt.Step(13), data=alt.InlineData(values=rows))
    return finish(_facets(boxes, results), "Box plots of the share of items erased until the decision changes.")


def moved(results: Results) -> Figure:
    """ΔJS by bin of Δα, as the range of the middle half of texts with its median, and how many texts are below 0."""
    rows: Rows = []
    for (corpus, model), result in results.items():
        for low, part, less in zip(BINS, result["change_by_gap"], result["negative_by_gap"], strict=False):
            if part["quantiles"] is not None:
                row = {"corpus": _title(corpus, result), "model": model, "gap": f"{low:.1f}"}
                rows.append(row | dict(zip(NAMES, part["quantiles"], strict=True)) | {"less": less / part["n"]})
    x = alt.X("gap:O", title="Δα from", axis=alt.Axis(labelAngle=0))
    y = alt.Y("low:Q", title="ΔJS", axis=alt.Axis(tickCount=3))
    shared = alt.Chart().encode(x=x, color=alt.value(CLASS_COLOURS[0]))
    boxes = layers(
        shared.mark_rule().encode(y=y, y2="high:Q"),
        shared.mark_bar(opacity=0.4, width=9).encode(y="first:Q", y2="third:Q"),
        shared.mark_tick(thickness=2.5, size=9, opacity=1).encode(y="median:Q"),
        alt.Chart().mark_tick(thickness=2, size=13, color=CLASS_COLOURS[1]).encode(x=x, y=alt.datum(0)),
    ).properties(width=190, height=70, data=alt.InlineData(values=rows))
    return finish(_facets(boxes, results, "independent"), "How much more the top item moves the output than another.")


def _facets(chart: alt.LayerChart, results: Results, scale: str = "shared") -> alt.FacetChart:
    """A row for each model and a column for each corpus."""
    models = list(dict.fromkeys(model for _, model in results))
    titles = list(dict.fromkeys(_title(corpus, result) for (corpus, _), result in results.items()))
    head = alt.Header(title=None, labelFontSize=12)
    side = alt.Header(title=None, labelFontSize=12, labelAngle=0, labelAlign="left")
    return chart.facet(
        row=alt.Row("model:N", sort=models, header=side),
        column=alt.Column("corpus:N", sort=titles, header=head),
        spacing=10,
    ).resolve_scale(y=scale)


def _title(corpus: str, result: Result) -> str:
    return f"{corpus}, {len(result['corpus']['classes'])} classes"
