"""Blocks of a document for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from rich import box
from rich.console import RenderableType
from rich.table import Table as Drawn
from rich.text import Text

from assay.document import (
    MARKS,
    Block,
    Bullets,
    Card,
    Cell,
    Code,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Passage,
    Phrases,
    Prose,
    Section,
    Table,
    Words,
    parts,
    plain,
)
from assay.report.heatmaps import spans
from assay.report.heatmaps import terminal as heat
from assay.report.trees import lines
from assay.writing import line

NAME = 26  # letters of a row's name
COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "reference": "cyan", "not applicable": "dim"}
LEADS = {"caveat": "Caveat. ", "reading": "How to read this: "}
STYLES = {"caveat": "bold yellow", "strong": "bold", "called": "bold", "soft": "dim", "code": "cyan"}


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
        table, below = block.parted
        yield _table(table.written)
        yield from shown([below] if below else [])
    elif isinstance(block, Passage):
        text = heat(block.text, block.starts, block.ends, block.scores)
        yield words(spans(block)) if block.selected else text
    elif isinstance(block, Section):
        yield from [words(block.title)] if block.title else []
        yield from shown(block.blocks)
    elif isinstance(block, Phrases):
        yield lines(block.tree, block.words)
    elif isinstance(block, Card):
        yield words((*parts(block.title), f" {MARKS[block.grade]} {block.grade}: ", *parts(block.brief)))
    elif isinstance(block, Fold) or (isinstance(block, Group) and block.role != "key"):
        yield from shown(block.blocks)


def _table(block: Table) -> Drawn:
    made = Drawn(
        box=box.SIMPLE_HEAD if block.layout == "side" else None,
        pad_edge=False,
        padding=(0, 1 if block.role == "board" else 2, 0, 0),
        header_style="dim",
        show_header=any(column.head for column in block.columns),
    )
    for place, column in enumerate(block.columns):
        most = NAME if block.layout == "side" and place == 0 else None
        side: Literal["left", "right"] = "right" if column.number else "left"
        made.add_column(Text(plain(column.head)), justify=side, no_wrap=not column.wide, max_width=most)
    for row in block.rows:
        made.add_row(*map(_cell, row.cells), style="dim" if row.role else "")
    return made


def _cell(given: Words | Cell) -> Text:
    if not isinstance(given, Cell):
        return words(given)
    mark = MARKS.get(given.grade, "")
    shown = f" {mark}" if given.text and given.grade else f"{mark} {given.grade}".strip()
    grade = Text(shown, style=COLOURS.get(given.grade, "cyan"))
    return Text(" ").join(
        [words(given.text) + grade, *map(words, given.notes), *([words(given.mark)] if given.mark else [])]
    )
