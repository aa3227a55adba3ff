"""The numbers of an audit as rows of text, the same for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from assay.records import Finding, Record
from assay.report.verdicts import Verdict, verdicts
from assay.report.writing import count, interval, number
from assay.report.yardsticks import yardstick

MARKS = {"pass": "✓", "warn": "!", "fail": "✗", "reference": "○", "not applicable": "–"}
COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "reference": "cyan", "not applicable": "dim"}
MEASURES = {
    "tau": "Kendall τ",
    "median_tvd": "median output change (TVD)",
    "max_attention": "largest attention weight",
    "jsd": "furthest equal-prediction attention (JSD)",
    "jsd_upper": "certified upper bound (JSD)",
    "jsd_of_k": "mean of several such attentions (JSD)",
    "tvd": "its output change (TVD)",
    "auprc": "AUPRC",
    "precision": "precision at the number of deciding words",
}


@dataclass(frozen=True)
class Grid:
    """A table as text: column heads and rows; columns from `first_number` on hold numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first_number: int = 2


def verdict_rows(record: Record) -> Grid:
    """One row for each explainer: grade, effect, interval, null and n."""
    symbol = yardstick(record).symbol
    rows = [
        (
            v.name,
            v.grade,
            number(v.effect),
            interval(v.low, v.high),
            number(v.null),
            count(v.n) if v.n else "–",
        )
        for v in verdicts(record)
    ]
    return Grid(("explainer", "verdict", symbol, "95 % interval", "null", "n"), tuple(rows))


def agreement_rows(record: Record) -> Grid:
    """A row for each pair and predicted class, as in Table 2 of Jain and Wallace (2019), with interval, n."""
    found = [f for f in record.findings if f.audit == "agreement"]
    rows = [(f.subject.replace("~", " ~ "), f.group, *_spread(f), number(f.significant), *_size(f)) for f in found]
    columns = ("pair", "predicted class", "mean ± std", "significant", "95 % interval", "n", "undefined")
    return Grid(columns, tuple(rows))


def measure_rows(record: Record, audit: str) -> Grid:
    """A row for each subject, measure and predicted class of an audit."""
    found = [f for f in record.findings if f.audit == audit]
    rows = [(f.subject, MEASURES.get(f.measure, f.measure), f.group, *_spread(f), *_size(f), f.kind) for f in found]
    columns = (
        "explainer",
        "measure",
        "predicted class",
        "mean ± std",
        "95 % interval",
        "n",
        "undefined",
        "kind",
    )
    return Grid(columns, tuple(rows), first_number=3)


def verdict_table(record: Record) -> Table:
    """The verdict for the terminal: a line for each explainer, then the words; it fits 100 columns.

    A mark and a word say what the colour says.
    """
    grid, found = verdict_rows(record), verdicts(record)
    words = [Text.assemble((v.name, "bold"), f": {' '.join((v.sentence, *v.more))}") for v in found]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=Text("\n").join(words), caption_justify="left")
    for place, name in enumerate(grid.columns):
        table.add_column(name, justify="right" if place >= grid.first_number else "left", no_wrap=True)
    for verdict, row in zip(found, grid.rows, strict=True):
        cells = [Text(cell) for cell in row]
        table.add_row(cells[0], _badge(verdict), *cells[2:])
    return table


def _badge(verdict: Verdict) -> Text:
    return Text(f"{MARKS[verdict.grade]} {verdict.grade}", style=f"bold {COLOURS[verdict.grade]}")


def _spread(finding: Finding) -> tuple[str]:
    return (f"{number(finding.mean)} ± {number(finding.std)}",)


def _size(finding: Finding) -> tuple[str, str, str]:
    return interval(finding.low, finding.high), count(finding.n), count(finding.undefined)
