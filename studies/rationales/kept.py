"""What is kept of cells: one file a corpus and kind of model, with a line for each cell."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from assay.files import write_text
from studies.rationales.cells import CORPORA, MODELS, UNITS, Cell
from studies.results import Result

Key = tuple[str, str, int]
"""Recipe, units and seed."""


def read(folder: Path, table: str) -> dict[Key, Result]:
    """The results of a table, in the order in which they stand there."""
    path = folder / f"{table}.json"
    rows: list[Result] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return {(row.pop("recipe"), row.pop("units"), row.pop("seed")): row for row in rows}


def write(folder: Path, table: str, results: dict[Key, Result]) -> None:
    """Writes a table, at once or not at all: recipes by name, then units, then seeds."""
    rows = [
        dict(zip(("recipe", "units", "seed"), key, strict=True)) | _rounded(results[key]) for key in sorted(results)
    ]
    lines = ",\n".join(json.dumps(row, allow_nan=False) for row in rows)
    write_text(folder / f"{table}.json", f"[\n{lines}\n]\n")


def put(folder: Path, cell: Cell, result: Result) -> None:
    """Adds a cell to its table; only one process may do so at a time."""
    write(folder, cell.table, read(folder, cell.table) | {cell.key: result})


def missing(cells: Iterable[Cell], folder: Path, again: bool = False) -> list[Cell]:
    """The cells that are not there yet, or failed where they are to be made `again`; those that take longest first.

    How long a cell takes is taken from the same recipe with other units or seeds.
    """
    cells = list(cells)
    tables = {name: read(folder, name) for name in {cell.table for cell in cells}}
    found = [cell for cell in cells if _open(tables[cell.table].get(cell.key), again)]
    return sorted(found, key=lambda cell: -_seconds(tables[cell.table], cell.recipe))


def gathered(folder: Path) -> dict[tuple[str, str, str], dict[str, dict[int, Result]]]:
    """All results by corpus, model and units, then by recipe, then by seed."""
    from assay.rationales.recipes import RECIPES

    found: dict[tuple[str, str, str], dict[str, dict[int, Result]]] = {}
    for corpus in CORPORA:
        for model in MODELS:
            rows = read(folder, Cell(corpus, model, "").table)
            for units in UNITS.get(corpus, ("word",)):
                recipes = {
                    recipe: {seed: row for (name, of, seed), row in rows.items() if (name, of) == (recipe, units)}
                    for recipe in RECIPES
                }
                if held := {recipe: seeds for recipe, seeds in recipes.items() if seeds}:
                    found[corpus, model, units] = held
    return found


def _open(result: Result | None, again: bool) -> bool:
    return result is None or (again and "failed" in result)


def _seconds(results: dict[Key, Result], recipe: str) -> float:
    return max((row.get("seconds", 0.0) for (name, _, _), row in results.items() if name == recipe), default=0.0)


def _rounded(value: Any) -> Any:
    """The same with six digits behind the point."""
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 6) if isinstance(value, float) else value
