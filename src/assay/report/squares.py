"""Squares of numbers: how alike every two explainers are, how often one ranking beats another, decision flips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from assay.lookup import items, known
from assay.records import Record
from assay.report.heatmaps import LEVELS
from assay.stories import Drawing
from assay.writing import count, number, percent

ROOM = 12  # up to this many explainers a cell has room for a whole number
CELLS = ("both", "top_only", "other_only", "neither")
"""The measures of a table of decision flips."""


@dataclass(frozen=True)
class Kind:
    """One way of comparing two: what its numbers are called, what they mean, and what is compared."""

    title: str
    reading: str
    of: str = "explainers"


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
    story = record.stories.get(audit)
    every = [] if story is None else [each for each in story.drawings if each.kind == "matrix"]
    contests = [each for each in every if each.options.get("directed")]
    alike = [(each, square(record, audit, each.options["measure"])) for each in every if each not in contests]
    found = [(_kind(record, each), values) for each, values in alike if values is not None]
    order = _order(record, every[0], found[0][1]) if found else np.empty(0, int)
    names = [*record.summary["explainers"]]
    squares = [_drawn(kind, names, values, _some(values, order)) for kind, values in found]
    return squares + [drawn for each in contests if (drawn := _contest(record, audit, each)) is not None]


def _kind(record: Record, drawing: Drawing) -> Kind:
    options = drawing.options
    return Kind(options["title"], items(record).named(options["reading"]), options.get("of", "explainers"))


def square(record: Record, audit: str, measure: str) -> Float[np.ndarray, "k k"] | None:
    """The mean of each pair of explainers, nan where there is none; None where no pair has a number."""
    places = {name: place for place, name in enumerate(record.summary["explainers"])}
    values = np.full((len(places), len(places)), np.nan)
    for finding in record.findings:
        if (finding.audit, finding.measure, finding.group) == (audit, measure, "all"):
            one, _, other = finding.subject.partition("~")
            if one in places and other in places:
                values[places[one], places[other]] = values[places[other], places[one]] = finding.mean
    if np.isnan(values).all():
        return None
    np.fill_diagonal(values, 1)
    return values


def _order(record: Record, drawing: Drawing, values: Float[np.ndarray, "k k"]) -> Int[np.ndarray, " k"]:
    """Explainers so that those with like rankings stand together: average linkage over 1 - τ, Sokal (1958)."""
    ranked = square(record, *drawing.options["order"])
    alike = values if ranked is None else ranked
    if len(alike) < 3:
        return np.arange(len(alike))
    apart = np.clip(1 - np.nan_to_num(alike), 0, None)
    return np.asarray(leaves_list(linkage(squareform(apart, checks=False), "average", optimal_ordering=True)), int)


def _contest(record: Record, audit: str, drawing: Drawing) -> Matrix | None:
    """The square of wins, those of the row over those of the column, in the order of the rankings."""
    called, measure = drawing.options["called"], drawing.options["measure"]
    pairs = [[known(record, audit, measure, f"{one}~{other}") for other in called] for one in called]
    values = np.array([[np.nan if found is None else found.mean for found in row] for row in pairs])
    places = [place for place in range(len(called)) if np.isfinite(values[place]).any()]
    return _drawn(_kind(record, drawing), list(called.values()), values, places) if places else None


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


@dataclass(frozen=True)
class Flips:
    """One table of Serrano and Smith (2019), table 2: shares of texts as text, by what changes the decision."""

    top: str
    other: str
    n: str
    both: str
    top_only: str
    other_only: str
    neither: str


def flip_tables(record: Record, audit: str) -> list[Flips]:
    """A table of decision flips for each way of choosing the item on top; none where there are no numbers."""
    noun = items(record)
    story = record.stories.get(audit)
    tops = [each.options["tops"] for each in story.drawings if each.kind == "flips"] if story else []
    tables = []
    for subject, top in (pair for each in tops for pair in each.items()):
        found = [each for cell in CELLS if (each := known(record, audit, cell, subject)) is not None]
        if len(found) == len(CELLS):
            shares = [percent(each.mean) for each in found]
            tables.append(Flips(noun.named(top), noun.named("a random other {item}"), count(found[0].n), *shares))
    return tables
