"""One section for each audit: its question, the answer in a sentence, figures, a table, how to read them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from assay.records import Record
from assay.report import flips, rankings, stacks
from assay.report.cards import RULES, Card, card, speaks
from assay.report.compared import levels
from assay.report.compared.labels import COMPARING
from assay.report.compared.levels import level_rows
from assay.report.compared.together import FIGURE, together
from assay.report.facts import kind
from assay.report.flips import Flips, flip_tables
from assay.report.grids import Grid
from assay.report.items import items
from assay.report.matrices import Matrix, matrices
from assay.report.measures import MOST
from assay.report.rankings import ranking_rows
from assay.report.tables import agreement_rows, by_class, measure_rows
from assay.report.words import CAPTIONS, FIGURES, LIMITED, READING


@dataclass(frozen=True)
class Section(Card):
    """What a page says about one audit: its card and more; `figures` names plots, `why_not` is set where it is unfit.

    `grid` holds all its numbers, `short` those that are worth a table of their own.
    """

    question: str
    reading: str
    paper: str
    kind: str
    figures: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    flips: tuple[Flips, ...]
    short: Grid | None
    grid: Grid
    why_not: str | None
    remark: str | None
    whole: bool  # whether the numbers of each predicted class stand elsewhere
    rule: str


SHORT = {rankings.AUDIT: ranking_rows, levels.AUDIT: level_rows}
"""Audits with a table of their own that is short enough to be read."""


def sections(record: Record) -> list[Section]:
    """One section for each audit, in the record's order; those without words of their own get a plain one."""
    return [_section(record, name, about) for name, about in record.summary["audits"].items()]


def captions(record: Record) -> dict[str, str]:
    """The caption of each figure; where a figure cannot hold all explainers it says which ones it holds."""
    total, noun = len(record.summary["explainers"]), items(record)
    known = CAPTIONS | (stacks.CAPTIONS if stacks.stacked(record) else {})
    told = {name: noun.named(caption) for name, caption in known.items()}
    if total <= MOST:
        return told
    return told | {
        name: f"{told[name]} Drawn are the {first} {MOST} of {total} explainers; the table below holds all."
        for name, first in LIMITED.items()
    }


def _section(record: Record, name: str, about: dict[str, Any]) -> Section:
    grid = agreement_rows(record) if name == "agreement" else measure_rows(record, name)
    why_not = None if about.get("applies", True) else about.get("why") or "It does not apply to this model."
    readings = READING | (stacks.READINGS if stacks.stacked(record) else {})
    return Section(
        **asdict(card(record, name)),
        question=about.get("question") or "",
        reading=items(record).named(readings.get(name, "")),
        paper=about.get("paper") or "",
        kind=kind(name, about.get("kind") or ""),
        figures=_figures(record, name) if why_not is None else (),
        matrices=tuple(matrices(record, name)),
        flips=tuple(flip_tables(record)) if name == flips.AUDIT else (),
        short=SHORT[name](record) if name in SHORT else None,
        grid=grid,
        why_not=why_not,
        remark=about.get("remark"),
        whole=not by_class(record) or (name in COMPARING and _classed(record, name)),
        rule=" ".join(filter(None, (RULES.get(name), speaks(record, name)))),
    )


def _classed(record: Record, name: str) -> bool:
    return any(f.audit == name and f.group != "all" for f in record.findings)


def _figures(record: Record, name: str) -> tuple[str, ...]:
    """The figures of an audit; what stands in the block of the four tests, or in another section, is not repeated."""
    mine = FIGURES.get(name, ())
    if FIGURE not in mine:
        return mine
    owners = [other for other in record.summary["audits"] if FIGURE in FIGURES.get(other, ())]
    return () if together(record) is not None or owners[-1] != name else mine
