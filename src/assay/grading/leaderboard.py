"""All explainers beside each other: verdict, every measure that was run, what is best or tied with it, and the cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from assay.grading.grade import GRADED, Verdict, known_reasons, verdicts
from assay.lookup import BASELINES, side_by_side
from assay.metrics.comparisons import tied
from assay.records import CHANCE, Record
from assay.stories import Measure
from assay.writing import listed, number

PLACES = 3
ARROWS = {True: "↑", False: "↓"}


@dataclass(frozen=True)
class Column:
    """A measure of an audit as a column; `faithful` ones ask what the model used, and decide the order of rows."""

    audit: str
    measure: Measure

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def head(self) -> str:
        return self.measure.column

    @property
    def short(self) -> str:
        return self.measure.short or self.measure.column

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return self.head.replace("\u00ad", "")

    @property
    def rises(self) -> bool:
        return self.measure.better == "high"

    @property
    def arrow(self) -> str:
        return ARROWS[self.rises]

    @property
    def meaning(self) -> str:
        return self.measure.help

    @property
    def faithful(self) -> bool:
        return self.measure.faithful


def columns(record: Record) -> list[Column]:
    """The columns that the audits of a record have, in the order of a table; a terminal shows the first that fit."""
    every = (Column(name, each) for name, story in record.stories.items() for each in story.measures if each.column)
    return sorted(every, key=lambda column: column.measure.place)


@dataclass(frozen=True)
class Cell:
    """One mean as text; whether it is the best of its column, or not clearly worse than the best."""

    text: str
    best: bool = False
    tied: bool = False


@dataclass(frozen=True)
class Row:
    """One explainer: grade and number of the verdict, mean rank over measures of faithfulness, cells, cost as text."""

    name: str
    verdict: str
    rank: str
    cells: tuple[Cell, ...]
    costs: tuple[str, ...]


@dataclass(frozen=True)
class Leaderboard:
    """Rows in their order, and apart from them what scores without knowledge reach.

    `notes` say why a column and a grade contradict each other.
    """

    measures: tuple[Column, ...]
    costs: tuple[str, ...]
    rows: tuple[Row, ...]
    apart: tuple[Row, ...]
    order: str
    notes: tuple[str, ...]


def leaderboard(record: Record) -> Leaderboard | None:
    """Explainers by measures, or None where no measure of the leaderboard was run."""
    names = [*record.summary["explainers"], CHANCE]
    found = {(f.audit, f.measure, f.subject): f.mean for f in record.findings if f.group == "all" and f.n > 0}
    measures = tuple(m for m in columns(record) if any((m.audit, m.name, name) in found for name in names[:-1]))
    if not measures:
        return None
    means = np.array([[found.get((m.audit, m.name, name), np.nan) for m in measures] for name in names])
    means = means.round(PLACES)  # what reads the same counts as the same
    if np.isnan(means[-1]).all():
        names, means = names[:-1], means[:-1]
    filled = [_cells(record, m, names, means[:, place]) for place, m in enumerate(measures)]
    costs = {title: texts for title, texts in _costs(record, names).items() if any(texts)}
    ranks = _ranks(means, measures, names)
    given = {v.name: v for v in verdicts(record)}
    rows = [
        Row(
            name,
            _verdict(given.get(name)),
            number(ranks[place], 1),
            tuple(column[place] for column in filled),
            tuple(texts[place] or "–" for texts in costs.values()),
        )
        for place, name in enumerate(names)
    ]
    effects = [(v.effect if (v := given.get(name)) else None) for name in names]
    first = np.array([np.inf if effect is None else -effect for effect in effects])
    ordered = [rows[place] for place in np.lexsort((np.nan_to_num(ranks, nan=np.inf), first))]
    rivals, apart = (tuple(r for r in ordered if (r.name in BASELINES) is set_apart) for set_apart in (False, True))
    judged = bool(np.isfinite(first).any())
    return Leaderboard(
        measures, tuple(costs), rivals, apart, _told(measures, judged), tuple(_contradictions(rivals, measures, given))
    )


def _verdict(given: Verdict | None) -> str:
    """The grade with its number, or nothing where there is none."""
    if given is None or given.grade not in GRADED:
        return "–"
    return f"{given.grade} {number(given.effect, 2)}"


def _contradictions(rows: Iterable[Row], measures: Iterable[Column], given: Mapping[str, Verdict]) -> Iterator[str]:
    """A sentence on each explainer that is best by a measure of faithfulness and fails."""
    alone = known_reasons()["measures"]
    best: dict[str, list[Column]] = {}
    for place, measure in enumerate(measures):
        for row in rows:
            if measure.faithful and row.cells[place].best and given[row.name].grade == "fail":
                best.setdefault(row.name, []).append(measure)
    for name, leading in best.items():
        told = [f"{m.title} (AUROC {number(alone[m.name], 2)})" if m.name in alone else m.title for m in leading]
        yield (
            f"{name} is best by {listed(told)} and fails: no such measure alone tells the explainers that find the "
            "words that decide from the others as surely as the verdict does."
        )


def _ranks(means: Float[np.ndarray, "k m"], measures: tuple[Column, ...], names: list[str]) -> Float[np.ndarray, " k"]:
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


def _cells(record: Record, measure: Column, names: list[str], means: Float[np.ndarray, " k"]) -> list[Cell]:
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


def _told(measures: tuple[Column, ...], judged: bool) -> str:
    """By what the rows are ordered, as the end of a sentence."""
    faithful = [measure.title for measure in measures if measure.faithful]
    if not faithful and not judged:
        return "in the order of the plan, for no measure of faithfulness was run"
    ways = ["the number of the verdict"] if judged else []
    ways += [f"the mean rank over {listed(faithful)}"] if faithful else []
    return f"by {', then by '.join(ways)}"
