"""The figures of the page: attention beside what counts (1, 3), and how widely importance is spread (2), as λ rises."""

from __future__ import annotations

from pathlib import Path

import altair as alt

from assay.report.canvas import CLASS_COLOURS, Figure, Rows, finish, layers, save
from studies.meister.tables import AUDIT, CORPORA, ENCODERS, STRENGTHS, Results, subject
from studies.results import finding

CORRELATIONS = {"tau_input": "with inputs", "tau_state": "with states"}
ENTROPIES = {
    "entropy_gradient": "gradient at inputs",
    "entropy_loo": "leave-one-out",
    "entropy_states": "inputs' influence on a state",
    "entropy_attention": "attention",
}


def draw(results: Results, folder: Path) -> None:
    """Writes all figures."""
    folder.mkdir(exist_ok=True)
    save(swept(results, CORRELATIONS, "Kendall τ of attention"), folder / "correlation.svg")
    save(swept(results, ENTROPIES, "normalised entropy"), folder / "entropy.svg")


def swept(results: Results, measures: dict[str, str], title: str) -> Figure:
    """Measures with their 95 % intervals for softmax and for each λ, from flat to sharp."""
    order = ["softmax", *(f"{strength:g}" for strength in STRENGTHS)]
    rows: Rows = []
    for (name, encoder), result in results.items():
        for place, projection in zip(order, ("softmax", *map(subject, STRENGTHS)), strict=True):
            for measure, told in measures.items():
                if (found := finding(result, AUDIT, projection, measure)) is not None:
                    row = {"corpus": CORPORA[name], "model": ENCODERS[encoder], "measure": told, "λ": place}
                    rows.append(row | {"mean": found.mean, "low": found.low, "high": found.high})
    x = alt.X("λ:O", sort=order, title="λ of sparsegen (0 is sparsemax)", axis=alt.Axis(labelAngle=-90))
    scale = alt.Scale(domain=list(measures.values()), range=list(CLASS_COLOURS[: len(measures)]))
    colour = alt.Color("measure:N", scale=scale, title=None, legend=alt.Legend(orient="top"))
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=False))
    shared = alt.Chart().encode(x=x, color=colour)
    lines = layers(
        shared.mark_line(strokeWidth=2).encode(y=y).transform_filter("datum.λ != 'softmax'"),  # it has no λ
        shared.mark_rule().encode(y="low:Q", y2="high:Q"),
        shared.mark_point(filled=True, size=30, opacity=1).encode(y=y),
    ).properties(width=230, height=150, data=alt.InlineData(values=rows))
    head = alt.Header(title=None, labelFontSize=12)
    figure = lines.facet(
        column=alt.Column("corpus:N", sort=list(CORPORA.values()), header=head),
        row=alt.Row("model:N", sort=list(ENCODERS.values()), header=head),
    )
    return finish(figure, f"{title}, by projection, for three corpora and two encoders.")
