"""A page as a tree of blocks, from which every form is written: HTML, PDF, Markdown, JSON, terminal, notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True)
class Span:
    """Some words of a sentence that are set apart; a link has the name of the section it leads to."""

    text: str
    kind: str = "strong"  # strong, soft, name, code, link, or a class of the style sheet
    target: str = ""


Words: TypeAlias = str | Span | tuple[str | Span, ...]
"""A sentence, or its parts; a `name` is text from anywhere, whatever direction it is written in."""


def parts(words: Words) -> tuple[str | Span, ...]:
    """The parts of a sentence."""
    return words if isinstance(words, tuple) else (words,)


def plain(words: Words) -> str:
    """A sentence as text."""
    return "".join(part if isinstance(part, str) else part.text for part in parts(words))


@dataclass(frozen=True)
class Bar:
    """A share from 0 to 1 as a bar; with both ends of its interval as a stroke on the whole from 0 to 1."""

    share: float
    ends: tuple[float, float] | None = None


@dataclass(frozen=True)
class Chart:
    """Numbers to be drawn, by the name of a kind of figure."""

    kind: str
    numbers: Mapping[str, Any]


@dataclass(frozen=True)
class Headline:
    """What was found, in one sentence, and below it why; `kicker` stands above."""

    lead: Words
    because: Words = ""
    kicker: Words = ""
    grade: str = ""


@dataclass(frozen=True)
class Heading:
    """The title of what follows within a section."""

    text: Words
    level: Literal[2, 3] = 3
    name: str = ""


@dataclass(frozen=True)
class Prose:
    """A paragraph; its role says what it is for: caveat, reading, answer, soft, tally, quote, ..."""

    text: Words
    role: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[Words, ...]
    role: str = ""
    ordered: bool = False
    title: str = ""  # for those who cannot see it


@dataclass(frozen=True)
class Pairs:
    """Names with what is said of each."""

    rows: tuple[tuple[Words, Words], ...]
    role: str = ""


@dataclass(frozen=True)
class Code:
    """Text as a machine reads it, such as a command."""

    text: str


@dataclass(frozen=True)
class Column:
    """The head of a column; on narrow screens a `wide` one takes a line of its own."""

    head: str = ""
    number: bool = False
    role: str = ""
    wide: bool = False
    short: str = ""  # the head where rows are cards


@dataclass(frozen=True)
class Cell:
    """What stands in a table: words, a grade, smaller lines below, a mark, a drawing, a shade from -8 to 8."""

    text: Words = ""
    notes: tuple[Words, ...] = ()
    grade: str = ""
    mark: Words = ""
    drawing: str | Bar = ""  # SVG that was made and escaped by us
    level: int = 0
    role: str = ""
    title: str = ""
    label: str = ""  # in place of the head of the column


@dataclass(frozen=True)
class Row:
    """The cells of a row, with a role such as `apart` or `beaten`."""

    cells: tuple[Words | Cell, ...]
    role: str = ""


@dataclass(frozen=True)
class Table:
    """Columns and rows; `scroll` tables are moved sideways on narrow screens, the rows of a `stack` become cards."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    layout: Literal["scroll", "side", "stack", "dense", "roomy"] = "scroll"
    role: str = ""
    caption: Words = ""

    @property
    def written(self) -> Table:
        """The table where nothing is drawn: without the columns that hold drawings alone."""
        cells = zip(*(row.cells for row in self.rows), strict=True)
        bare = [all(isinstance(each, Cell) and each.drawing and not each.text for each in column) for column in cells]
        if not any(bare):
            return self
        rows = (
            Row(tuple(each for each, gone in zip(row.cells, bare, strict=True) if not gone), row.role)
            for row in self.rows
        )
        heads = tuple(column for column, gone in zip(self.columns, bare, strict=True) if not gone)
        return replace(self, columns=heads, rows=tuple(rows))


@dataclass(frozen=True)
class Figure:
    """A Chart, a Bar, an Altair chart, or SVG that was made and escaped by us, with a title above, a caption below."""

    drawing: Any
    caption: Words = ""
    title: Words = ""
    name: str = ""
    role: str = ""
    blocks: tuple[Block, ...] = ()  # what belongs to it, such as the same as a table


@dataclass(frozen=True)
class Passage:
    """A text with a score of each word, or with words that are selected, marked and numbered; long ones are cut."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    scores: Sequence[float]
    size: int
    selected: bool = False  # whether scores are flags of selected words
    marked: Sequence[bool] | None = None
    numbers: Mapping[int, str] = field(default_factory=dict)
    title: str = ""
    role: str = ""


@dataclass(frozen=True)
class Fold:
    """Blocks that are shown when somebody asks for them."""

    summary: Words
    blocks: tuple[Block, ...]
    open: bool = False
    role: str = ""


@dataclass(frozen=True)
class Group:
    """Blocks that belong together, side by side where there is room."""

    blocks: tuple[Block, ...]
    role: str
    title: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page with its title; `short` names it in the list of sections."""

    name: str
    title: Words
    blocks: tuple[Block, ...]
    short: str = ""
    label: str = ""  # for those who cannot see it, where there is no title


Block = Headline | Heading | Prose | Bullets | Pairs | Code | Table | Figure | Passage | Fold | Group | Section


@dataclass(frozen=True)
class Document:
    """A whole page. The first section holds the headline; `data` is what its JSON holds instead of the blocks."""

    title: str
    subject: Words  # what stands beside the name of the package
    sections: tuple[Section, ...]
    made_by: str
    footer: str
    kind: str = ""  # told by the name of the maker
    created: str = ""
    skip: str = "Skip to the finding"
    data: Mapping[str, Any] | None = None


def some(*blocks: Block | Iterable[Block] | None) -> tuple[Block, ...]:
    """Blocks one after the other; what is not there is left out."""
    return tuple(_flat(blocks))


def _flat(blocks: Iterable[Block | Iterable[Block] | None]) -> Iterator[Block]:
    for block in blocks:
        if isinstance(block, Iterable):
            yield from block
        elif block is not None:
            yield block


def columns(*heads: str, numbers: int = 1) -> tuple[Column, ...]:
    """Columns by their heads, from `numbers` on of numbers."""
    return tuple(Column(head, number=place >= numbers) for place, head in enumerate(heads))


def grid(heads: Sequence[str], rows: Iterable[Sequence[Words | Cell]], numbers: int = 1, title: str = "") -> Table:
    """A plain table of text, from column `numbers` on of numbers."""
    return Table(columns(*heads, numbers=numbers), tuple(Row(tuple(row)) for row in rows), title)


def page_of(
    answer: Mapping[str, Any], title: str, subject: Words, sections: Iterable[Section], skip: str = Document.skip
) -> Document:
    """The page of a stored answer, with the version and the day that it tells."""
    made_by = str((answer.get("versions") or {}).get("assay", ""))
    footer = (
        f"Made by assay {made_by}. This page is complete in itself: it holds no script and asks for nothing from the "
        "network."
    )
    created = str(answer.get("created") or "")
    return Document(title, subject, tuple(sections), made_by, footer, created=created, skip=skip, data=answer)


def provenance(answer: Mapping[str, Any], file: str, facts: Iterable[tuple[str, str]], more: str = "") -> Section:
    """The last section: the command, the file that holds all numbers, and where they come from."""
    where = "This command made the page; all numbers lie beside it in ", Span(file, "code"), f"{more}."
    blocks = Prose(where), Code(str(answer.get("command") or "")), Pairs(tuple(facts))
    return Section("provenance", "Provenance", blocks, "Provenance")


def versions(answer: Mapping[str, Any]) -> str:
    """The packages that took part, with their versions."""
    return ", ".join(f"{name} {version}" for name, version in (answer.get("versions") or {}).items())
