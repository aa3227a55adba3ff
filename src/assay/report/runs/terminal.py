"""The comparison for a terminal: the verdict, and the explainers in each run."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from assay.report.plain import line
from assay.report.runs.differences import Comparison
from assay.report.runs.tables import Cell, matrix
from assay.report.runs.words import bullets, caveats, headline, plain
from assay.report.tables import COLOURS, MARKS, NAME

COLUMN = 12  # letters of the name of a run


def verdict(comparison: Comparison) -> Text:
    """The headline, what exceeds noise, and the caveats."""
    told = [f"• {plain(each)}" for each in bullets(comparison)]
    notes = [f"Caveat: {plain(each)}" for each in caveats(comparison)]
    return Text("\n").join([Text(plain(headline(comparison)), style="bold"), *map(Text, told), *map(Text, notes)])


def run_table(comparison: Comparison, width: int) -> Table | None:
    """Explainers in rows and as many runs as fit, by what is graded; None where nothing is shared."""
    if comparison.headline is None:
        return None
    made, names = matrix(comparison, comparison.headline), list(comparison.records)
    shown = _fitting(width)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("explainer", no_wrap=True, overflow="ellipsis", max_width=NAME)
    for name in names[:shown]:
        table.add_column(Text(name if len(name) <= COLUMN else f"{name[: COLUMN - 1]}…"), no_wrap=True)
    for subject, cells in made.rows:
        table.add_row(Text(line(subject)), *map(_cell, cells[:shown]))
    return table


def legend(comparison: Comparison, width: int) -> str:
    """What stands in the table of runs, and what does not."""
    title = comparison.headline.title if comparison.headline else ""
    more = len(comparison.records) - _fitting(width)
    rest = f" {more} more {'run stands' if more == 1 else 'runs stand'} in the file." if more > 0 else ""
    return f"{title}; ▲ above, ▼ below another run by more than noise.{rest}"


def _fitting(width: int) -> int:
    return max(1, (width - NAME) // (COLUMN + 3))


def _cell(cell: Cell | None) -> Text:
    if cell is None:
        return Text("–", style="dim")
    grade = Text(f" {MARKS[cell.grade]}", style=COLOURS[cell.grade]) if cell.grade else Text("")
    return Text.assemble(cell.mean, grade, "".join(f" {mark}" for mark, _ in cell.remarks))
