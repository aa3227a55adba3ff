"""The outcome of a run for a terminal: what `assay audit` tells and `print` of its result shows."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from assay.lookup import MEASURED
from assay.records import Record
from assay.report.outcome import outcome
from assay.report.sections import CARD_MARKS, Card
from assay.report.tables import COLOURS, leaderboard_table, verdict_table


def told(record: Record, width: int) -> Iterator[RenderableType]:
    """Headline, counts, caveats, the result of each audit, and the tables that hold a number."""
    found = outcome(record)
    yield Text(found.headline, style="bold")
    if found.tally:
        yield Text(found.tally)
    for caveat in found.caveats:
        yield Text.assemble(("Caveat. ", "bold yellow"), caveat)
    if found.cards:
        yield ""
        yield _results(found.cards)
    if found.graded:
        yield verdict_table(record)
    if (board := leaderboard_table(record, width)) is not None:
        yield board


def _results(cards: tuple[Card, ...]) -> Table:
    """A row for each audit: its grade, its name, and what it found."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    colours = COLOURS | {MEASURED: "cyan"}
    for card in cards:
        mark = Text(f"{CARD_MARKS[card.grade]} {card.grade}", style=f"bold {colours[card.grade]}")
        table.add_row(mark, Text(card.name), Text(card.result))
    return table
