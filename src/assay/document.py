"""A page as a tree of blocks, from which every form is written: HTML, PDF, Markdown, JSON, terminal, notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from assay.trees import Tree


@dataclass(frozen=True)
class Span:
    """Some words of a sentence that are set apart; a link has the name of the section it leads to."""

    text: str
    kind: str = "strong"  # strong, soft, name, code, link, or a class of the style sheet
    target: str = ""


MARKS = {"pass": "✓", "warn": "!", "fail": "✗", "reference": "○", "not applicable": "–", "measured": "·"}
"""A sign for each grade, for those who see no colours."""

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
    """The head of a column; on narrow screens a `wide` one takes a line of its own, and `below` one on paper."""

    head: Words = ""
    number: bool = False
    role: str = ""
    wide: bool = False
    short: str = ""  # the head where rows are cards
    below: bool = False


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
    """Columns and rows; `scroll` tables are moved sideways on narrow screens, the rows of a `stack` become cards.

    Those of `words` have a column for each word of a text and follow its direction.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    layout: Literal["scroll", "side", "stack", "dense", "roomy", "plain", "words"] = "scroll"
    role: str = ""
    caption: Words = ""

    @property
    def written(self) -> Table:
        """The table where nothing is drawn: without the columns that hold drawings alone."""
        cells = list(zip(*(row.cells for row in self.rows), strict=True))
        bare = [all(isinstance(each, Cell) and each.drawing and not each.text for each in column) for column in cells]
        return self._without(bare) if any(bare) else self

    @property
    def parted(self) -> tuple[Table, Pairs | None]:
        """The table for paper, and what stands below it: the columns of sentences, by the first cell of each row."""
        below = [column.below for column in self.columns]
        if not any(below):
            return self, None
        rows = []
        for row in self.rows:
            cells = [each for each, low in zip(row.cells, below, strict=True) if low]
            said = [part for each in cells for part in _said(each)]
            rows.append((_said(row.cells[0])[0], " ".join(map(plain, said))))
        return self._without(below), Pairs(tuple(rows))

    def _without(self, gone: Sequence[bool]) -> Table:
        kept = [place for place, each in enumerate(gone) if not each]
        rows = (replace(row, cells=tuple(row.cells[place] for place in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[place] for place in kept), rows=tuple(rows))


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
class Line:
    """A score for each word of an example, by an explainer or of another kind, or flags of some words."""

    name: str
    scores: Sequence[float]
    kind: Literal["explainer", "other", "flags"] = "explainer"
    remark: str = ""
    none: str = ""  # what is said where no word has a flag


@dataclass(frozen=True)
class Example:
    """A decision about a text, and lines of scores over its words from `first` to `last`.

    The first two lines of a `paired` one stand beside each other; the `rest` are shown when somebody asks for them.
    """

    number: int
    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    first: int
    last: int
    label: str
    predicted: str
    probability: float
    lines: tuple[Line, ...]
    rest: tuple[Line, ...] = ()
    query: str = ""
    paired: bool = False
    open: bool = False

    @property
    def opening(self) -> str:
        """The beginning of its text on one line."""
        return opening(self.text)

    @property
    def words(self) -> list[str]:
        """The words that are shown."""
        places = range(self.first, self.last)
        return [self.text[self.starts[place] : self.ends[place]] for place in places]


@dataclass(frozen=True)
class Browser:
    """Examples to choose from, filter and search, for a page with a script."""

    data: Mapping[str, Any]


@dataclass(frozen=True)
class Phrases:
    """A text that falls apart into phrases, each with its score."""

    tree: Tree
    words: Sequence[str]


@dataclass(frozen=True)
class Fold:
    """Blocks that are shown when somebody asks for them."""

    summary: Words
    blocks: tuple[Block, ...]
    open: bool = False
    role: str = ""


@dataclass(frozen=True)
class Card:
    """One question with its grade and, in brief, the answer; the blocks are shown when somebody asks for them."""

    title: Words
    grade: str
    brief: Words
    blocks: tuple[Block, ...]
    name: str


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


Written = Headline | Heading | Prose | Bullets | Pairs | Code | Table
Drawn = Figure | Passage | Example | Browser | Phrases
Block = Written | Drawn | Fold | Card | Group | Section


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
    scripts: tuple[str, ...] = ()  # files of ours that make its blocks interactive


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


def opening(text: str, length: int = 90) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _said(cell: Words | Cell) -> tuple[Words, ...]:
    return (cell.text, *cell.notes) if isinstance(cell, Cell) else (cell,)
