"""The figures of a report, each by its kind from a record alone; None where the numbers behind it are not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from assay.records import Record
from assay.report import explainer_figures as explainers
from assay.report import model_figures as models
from assay.report import text_figures as texts
from assay.report.canvas import Figure, save, svg
from assay.report.sections import drawings

__all__ = ["KINDS", "VERDICT", "figure", "figures", "names", "save", "svg"]

VERDICT = "verdict"
"""The name of the figure of the verdict, which every record has."""

KINDS: dict[str, Callable[[Record, str, Mapping[str, Any]], Figure | None]] = {
    "dots": explainers.dots,
    "curves": explainers.removals,
    "histogram": texts.histogram,
    "quarters": texts.quarters,
    "boxes": texts.erased,
    "binned": texts.binned,
    "models": models.models,
    "strengths": models.strengths,
    "thresholds": models.thresholds,
    "distances": models.distances,
    "tradeoff": models.tradeoff,
    "layers": models.by_layer,
}
"""Each takes a record, the name of an audit and the options of its drawing."""


def names(record: Record) -> list[str]:
    """The names of the figures that a record may have, that of the verdict first."""
    return [VERDICT, *drawings(record)]


def figure(record: Record, name: str) -> Figure | None:
    """One figure by its name."""
    if name == VERDICT:
        return explainers.verdict(record)
    found = drawings(record).get(name)
    if found is None or found[1].kind not in KINDS:
        return None
    audit, drawing = found
    said = record.conclusions.get(audit)
    return KINDS[drawing.kind](record, audit, {**drawing.options, **(said.drawn.get(name, {}) if said else {})})


def figures(record: Record) -> dict[str, Figure]:
    """All figures that a record has."""
    drawn = {name: figure(record, name) for name in names(record)}
    return {name: each for name, each in drawn.items() if each is not None}
