"""A study as a document, with a panel of dots for each corpus; and each table as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence

from assay import __version__
from assay.document import (
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Figure,
    Fold,
    Group,
    Heading,
    Headline,
    Pairs,
    Prose,
    Row,
    Section,
    Span,
    Table,
    columns,
    grid,
    some,
)
from assay.report import markdown
from assay.study import results as words
from assay.study.results import Answer, Missing, Study, places, subject
from assay.study.results import Cell as Reached
from assay.study.results import Column as Asked
from assay.writing import chance, count, encodable, interval, line, number

OPEN = 30
"""A table of more rows is folded away."""

FEW = 6
"""More missing trials are folded away."""

DIFFERENCES = ("subject", "corpus and model", "difference", "95 % interval", "p", "p, corrected", "over", "holds")
"""The heads above the differences of a table."""

CSV = (
    *("subject", "corpus", "model", "audits", "mean", "low", "high", "interval_over", "seeds", "seeds_planned"),
    *("texts", "against", "difference", "difference_low", "difference_high", "p", "p_corrected", "tested_over"),
    *("tested_n", "significant", "missing"),
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so would be run by a spreadsheet."""

DIGITS = 10
"""The last digits of a number may be those of a machine; they are of no use."""


def document(study: Study) -> Document:
    """The whole page: what holds, a section for each question, what is missing, how to read it."""
    return Document(
        title=line(study.name),
        subject=("study ", Span(line(study.name), "name")),
        sections=tuple(_sections(study)),
        made_by=__version__,
        kind="study",
        footer=f"Made by assay {__version__}. This page is complete in itself: it holds no script and asks for "
        "nothing from the network.",
    )


def as_markdown(answer: Answer) -> str:
    """The table of a question as GitHub-flavoured Markdown; names from anywhere show as text."""
    told = tuple((Span(name, "name"), f": {why}") for name, why in words.lacking(answer.missing))
    blocks = some(
        Prose(words.measured(answer)),
        Prose(words.sentence(answer)),
        answers(answer),
        Prose(f"{words.legend(answer)} {words.based(answer)}"),
        (Heading("Differences", 2), grid(DIFFERENCES, differences(answer), 2)) if answer.differences else None,
        (Heading("Missing", 2), Bullets(told)) if told else None,
        (Heading("Notes", 2), Bullets(tuple(map(line, answer.notes)))) if answer.notes else None,
        (Heading("How to read this", 2), Bullets((*words.RULES, *words.LIMITS))),
    )
    return encodable("\n\n".join([f"# {markdown.text(answer.title)}", *markdown.written(blocks)]) + "\n")


def separated(answer: Answer) -> str:
    """The table as CSV: a line for each subject and column, with every number to ten digits."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(CSV)
    for row in answer.rows:
        for column, cell in zip(answer.columns, row.cells, strict=True):
            names = [_safe(each) for each in (row.subject, column.corpus, column.model, column.asked)]
            lines.writerow([*names, *_numbers(answer, cell, column), words.empty(column) if cell is None else ""])
    return encodable(written.getvalue())


def answers(answer: Answer, title: str = "") -> Table:
    """Subjects in rows, and a cell for each corpus and model, or the word for why it is empty."""
    shown_to = places(answer)
    rows = []
    for row in answer.rows:
        held = zip(row.cells, answer.columns, strict=True)
        cells = (_cell(answer, cell, column, shown_to) for cell, column in held)
        rows.append(Row((Span(subject(row.subject), "name"), *cells)))
    return Table(columns("", *(line(column.title) for column in answer.columns)), tuple(rows), title, "side")


def differences(answer: Answer) -> list[tuple[str, ...]]:
    """A row of text for each difference that was tested, under the heads of DIFFERENCES."""
    rows: list[tuple[str, ...]] = []
    shown_to = places(answer)
    for row, column, cell in answer.cells:
        if (found := cell.difference) is not None:
            over, told = f"{count(found.n)} {found.over}", words.mark(answer, found) or "no"
            ends = interval(found.low, found.high, shown_to)
            numbers = (number(found.gap, shown_to), ends, chance(found.p), chance(found.adjusted))
            rows.append((subject(row.subject), line(column.title), *numbers, over, told))
    return rows


def _sections(study: Study) -> Iterator[Section]:
    warned = [Prose(each, "caveat") for each in words.caveats(study)]
    facts = Pairs(
        (
            ("Corpora", Span(", ".join(map(line, study.corpora)), "name")),
            ("Models", Span(", ".join(map(line, study.models)), "name")),
            ("Seeds", ", ".join(map(str, study.seeds))),
            ("Trials", f"{study.done} of {study.trials} finished"),
        )
    )
    top = Headline(words.headline(study), kicker=words.grid(study))
    yield Section("verdict", "", some(top, warned, None if study.answers else facts), "Finding")
    if study.answers:
        links = tuple(
            (Span(line(each.title), "link", f"question-{place}"), " ", Span(words.sentence(each), "soft"))
            for place, each in enumerate(study.answers, start=1)
        )
        yield Section("questions", "", (Bullets(links, "contents", True), facts), "Questions", "Questions")
    for place, answer in enumerate(study.answers, start=1):
        title = Span(str(place), "place"), " ", Span(line(answer.title), "name")
        yield Section(f"question-{place}", title, tuple(_question(answer, place)))
    if study.missing:
        intro = Prose("Run the study again to make them; what is finished is kept.")
        yield Section("missing", "What is missing", (intro, _missing(study.missing, True)), "Missing")
    where = (
        *("Each table lies in ", Span("tables/", "code"), " as Markdown and as CSV, and every number of every trial "),
        *("in ", Span("findings.parquet", "code"), "."),
    )
    reading = Bullets(words.RULES), Heading("Limits"), Bullets(words.LIMITS), Prose(where, "soft")
    yield Section("reading", "How to read this", reading, "How to read this")


def _question(answer: Answer, place: int) -> Iterator[Block]:
    yield Prose(words.sentence(answer), "answer")
    rest = (words.measured(answer), words.based(answer), words.legend(answer))
    yield Prose(" ".join(each for each in rest if each), "soft")
    yield from _panels(answer)
    if answer.rows:
        table = answers(answer, f"Table {place}")
        yield Fold(f"The table ({len(answer.rows)} rows)", (table,)) if len(answer.rows) > OPEN else table
    if tested := differences(answer):
        yield Fold(f"All {len(tested)} differences, with their p-values", (_gaps(tested),))
    if answer.notes:
        yield Fold("Why some numbers are not there", (Bullets(tuple(map(line, answer.notes))),))
    if answer.missing:
        yield _missing(answer.missing)


def _panels(answer: Answer) -> Iterator[Block]:
    from assay.study.study_panels import apart, left, study_panels

    figures = [Figure(drawing, title=Span(corpus, "name")) for corpus, drawing in study_panels(answer)]
    if not figures:
        return
    scale = "each panel on its own scale" if apart(answer) else "all panels on one scale"
    told: list[str | Span] = [f"Means over seeds with 95 % intervals, {scale}; intervals that end outside are cut."]
    if answer.differences:
        told += [" A hollow dot: the difference from ", Span(line(answer.against or ""), "name")]
        told += [" does not hold after correction."]
    if more := left(answer):
        told += [f" {more} more {'row stands' if more == 1 else 'rows stand'} in the table alone."]
    yield Group(tuple(figures), "panels")
    yield Prose(tuple(told), "soft")


def _gaps(rows: Sequence[tuple[str, ...]]) -> Table:
    heads = (
        Column(DIFFERENCES[0]),
        Column(DIFFERENCES[1], role="measure", wide=True),
        *columns(*DIFFERENCES[2:7], numbers=0),
        Column(DIFFERENCES[7], role="mark"),
    )
    lines = (Row((Span(row[0], "name"), Span(row[1], "name"), *row[2:])) for row in rows)
    return Table(heads, tuple(lines), layout="stack", role="gaps")


def _missing(missing: Sequence[Missing], open: bool = False) -> Fold:
    items = tuple((Span(title, "name"), f": {why}.") for title, why in words.lacking(missing))
    some = f"{len(items)} {'trial is' if len(items) == 1 else 'trials are'} missing"
    return Fold(some, (Bullets(items),), open or len(items) <= FEW, "lacking")


def _cell(answer: Answer, cell: Reached | None, column: Asked, shown_to: int) -> Cell:
    if cell is None:
        return Cell(words.empty(column), role="none")
    mark = "" if cell.difference is None else words.mark(answer, cell.difference)
    notes = interval(cell.low, cell.high, shown_to), words.behind(cell, column)
    return Cell(number(cell.mean, shown_to), notes, mark=mark, role="holds" if mark else "")


def _numbers(answer: Answer, cell: Reached | None, column: Asked) -> list[str]:
    """What stands between the names and what is missing."""
    if cell is None:
        return ["", "", "", "", "0", str(column.planned), "0", *[""] * 9]
    own = [_digits(cell.mean), _digits(cell.low), _digits(cell.high), cell.over]
    own += [str(cell.seeds), str(column.planned), str(cell.texts)]
    found = cell.difference
    if found is None:
        return [*own, *[""] * 9]
    numbers = [_digits(each) for each in (found.gap, found.low, found.high, found.p, found.adjusted)]
    return [*own, _safe(answer.against or ""), *numbers, found.over, str(found.n), "yes" if found.sure else "no"]


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.{DIGITS}g}"


def _safe(name: str) -> str:
    told = line(name)
    return f"'{told}" if told.startswith(FORMULAS) else told
