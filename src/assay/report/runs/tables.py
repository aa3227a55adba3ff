"""The comparison as rows: the runs, the explainers in each, what differs, and the groups of seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.records import Record
from assay.report.plain import line
from assay.report.runs.differences import Comparison, Difference, Value
from assay.report.runs.quantities import Quantity
from assay.report.runs.seeds import seed
from assay.report.runs.words import MARKS, behind
from assay.report.verdicts import ranked, standing
from assay.report.writing import count, interval, number, significance
from assay.report.yardsticks import Grade, yardstick

NAMED = 2
"""So many sides are named in a cell; of more their number is."""

COLUMNS = (
    "",
    "noise",
    "explainer",
    "measure",
    "first",
    "second",
    "first − second",
    "95 % interval",
    "p",
    "p, corrected",
    "over",
)
"""The heads above the rows of differences."""


@dataclass(frozen=True)
class RunRow:
    """One run: model, corpus, seed, texts, accuracy, the grade of its headline and the number behind it."""

    name: str
    model: str
    corpus: str
    seed: str
    texts: str
    accuracy: str
    grade: Grade
    effect: str
    group: str


@dataclass(frozen=True)
class Cell:
    """What an explainer reaches in a run; remarks are a mark and words for what exceeds noise."""

    mean: str
    interval: str
    n: str
    grade: Grade | None
    remarks: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Matrix:
    """Explainers in rows and runs in columns, for one quantity; None where a run has no number."""

    quantity: Quantity
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    marked: int


@dataclass(frozen=True)
class Spread:
    """An explainer over the seeds of a group: mean, standard deviation, least and most."""

    subject: str
    mean: str
    spread: str
    least: str
    most: str


def run_rows(comparison: Comparison) -> list[RunRow]:
    """A row for each run."""
    groups = {name: place for place, names in enumerate(comparison.groups, start=1) for name in names}
    return [_run(name, record, groups.get(name)) for name, record in comparison.records.items()]


def matrix(comparison: Comparison, quantity: Quantity) -> Matrix:
    """Values with intervals and grades, and what exceeds noise marked in the cells on both sides."""
    exceeding = [each for each in comparison.exceeding if each.quantity == quantity]
    rows = []
    for subject in comparison.subjects(quantity):
        mine = [each for each in exceeding if each.subject == subject]
        values = [(run, comparison.values.get((quantity, subject, run))) for run in comparison.records]
        rows.append((line(subject), tuple(None if value is None else _cell(value, run, mine) for run, value in values)))
    return Matrix(quantity, tuple(rows), len(exceeding))


def difference_row(each: Difference) -> tuple[str, ...]:
    """A difference as text: mark, state, explainer, measure, both sides, gap, interval, p, adjusted p, basis."""
    return (
        MARKS[each.state],
        each.state,
        line(each.subject),
        each.quantity.title,
        each.first.name,
        each.second.name,
        number(each.contrast.gap),
        interval(each.contrast.low, each.contrast.high),
        significance(each.contrast.p).removeprefix("p = ").removeprefix("p "),
        significance(each.adjusted).removeprefix("p = ").removeprefix("p "),
        behind(each),
    )


def spreads(comparison: Comparison, group: tuple[str, ...]) -> list[Spread]:
    """A row for each explainer of the headline's quantity that all runs of the group have."""
    quantity = comparison.headline
    if quantity is None:
        return []
    rows = []
    for subject in comparison.subjects(quantity):
        found = [comparison.values.get((quantity, subject, run)) for run in group]
        means = np.array([value.mean for value in found if value is not None])
        if len(means) == len(group):
            texts = (means.mean(), means.std(ddof=1), means.min(), means.max())
            rows.append(Spread(line(subject), *(number(float(each)) for each in texts)))
    return rows


def _run(name: str, record: Record, group: int | None) -> RunRow:
    corpus, model = record.summary["corpus"], record.summary.get("model", {})
    trained, planned = seed(record), record.summary.get("plan", {}).get("seed")
    accuracy = (model.get("test") or {}).get("accuracy")
    found = next(iter(ranked(record)), None)
    effect = "–"
    if found is not None:
        numbers = f"{number(found.effect, 2)} ({interval(found.low, found.high, 2)})"
        effect = f"{line(found.name)}: {yardstick(record).symbol} {numbers}"
    return RunRow(
        name,
        line(str(model.get("description") or "–")),
        line(str(corpus["name"])),
        str(planned if trained is None else trained) if (trained, planned) != (None, None) else "–",
        count(record.examples.num_rows),
        number(accuracy),
        standing(record),
        effect,
        "" if group is None else f"group {group}",
    )


def _cell(value: Value, run: str, exceeding: list[Difference]) -> Cell:
    over: list[str] = []
    under: list[str] = []
    for each in exceeding:
        if run in each.first.runs:
            (over if each.contrast.gap > 0 else under).append(each.second.name)
        elif run in each.second.runs:
            (under if each.contrast.gap > 0 else over).append(each.first.name)
    told = [("▲", f"above {_names(over)}")] * bool(over) + [("▼", f"below {_names(under)}")] * bool(under)
    ends = interval(value.low, value.high)
    return Cell(number(value.mean), ends, count(value.n), value.grade, tuple(told))


def _names(names: list[str]) -> str:
    return " and ".join(names) if len(names) <= NAMED else f"{len(names)} others"
