"""All explainers beside each other: every measure that was run, what is best, what is tied with it, and the cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from assay.metrics.paired import tied
from assay.records import Record
from assay.report.instances import side_by_side
from assay.report.measures import BASELINES, CHANCE, COLUMNS, Measure
from assay.report.writing import listed, number

PLACES = 3


@dataclass(frozen=True)
class Cell:
    """One mean as text; whether it is the best of its column, or not clearly worse than the best."""

    text: str
    best: bool = False
    tied: bool = False


@dataclass(frozen=True)
class Row:
    """One explainer: its mean rank over the measures of faithfulness, its cells, and its cost as text."""

    name: str
    rank: str
    cells: tuple[Cell, ...]
    costs: tuple[str, ...]


@dataclass(frozen=True)
class Leaderboard:
    """Rows in their order, and apart from them what scores without knowledge reach."""

    measures: tuple[Measure, ...]
    costs: tuple[str, ...]
    rows: tuple[Row, ...]
    apart: tuple[Row, ...]
    order: str


def leaderboard(record: Record) -> Leaderboard | None:
    """Explainers by measures, or None where no measure of the leaderboard was run."""
    names = [*record.summary["explainers"], CHANCE]
    found = {(f.audit, f.measure, f.subject): f.mean for f in record.findings if f.group == "all" and f.n > 0}
    measures = tuple(m for m in COLUMNS if any((m.audit, m.name, name) in found for name in names[:-1]))
    if not measures:
        return None
    means = np.array([[found.get((m.audit, m.name, name), np.nan) for m in measures] for name in names])
    means = means.round(PLACES)  # what reads the same counts as the same
    if np.isnan(means[-1]).all():
        names, means = names[:-1], means[:-1]
    columns = [_cells(record, m, names, means[:, place]) for place, m in enumerate(measures)]
    costs = {title: texts for title, texts in _costs(record, names).items() if any(texts)}
    ranks = _ranks(means, measures, names)
    rows = [
        Row(
            name,
            number(ranks[place], 1),
            tuple(column[place] for column in columns),
            tuple(texts[place] or "–" for texts in costs.values()),
        )
        for place, name in enumerate(names)
    ]
    ordered = [rows[place] for place in np.argsort(np.nan_to_num(ranks, nan=np.inf), kind="stable")]
    rivals, apart = (tuple(r for r in ordered if (r.name in BASELINES) is set_apart) for set_apart in (False, True))
    return Leaderboard(measures, tuple(costs), rivals, apart, _told(measures))


def _ranks(means: Float[np.ndarray, "k m"], measures: tuple[Measure, ...], names: list[str]) -> Float[np.ndarray, " k"]:
    """The mean rank of each explainer over the measures of faithfulness that it has; nan for the baselines."""
    rivals = [place for place, name in enumerate(names) if name not in BASELINES]
    faithful = [place for place, measure in enumerate(measures) if measure.faithful]
    signs = np.array([-1 if measure.rises else 1 for measure in measures])
    ranks = np.full(len(names), np.nan)
    if rivals and faithful:
        placed = rankdata((signs * means)[np.ix_(rivals, faithful)], axis=0, nan_policy="omit")
        some = np.isfinite(placed).any(axis=1)
        ranks[np.array(rivals)[some]] = np.nanmean(placed[some], axis=1)
    return ranks


def _cells(record: Record, measure: Measure, names: list[str], means: Float[np.ndarray, " k"]) -> list[Cell]:
    """One column: the best explainers, and all that a model confidence set keeps beside them, baselines too."""
    sign = 1 if measure.rises else -1
    rivals = [place for place, name in enumerate(names) if name not in BASELINES and np.isfinite(means[place])]
    if not rivals:
        return [Cell(number(mean, PLACES)) for mean in means]
    best = max(rivals, key=lambda place: sign * means[place])
    values = sign * side_by_side(record, measure.audit, [f"{measure.name}:{name}" for name in names])
    # only a baseline can be better than the best explainer, and then it is marked too
    level = tied(values, best) | (sign * means > sign * means[best])
    top = [place in rivals and bool(mean == means[best]) for place, mean in enumerate(means)]
    return [
        Cell(number(mean, PLACES), best=top[place], tied=bool(level[place]) and not top[place])
        for place, mean in enumerate(means)
    ]


def _costs(record: Record, names: list[str]) -> dict[str, list[str]]:
    """Passes a text and seconds in all, as text; empty where they are not known."""
    passes, seconds = record.summary.get("explainer_cost") or {}, record.summary.get("explainer_seconds") or {}
    return {
        "forward": [_passes(passes.get(name, {}).get("forward")) for name in names],
        "backward": [_passes(passes.get(name, {}).get("backward")) for name in names],
        "seconds": ["" if name not in seconds else _seconds(seconds[name]) for name in names],
    }


def _passes(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"


def _seconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _told(measures: tuple[Measure, ...]) -> str:
    """By what the rows are ordered, as the end of a sentence."""
    faithful = [measure.title for measure in measures if measure.faithful]
    if not faithful:
        return "in the order of the plan, for no measure of faithfulness was run"
    return f"by the mean rank over {listed(faithful)}"
