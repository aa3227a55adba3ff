"""Tables of an audit's page: each explainer's own numbers, agreement, flips, and squares of every two explainers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from assay.lookup import items, known
from assay.records import Finding, Record
from assay.report.heatmaps import LEVELS
from assay.stories import Drawing, Grid, Story
from assay.writing import count, figures, interval, number, percent, significance

# The numbers of an audit as rows of text, the same for the terminal and the page.


TIE = "≈"
OWN = "explainers"  # stands in the place of an audit before what explainers say of themselves
MANY = 12
"""From more explainers or more classes than this on, tables leave out the predicted classes."""


def agreement_rows(record: Record, audit: str) -> Grid:
    """A row for each pair and predicted class, as in Table 2 of Jain and Wallace (2019), with interval, n."""
    found = _told(record, audit)
    rows = [(f.subject.replace("~", " ~ "), f.group, *_spread(f), number(f.significant), *_size(f)) for f in found]
    columns = ("pair", "predicted class", "mean ± std", "significant", "95 % interval", "n", "undefined")
    return Grid(columns, tuple(rows))


def measure_rows(record: Record, audit: str) -> Grid:
    """A row for each subject, measure and predicted class of an audit; those of models are over all texts."""
    found, story = _told(record, audit), record.stories.get(audit, Story())
    tested, models = any(f.p_value is not None for f in found), story.subjects == "model"
    rows = []
    for f in found:
        measure = story.measure(f.measure)
        rows.append(
            (
                measure.about or f.subject.replace("~", " ~ "),
                measure.label,
                *(() if models else (f.group,)),
                *_spread(f),
                *_size(f),
                *((significance(f.p_value) or "–",) if tested else ()),
                kind(story, f.kind),
            )
        )
    tests = ("paired test",) if tested else ()
    first = (story.subjects, "measure", *(() if models else ("predicted class",)))
    numbers = ("mean ± std", "95 % interval", "n", "undefined")
    return Grid((*first, *numbers, *tests, "kind"), tuple(rows), first_number=len(first))


def kind(story: Story, given: str) -> str:
    """How far the numbers of an audit can be trusted; records of earlier versions lack two kinds."""
    return story.kinds.get(given, given)


def own_rows(record: Record) -> Grid:
    """What explainers say of their own scores: a row for each and for each of its numbers."""
    found = [f for f in record.findings if f.audit == OWN and f.group == "all"]
    stories = record.summary.get("stories") or {}
    rows = [
        (
            f.subject,
            Story.of(stories.get(f.subject)).measure(f.measure).label,
            figures(f.mean),
            f"{figures(f.low)} to {figures(f.high)}",
            count(f.n),
        )
        for f in found
    ]
    return Grid(("explainer", "number", "mean", "95 % interval", "n"), tuple(rows))


def by_class(record: Record, audit: str = "") -> bool:
    """Whether tables tell the predicted classes apart; with many of them, or many explainers, a page would be large.

    Those of audits that compare models do not: there may be many models.
    """
    return (audit not in record.stories or record.stories[audit].subjects != "model") and max(
        len(record.summary["explainers"]), len(record.summary["corpus"]["classes"])
    ) <= MANY


def _told(record: Record, audit: str) -> list[Finding]:
    """The audit's findings, those over all texts, and those of each predicted class where there is room."""
    told, story = by_class(record, audit), record.stories.get(audit, Story())
    hidden = {measure.name for measure in story.measures if measure.hidden}
    return [f for f in record.findings if f.audit == audit and f.measure not in hidden and (f.group == "all" or told)]


def _spread(finding: Finding) -> tuple[str]:
    return (f"{number(finding.mean)} ± {number(finding.std)}",)


def _size(finding: Finding) -> tuple[str, str, str]:
    return interval(finding.low, finding.high), count(finding.n), count(finding.undefined)


# Squares of numbers: how alike every two explainers are, how often one ranking beats another, decision flips.


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
