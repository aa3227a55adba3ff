"""Blocks of a document for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table as Drawn
from rich.text import Text

from assay.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Passage,
    Prose,
    Section,
    Table,
    Words,
    parts,
    plain,
)
from assay.report.heatmaps import terminal as heat
from assay.report.passages import spans
from assay.report.tables import COLOURS, MARKS
from assay.writing import line

LEADS = {"caveat": "Caveat: ", "reading": "How to read this: "}
STYLES = {"strong": "bold", "called": "bold", "soft": "dim", "code": "cyan"}


def shown(blocks: Iterable[Block]) -> Iterator[RenderableType]:
    """Each block as rich prints it; figures are for pages."""
    for block in blocks:
        yield from _block(block)


def words(given: Words) -> Text:
    """A sentence with its parts set apart."""
    styled = ((part, "") if isinstance(part, str) else (part.text, STYLES.get(part.kind, "")) for part in parts(given))
    return Text.assemble(*((line(text), style) for text, style in styled))


def _block(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Headline):
        yield Text(" ".join(filter(None, (plain(block.lead), plain(block.because)))), style="bold")
    elif isinstance(block, Heading):
        yield Text(plain(block.text), style="bold")
    elif isinstance(block, Prose):
        yield Text(LEADS.get(block.role, ""), style=STYLES.get(block.role, "")) + words(block.text)
    elif isinstance(block, Bullets):
        yield from (Text("• ") + words(each) for each in block.items)
    elif isinstance(block, Pairs):
        made = Drawn.grid(padding=(0, 2, 0, 0))
        for name, said in block.rows:
            made.add_row(words(name), words(said))
        yield made
    elif isinstance(block, Code):
        yield Text(block.text, style="cyan")
    elif isinstance(block, Table):
        yield _table(block.written)
    elif isinstance(block, Passage):
        text = heat(block.text, block.starts, block.ends, block.scores)
        yield words(spans(block)) if block.selected else text
    elif isinstance(block, Section):
        yield from [words(block.title)] if block.title else []
        yield from shown(block.blocks)
    elif isinstance(block, Fold) or (isinstance(block, Group) and block.role != "key"):
        yield from shown(block.blocks)


def _table(block: Table) -> Drawn:
    made = Drawn(box=box.SIMPLE_HEAD if block.layout == "side" else None, pad_edge=False, padding=(0, 2, 0, 0),
                 header_style="dim")  # fmt: skip
    for column in block.columns:
        made.add_column(Text(column.head), justify="right" if column.number else "left", no_wrap=not column.wide)
    for row in block.rows:
        made.add_row(*map(_cell, row.cells), style="dim" if row.role else "")
    return made


def _cell(given: Words | Cell) -> Text:
    if not isinstance(given, Cell):
        return words(given)
    grade = Text(f" {MARKS[given.grade]}", style=COLOURS[given.grade]) if given.grade else Text("")
    return Text(" ").join(
        [words(given.text) + grade, *map(words, given.notes), *([words(given.mark)] if given.mark else [])]
    )
