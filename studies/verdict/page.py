"""The tables of README.md and the figure of the measures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from assay.report.canvas import INK, Figure, Rows, finish, layers, save, sheet
from studies.pages import put
from studies.verdict.fitting import counts
from studies.verdict.measured import READS, Told, combined, rivals, told
from studies.verdict.rule import FOUND, Judged, auroc, held_out, judged
from studies.verdict.shipped import of_explainers, of_texts, shipped

HERE = Path(__file__).parent
TITLES = {
    "tau": "Kendall's τ with leave-one-out",
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency ↓",
    "log_odds": "log-odds",
    "flip": "words until the decision flips ↓",
    "morf": "MoRF ↓",
    "lerf": "LeRF",
    "comprehensiveness_gain": "comprehensiveness over chance",
    "sufficiency_gain": "sufficiency over chance",
    "flip_gain": "words until the flip, over chance",
    "morf_gain": "MoRF over chance",
    "weighted_tau": "weighted τ with leave-several-out",
    "rbo": "rank-biased overlap with leave-several-out",
    "soft_sufficiency": "soft sufficiency",
    "soft_comprehensiveness": "soft comprehensiveness",
    "pi_soft_sufficiency": "soft sufficiency, π-corrected",
    "pi_soft_comprehensiveness": "soft comprehensiveness, π-corrected",
    "ffid_plus": "F-Fidelity, FFid+",
    "ffid_minus": "F-Fidelity, FFid− ↓",
    "ffid": "F-Fidelity",
    "sufficient": "sufficient (resampled)",
    "necessary": "necessary (resampled)",
    "economy": "economy (resampled)",
    "economy alone": "economy, words of the vocabulary",
}


def write(explainers: pa.Table, texts: pa.Table) -> None:
    """Writes all tables and the figure."""
    measures = told(explainers)
    put(HERE / "README.md", bank(explainers), "bank")
    put(HERE / "README.md", rule(explainers, texts), "rule")
    put(HERE / "README.md", measured(measures), "measures")
    put(HERE / "README.md", combinations(combined(explainers)), "combinations")
    (HERE / "figures").mkdir(exist_ok=True)
    save(figure(measures), HERE / "figures" / "measures.svg")


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([f"| {' | '.join(row)} |" for row in (head, ["---", *["--:"] * (len(head) - 1)], *rows)]) + "\n"


def bank(explainers: pa.Table) -> str:
    """The families: their models, those that count, their texts, and how many of their explainers find the words."""
    kept = set(counts(explainers)["cell"].to_pylist())
    every: dict[str, dict[str, dict[str, Any]]] = {}
    for row in explainers.to_pylist():
        every.setdefault(row["family"], {})[row["cell"]] = row
    found = rivals(explainers)
    family = np.array(found["family"].to_pylist())
    rows = []
    for name, cells in every.items():
        own = [row for cell, row in cells.items() if cell in kept]
        precision = found["precision"].to_numpy()[family == name]
        texts, verified = (sum(row[key] for row in own) for key in ("texts", "verified"))
        share = f"{(precision >= FOUND).mean():.2f}" if len(precision) else "–"
        corpora = ", ".join(sorted({row["corpus"].rpartition("/")[2] for row in own}))
        rows.append(
            [
                name,
                corpora,
                f"{len(cells)}",
                f"{len(own)}",
                f"{verified / max(texts, 1):.2f}",
                f"{len(precision)}",
                share,
            ]
        )
    sums = [sum(int(row[place]) for row in rows) for place in (2, 3, 5)]
    rows.append(["**all**", "", f"{sums[0]}", f"{sums[1]}", "", f"{sums[2]}", ""])
    head = ["family", "corpora", "models", "that count", "texts verified", "explainers", "that find the words"]
    return lines(head, rows)


def rule(explainers: pa.Table, texts: pa.Table) -> str:
    """The figures of the rule with each family left out, then those of each family."""
    cases = of_explainers(counts(explainers))
    sure, grades = held_out(cases)
    rows = []
    for name in cases.families:
        own = cases.family == name
        found, given = cases.found[own], grades[own]
        passed, failed = given == "pass", given == "fail"
        rows.append(
            [
                name,
                f"{own.sum()}",
                f"{found.sum()}",
                _number(auroc(sure[own], found)),
                f"{(passed & ~found).sum()} of {passed.sum()}",
                f"{(failed & found).sum()} of {found.sum()}",
                f"{(given == 'warn').sum()}",
            ]
        )
    head = ["family left out", "explainers", "finders", "AUROC", "wrong passes", "finders that fail", "warnings"]
    table, known = shipped(explainers, texts), "explainer"
    whole = {
        "an explainer, by its economy": judged(sure, grades, cases),
        "one text, by its economy and the explainer's mean": _of(texts, ("economy", "mean")),
        "one text by itself, with words of the vocabulary": _of(texts, ("economy alone",)),
    }
    start, slope = table[known]["coefficients"]
    limits = (
        f"Probability = 1 / (1 + exp({-start:.2f} − {slope:.2f} × economy)); passes from {table[known]['passes']:.2f}, "
        f"fails below {table[known]['fails']:.2f}.\n"
    )
    return "\n".join([limits, judgements(whole), lines(head, rows)])


def _of(texts: pa.Table, measures: tuple[str, ...]) -> Judged:
    cases = of_texts(texts, measures)
    return judged(*held_out(cases), cases)


def judgements(found: dict[str, Judged]) -> str:
    head = ["", "AUROC", "passes that are wrong", "finders that fail", "warnings", "passes", "calibration error"]
    numbers = [
        (name, each.auroc, each.wrong, each.failed, each.warned, each.passed, each.calibration)
        for name, each in found.items()
    ]
    return lines(head, [[name, *(_number(value) for value in values)] for name, *values in numbers])


def measured(measures: Sequence[Told]) -> str:
    families = sorted({name for each in measures for name in each.families})
    shown = [name for name in families if any(np.isfinite(each.families.get(name, np.nan)) for each in measures)]
    head = ["measure", "reads", "all", "Spearman", *shown]
    rows = [
        [
            TITLES[each.name],
            READS[each.name],
            f"**{_number(each.whole, 2)}**",
            _number(each.spearman, 2),
            *(_number(each.families.get(name, np.nan), 2) for name in shown),
        ]
        for each in measures
    ]
    return lines(head, rows)


def combinations(found: dict[str, Judged]) -> str:
    return judgements(found)


def _number(value: float, places: int = 3) -> str:
    return f"{value:.{places}f}".replace("0.", ".", 1) if np.isfinite(value) else "–"


def figure(measures: Sequence[Told]) -> Figure:
    """The AUROC of each measure: a dot for each family, and a line at that over all."""
    rows: Rows = [
        {"measure": TITLES[each.name].removesuffix(" ↓"), "family": name, "auroc": value}
        for each in measures
        for name, value in each.families.items()
        if np.isfinite(value)
    ]
    whole: Rows = [{"measure": TITLES[each.name].removesuffix(" ↓"), "auroc": each.whole} for each in measures]
    order = [row["measure"] for row in whole]
    y = alt.Y("measure:N", sort=order, title=None, axis=alt.Axis(labelLimit=330, grid=False))
    x = alt.X(
        "auroc:Q",
        scale=alt.Scale(domain=(0, 1)),
        title="AUROC: 1 tells all explainers that find the words from the others, 0.5 is chance",
    )
    dots = sheet(rows).mark_point(filled=True, size=45, opacity=0.45, color="#8b68c8").encode(x=x, y=y)
    ticks = sheet(whole).mark_tick(thickness=3, size=15, color=INK).encode(x=x, y=y)
    chance = sheet([{"x": 0.5}]).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    described = ", ".join(f"{row['measure']} {row['auroc']:.2f}" for row in whole)
    drawn = layers(chance, dots, ticks).properties(width=420, height=alt.Step(20))
    return finish(drawn, f"AUROC of each measure over all families: {described}.")
