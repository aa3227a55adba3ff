"""How alike every two explainers are, or how often one ranking beats another, as squares of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from assay.records import Record
from assay.report import rankings
from assay.report.heatmaps import LEVELS
from assay.report.items import items
from assay.report.known import known
from assay.writing import number

ROOM = 12  # up to this many explainers a cell has room for a whole number


@dataclass(frozen=True)
class Kind:
    """One way of comparing two: where its numbers stand, what they mean, and what is compared."""

    audit: str
    measure: str
    title: str
    reading: str
    of: str = "explainers"


KINDS = (
    Kind("agreement", "tau", "Kendall τ", "1 the same ranking of the words, 0 unrelated, below 0 reversed"),
    Kind(
        "consistency", "overlap", "Overlap of the top words", "the share of the highest words that two have in common"
    ),
    Kind(
        "consistency",
        "sign",
        "Same sign",
        "the share of words that both call a reason for, or both against, the class; scores without signs are left out",
    ),
)
WINS = Kind(
    rankings.AUDIT,
    "wins",
    "Fewer erasures",
    "the share of texts in which the ranking of the row changes the decision with fewer {items} than that of the "
    "column; what is missing to 1 between a pair are ties",
    "rankings",
)


@dataclass(frozen=True)
class Cell:
    """One pair: its number, how dark it is drawn from -8 to 8, and both names with the number."""

    text: str
    level: int
    title: str


@dataclass(frozen=True)
class Matrix:
    """One square for a page; `roomy` says whether a cell holds a whole number or its hundredths."""

    kind: Kind
    names: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    roomy: bool


def matrices(record: Record, audit: str) -> list[Matrix]:
    """The squares of one audit, all in the same order."""
    if audit == WINS.audit:
        return _contest(record)
    found = [(kind, values) for kind in KINDS if kind.audit == audit and (values := square(record, kind)) is not None]
    if not found:
        return []
    names = [*record.summary["explainers"]]
    order = _order(record, found[0][1])
    return [_drawn(kind, names, values, _some(values, order)) for kind, values in found]


def square(record: Record, kind: Kind) -> Float[np.ndarray, "k k"] | None:
    """The mean of each pair of explainers, nan where there is none; None where no pair has a number."""
    places = {name: place for place, name in enumerate(record.summary["explainers"])}
    values = np.full((len(places), len(places)), np.nan)
    for finding in record.findings:
        if (finding.audit, finding.measure, finding.group) == (kind.audit, kind.measure, "all"):
            one, _, other = finding.subject.partition("~")
            if one in places and other in places:
                values[places[one], places[other]] = values[places[other], places[one]] = finding.mean
    if np.isnan(values).all():
        return None
    np.fill_diagonal(values, 1)
    return values


def _order(record: Record, values: Float[np.ndarray, "k k"]) -> Int[np.ndarray, " k"]:
    """Explainers so that those with like rankings stand together: average linkage over 1 - τ, Sokal (1958)."""
    ranked = square(record, KINDS[0])
    alike = values if ranked is None else ranked
    if len(alike) < 3:
        return np.arange(len(alike))
    apart = np.clip(1 - np.nan_to_num(alike), 0, None)
    return np.asarray(leaves_list(linkage(squareform(apart, checks=False), "average", optimal_ordering=True)), int)


def _contest(record: Record) -> list[Matrix]:
    """The square of wins, those of the row over those of the column, in the order of the rankings."""
    names = list(rankings.RANKINGS)
    pairs = [[known(record, WINS.audit, WINS.measure, f"{one}~{other}") for other in names] for one in names]
    values = np.array([[np.nan if found is None else found.mean for found in row] for row in pairs])
    places = [place for place in range(len(names)) if np.isfinite(values[place]).any()]
    kind = replace(WINS, reading=items(record).named(WINS.reading))
    return [_drawn(kind, list(rankings.RANKINGS.values()), values, places)] if places else []


def _some(values: Float[np.ndarray, "k k"], order: Int[np.ndarray, " k"]) -> list[int]:
    """The places, in this order, of those that have a number with another one; not all scores have signs."""
    numbers = np.isfinite(values).sum(axis=1) > 1
    return [int(place) for place in order if numbers[place]]


def _drawn(kind: Kind, names: Sequence[str], values: Float[np.ndarray, "k k"], places: Sequence[int]) -> Matrix:
    roomy = len(places) <= ROOM
    rows = [
        tuple(_cell(f"{names[one]} ~ {names[other]}", values[one, other], one == other, roomy) for other in places)
        for one in places
    ]
    return Matrix(kind, tuple(names[place] for place in places), tuple(rows), roomy)


def _cell(pair: str, value: float, itself: bool, roomy: bool) -> Cell:
    if itself or np.isnan(value):
        return Cell("" if itself else "–", 0, "")
    text = number(value, 2) if roomy else f"{round(100 * value)}".replace("-", "−")
    return Cell(text, round(float(np.clip(value, -1, 1)) * LEVELS), "" if roomy else f"{pair}: {number(value, 2)}")
