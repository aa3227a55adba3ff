"""Figures of models as points: how far attention went against what it cost."""

from __future__ import annotations

from typing import Any

import altair as alt

from assay.records import Record
from assay.report.canvas import CLASS_COLOURS, INK, Figure, Rows, finish, known, layers, sheet
from assay.report.compared.found import named, subjects
from assay.report.compared.four import cloud
from assay.report.compared.hidden import AUDIT, WITHOUT
from assay.writing import number, percent

WIDTH, HEIGHT = 280, 220
APART = 26
"""Names closer to each other than so many pixels cannot be read; the later ones are left out."""

ADVERSARY, SEED = "trained adversary, by λ", "other seeds (null)"


def divergence(record: Record) -> Figure | None:
    """Change of the predictions against that of attention: the adversary's path, and the seeds as its null.

    Wiegreffe and Pinter (2019), figure 5: the audited model is the origin.
    """
    jsd, tvd = (named(record, "trained_adversary", measure, "λ=") for measure in ("jsd", "tvd"))
    path: Rows = [
        {"x": tvd[name].mean, "y": jsd[name].mean, "low": jsd[name].low, "high": jsd[name].high}
        | {"label": name, "place": place, "kind": ADVERSARY}
        for place, name in enumerate(jsd)
        if name in tvd
    ]
    null = cloud(record)
    seeds: Rows = (
        []
        if null is None
        else [{"x": null.tvd[n].mean, "y": f.mean, "label": n, "kind": SEED} for n, f in null.jsd.items()]
    )
    if not path and not seeds:
        return None
    widest = max(row["x"] for row in path + seeds) or 1e-3
    highest = max(known(row[key] for row in path + seeds for key in ("high", "y") if key in row)) or 1e-3
    x = alt.X("x:Q", title="change of the predictions (TVD)", axis=_axis(), scale=alt.Scale(domain=(0, 1.12 * widest)))
    y = alt.Y("y:Q", title="distance of attention (JSD)", scale=alt.Scale(domain=(0, 1.1 * highest)))
    labelled = _spaced(path, widest, highest)
    charts = [*_path(path, labelled, _colours(path, seeds)), *_seeds(seeds, _colours(path, seeds)), _base()]
    figure = layers(*(chart.encode(x=x, y=y) for chart in charts)).properties(width=WIDTH, height=HEIGHT)
    told = ", ".join(f"{row['label']} TVD {number(row['x'], 3)} JSD {number(row['y'], 2)}" for row in path + seeds)
    return finish(figure, f"Distance of attention against change of the predictions: {told}; the audited model 0, 0.")


def deception(record: Record) -> Figure | None:
    """Accuracy against the attention that is left on the avoided words, a point for each λ, and the model without."""
    mass, right = (named(record, AUDIT, measure, "λ=") for measure in ("mass", "right"))
    rows: Rows = [
        {"x": mass[name].mean, "y": right[name].mean, "low": right[name].low, "high": right[name].high}
        | {"label": name, "place": place, "kind": ADVERSARY}
        for place, name in enumerate(mass)
        if name in right
    ]
    if not rows:
        return None
    without = subjects(record, AUDIT, "right").get(WITHOUT)
    lines: Rows = [] if without is None else [{"y": without.mean, "label": "without these words"}]
    ys = known(row[key] for row in rows + lines for key in ("low", "y", "high") if key in row)
    widest, span = max(row["x"] for row in rows) or 1e-3, max(ys) - min(ys) or 0.1
    x = alt.X("x:Q", title="attention on the avoided words", axis=_axis("~%"), scale=_from(widest))
    bounds = alt.Scale(domain=(min(ys) - 0.08 * span, max(ys) + 0.08 * span), nice=False)
    y = alt.Y("y:Q", title="texts on which it is right", axis=alt.Axis(format="~%", tickCount=5), scale=bounds)
    charts = [chart.encode(x=x, y=y) for chart in _path(rows, _spaced(rows, widest, span), alt.value(CLASS_COLOURS[0]))]
    ruled = sheet(lines).encode(y=y) if lines else None
    control = [] if ruled is None else [ruled.mark_rule(color=INK, strokeDash=[4, 3]), _word(ruled)]
    figure = layers(*control, *charts).properties(width=WIDTH, height=HEIGHT)
    told = ", ".join(f"{row['label']} {percent(row['x'])} and {percent(row['y'])}" for row in rows)
    ending = "" if without is None else f"; without these words {percent(without.mean)}"
    return finish(figure, f"Attention on the avoided words, and accuracy: {told}{ending}.")


def _axis(format_: str = "") -> alt.Axis:
    """Few numbers, each below its line."""
    return alt.Axis(format=format_, tickCount=5, labelFlush=False)


def _from(widest: float) -> alt.Scale:
    return alt.Scale(domain=(0, 1.12 * widest))


def _spaced(rows: Rows, width: float, height: float) -> Rows:
    """The rows whose names can be read, from the last one on, for the strongest λ says most."""
    chosen: Rows = []
    for row in reversed(rows):
        far = [
            abs(row["x"] - other["x"]) / width * WIDTH > 2 * APART
            or abs(row["y"] - other["y"]) / height * HEIGHT > APART / 2
            for other in chosen
        ]
        chosen += [row] if all(far) else []
    return chosen[::-1]


def _path(rows: Rows, labelled: Rows, colour: Any) -> list[alt.Chart]:
    """Points in the order of λ, joined by a line, with bars for the intervals and names beside them."""
    if not rows:
        return []
    shared, words = sheet(rows).encode(color=colour), sheet(labelled)
    return [
        shared.mark_line(strokeWidth=1.5, opacity=0.6).encode(order="place:Q"),
        sheet([row | {"y": row["low"]} for row in rows])
        .mark_rule(strokeWidth=3, opacity=0.35)
        .encode(y2="high:Q", color=colour),
        shared.mark_point(filled=True, size=70, opacity=1),
        words.mark_text(align="left", dx=5, dy=-12, fontSize=11, color=INK).encode(text="label:N"),
    ]


def _seeds(rows: Rows, colour: alt.Color) -> list[alt.Chart]:
    return (
        [sheet(rows).mark_point(filled=True, shape="diamond", size=60, opacity=0.85).encode(color=colour)]
        if rows
        else []
    )


def _base() -> alt.Chart:
    chart: alt.Chart = sheet([{"x": 0, "y": 0}]).mark_point(shape="cross", size=90, color=INK, filled=True, opacity=1)
    return chart


def _colours(path: Rows, seeds: Rows) -> alt.Color:
    kinds = [kind for kind, rows in ((ADVERSARY, path), (SEED, seeds)) if rows]
    colours = {ADVERSARY: CLASS_COLOURS[0], SEED: CLASS_COLOURS[1]}
    scale = alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds])
    return alt.Color("kind:N", scale=scale, legend=alt.Legend(columns=1))


def _word(ruled: alt.Chart) -> alt.Chart:
    encoded: alt.Chart = ruled.mark_text(align="right", baseline="bottom", dy=-4, fontSize=11, color=INK).encode(
        x=alt.value(WIDTH), text="label:N"
    )
    return encoded
