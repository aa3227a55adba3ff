"""The table of a question as text: for a page, as Markdown, and as CSV with every number."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

from assay.report.markdown import table, text
from assay.report.plain import encodable, line
from assay.report.studies import words
from assay.report.studies.answers import Answer, Cell, Column
from assay.report.writing import count, interval, number, significance

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


FEWEST, MOST = 2, 6
"""Places behind the point."""


@dataclass(frozen=True)
class Shown:
    """A cell as text; `mark` says that its difference holds, and which way it goes."""

    mean: str
    interval: str
    behind: str
    mark: str


def shown(answer: Answer) -> list[tuple[str, list[Shown | str]]]:
    """The rows: a subject, and a cell for each column, or the word for why it is empty."""
    shown_to = places(answer)
    return [
        (
            subject(row.subject),
            [_shown(answer, cell, column, shown_to) for cell, column in zip(row.cells, answer.columns, strict=True)],
        )
        for row in answer.rows
    ]


def differences(answer: Answer) -> list[tuple[str, ...]]:
    """A row of text for each difference that was tested, under the heads of DIFFERENCES."""
    rows: list[tuple[str, ...]] = []
    shown_to = places(answer)
    for row, column, cell in answer.cells:
        if (found := cell.difference) is not None:
            over, told = f"{count(found.n)} {found.over}", words.mark(answer, found) or "no"
            ends = interval(found.low, found.high, shown_to)
            numbers = (number(found.gap, shown_to), ends, _chance(found.p), _chance(found.adjusted))
            rows.append((subject(row.subject), line(column.title), *numbers, over, told))
    return rows


def places(answer: Answer) -> int:
    """How many places behind the point show three figures of the largest mean."""
    largest = max((abs(cell.mean) for _, _, cell in answer.cells), default=0.0)
    return min(MOST, max(FEWEST, 2 - math.floor(math.log10(largest)))) if largest else FEWEST + 1


def subject(name: str) -> str:
    """A subject as a row begins with it: the two of a pair stand apart."""
    return line(name.replace("~", " ~ "))


def markdown(answer: Answer) -> str:
    """The table as GitHub-flavoured Markdown; names from anywhere show as text."""
    heads = ["", *(line(column.title) for column in answer.columns)]
    rows = [[name, *map(_told, cells)] for name, cells in shown(answer)]
    tested = differences(answer)
    blocks = [
        f"# {text(answer.title)}",
        text(words.measured(answer)),
        text(words.sentence(answer)),
        table(list(map(text, heads)), [list(map(text, row)) for row in rows]),
        text(f"{words.legend(answer)} {words.based(answer)}"),
        *(["## Differences", _texts(DIFFERENCES, tested)] if tested else []),
        *(["## Missing", _listed(words.lacking(answer.missing))] if answer.missing else []),
        *(["## Notes", "\n".join(f"- {text(each)}" for each in answer.notes)] if answer.notes else []),
        "## How to read this",
        "\n".join(f"- {text(each)}" for each in (*words.RULES, *words.LIMITS)),
    ]
    return encodable("\n\n".join(blocks) + "\n")


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


def _shown(answer: Answer, cell: Cell | None, column: Column, shown_to: int) -> Shown | str:
    if cell is None:
        return words.empty(column)
    told = "" if cell.difference is None else words.mark(answer, cell.difference)
    ends = interval(cell.low, cell.high, shown_to)
    return Shown(number(cell.mean, shown_to), ends, words.behind(cell, column), told)


def _told(cell: Shown | str) -> str:
    if isinstance(cell, str):
        return cell
    return " ".join(filter(None, (cell.mean, f"({cell.interval}; {cell.behind})", cell.mark)))


def _texts(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return table(list(map(text, heads)), [list(map(text, row)) for row in rows], first_number=2)


def _listed(pairs: list[tuple[str, str]]) -> str:
    return "\n".join(f"- {text(name)}: {text(told)}" for name, told in pairs)


def _numbers(answer: Answer, cell: Cell | None, column: Column) -> list[str]:
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


def _chance(p: float) -> str:
    """A p-value under a head that says so."""
    return significance(p).removeprefix("p ").removeprefix("= ")


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.{DIGITS}g}"


def _safe(name: str) -> str:
    told = line(name)
    return f"'{told}" if told.startswith(FORMULAS) else told
