"""The tables of a report as plain data: a title, column heads, rows of text, and how dark cells are."""

from __future__ import annotations

from typing import Any

from assay.grading.leaderboard import Leaderboard, Row
from assay.records import Record
from assay.report.sections import Section
from assay.report.squares import Flips, Matrix
from assay.report.tables import TIE
from assay.stories import Grid

GROUPED = "predicted class"
"""The column by which numbers over all texts can be told from those of one class."""

WHOLE = "all"


def gridded(grid: Grid, title: str = "") -> dict[str, Any]:
    """A grid as it is; columns from `first_number` on hold numbers."""
    return {
        "title": title,
        "columns": list(grid.columns),
        "rows": [list(row) for row in grid.rows],
        "first_number": grid.first_number,
    }


def section_tables(section: Section) -> list[dict[str, Any]]:
    """What is worth reading at once: flips, the short table, the squares."""
    short = [] if section.short is None else [gridded(section.short)]
    return [*map(_flipped, section.flips), *short, *map(_squared, section.matrices)]


def over_all(table: dict[str, Any]) -> dict[str, Any]:
    """The table without the rows of single classes, and without their column."""
    if GROUPED not in table["columns"]:
        return table
    place = table["columns"].index(GROUPED)
    kept = [row for row in table["rows"] if row[place] == WHOLE]
    return table | {
        "columns": _without(table["columns"], place),
        "rows": [_without(row, place) for row in kept],
        "first_number": table["first_number"] - (place < table["first_number"]),
    }


def board_table(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard as rows of text; `best` are the places of the best cells of each row."""
    rows = [*board.rows, *board.apart]
    heads = [f"{measure.title} {measure.arrow}" for measure in board.measures]
    return {
        "title": "",
        "columns": ["explainer", "verdict", "mean rank", *heads, *board.costs],
        "rows": [[row.name, row.verdict, row.rank, *map(_cell_text, row.cells), *row.costs] for row in rows],
        "first_number": 1,
        "best": [[place for place, cell in enumerate(row.cells, start=3) if cell.best] for row in rows],
        "apart": len(board.rows),
    }


def board_data(record: Record, board: Leaderboard) -> dict[str, Any]:
    """The leaderboard as numbers: every mean with its interval, whether it is best or tied with the best."""
    found = {(f.audit, f.measure, f.subject): f for f in record.findings if f.group == WHOLE}

    def told(row: Row) -> dict[str, Any]:
        cells = []
        for measure, cell in zip(board.measures, row.cells, strict=True):
            finding = found.get((measure.audit, measure.name, row.name))
            numbers = (finding.mean, finding.low, finding.high, finding.n) if finding else (None, None, None, 0)
            marks = {"best": cell.best, "tied": cell.tied}
            cells.append(dict(zip(("mean", "low", "high", "n"), numbers, strict=True)) | marks)
        rank = None if row.rank == "–" else float(row.rank)
        return {"explainer": row.name, "verdict": row.verdict, "mean_rank": rank, "cells": cells}

    return {
        "order": board.order,
        "notes": list(board.notes),
        "measures": [
            {
                "audit": measure.audit,
                "measure": measure.name,
                "title": measure.title,
                "more_is_better": measure.rises,
                "counts_in_rank": measure.faithful,
                "meaning": measure.meaning,
            }
            for measure in board.measures
        ],
        "rows": [told(row) for row in board.rows],
        "baselines": [told(row) for row in board.apart],
    }


def _cell_text(cell: Any) -> str:
    return f"{cell.text} {TIE}" if cell.tied else str(cell.text)


def _flipped(flips: Flips) -> dict[str, Any]:
    title = f"Erased alone, which changes the decision: {flips.top}, or {flips.other}? Share of texts, n = {flips.n}."
    rows = [
        ["this one changes it", flips.both, flips.top_only],
        ["this one does not", flips.other_only, flips.neither],
    ]
    return {
        "title": title,
        "columns": ["", "the other changes it", "the other does not"],
        "rows": rows,
        "first_number": 1,
    }


def _squared(matrix: Matrix) -> dict[str, Any]:
    hundredths = "" if matrix.roomy else " Cells hold hundredths."
    rows = [[name, *(cell.text for cell in row)] for name, row in zip(matrix.names, matrix.rows, strict=True)]
    return {
        "title": f"{matrix.kind.title}: {matrix.kind.reading}.{hundredths}",
        "columns": ["", *matrix.names],
        "rows": rows,
        "first_number": 1,
        "levels": [[cell.level for cell in row] for row in matrix.rows],
    }


def _without(row: list[str], place: int) -> list[str]:
    return [*row[:place], *row[place + 1 :]]
