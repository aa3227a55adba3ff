"""The numbers of an audit as rows of text, the same for the terminal and the page."""

from __future__ import annotations

from itertools import accumulate

from rich import box
from rich.table import Table
from rich.text import Text

from assay.grading.grade import yardstick
from assay.grading.leaderboard import Leaderboard, Row, leaderboard
from assay.grading.verdicts import Verdict, leading, verdicts
from assay.records import Finding, Record
from assay.stories import Grid, Story
from assay.writing import count, figures, interval, number, significance

MARKS = {"pass": "✓", "warn": "!", "fail": "✗", "reference": "○", "not applicable": "–"}
COLOURS = {"pass": "green", "warn": "yellow", "fail": "red", "reference": "cyan", "not applicable": "dim"}
WIDTH = 100  # columns of a terminal
NAME = 26  # of them at most for the name of an explainer
TIE = "≈"
OWN = "explainers"  # stands in the place of an audit before what explainers say of themselves
MANY = 12
"""From more explainers or more classes than this on, tables leave out the predicted classes."""


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


def agreement_rows(record: Record, audit: str) -> Grid:
    """A row for each pair and predicted class, as in Table 2 of Jain and Wallace (2019), with interval, n."""
    found = _told(record, audit)
    rows = [(f.subject.replace("~", " ~ "), f.group, *_spread(f), number(f.significant), *_size(f)) for f in found]
    columns = ("pair", "predicted class", "mean ± std", "significant", "95 % interval", "n", "undefined")
    return Grid(columns, tuple(rows))


def measure_rows(record: Record, audit: str) -> Grid:
    """A row for each subject, measure and predicted class of an audit; those of models are over all texts."""
    found, story = _told(record, audit), record.stories.get(audit, Story())
    tested, models = any(f.p_value is not None for f in found), story.subjects == "model"
    rows = []
    for f in found:
        measure = story.measure(f.measure)
        rows.append(
            (
                measure.about or f.subject.replace("~", " ~ "),
                measure.label,
                *(() if models else (f.group,)),
                *_spread(f),
                *_size(f),
                *((significance(f.p_value) or "–",) if tested else ()),
                kind(story, f.kind),
            )
        )
    tests = ("paired test",) if tested else ()
    first = (story.subjects, "measure", *(() if models else ("predicted class",)))
    numbers = ("mean ± std", "95 % interval", "n", "undefined")
    return Grid((*first, *numbers, *tests, "kind"), tuple(rows), first_number=len(first))


def kind(story: Story, given: str) -> str:
    """How far the numbers of an audit can be trusted; records of earlier versions lack two kinds."""
    return story.kinds.get(given, given)


def own_rows(record: Record) -> Grid:
    """What explainers say of their own scores: a row for each and for each of its numbers."""
    found = [f for f in record.findings if f.audit == OWN and f.group == "all"]
    stories = record.summary.get("stories") or {}
    rows = [
        (
            f.subject,
            Story.of(stories.get(f.subject)).measure(f.measure).label,
            figures(f.mean),
            f"{figures(f.low)} to {figures(f.high)}",
            count(f.n),
        )
        for f in found
    ]
    return Grid(("explainer", "number", "mean", "95 % interval", "n"), tuple(rows))


def by_class(record: Record, audit: str = "") -> bool:
    """Whether tables tell the predicted classes apart; with many of them, or many explainers, a page would be large.

    Those of audits that compare models do not: there may be many models.
    """
    return (audit not in record.stories or record.stories[audit].subjects != "model") and max(
        len(record.summary["explainers"]), len(record.summary["corpus"]["classes"])
    ) <= MANY


def _told(record: Record, audit: str) -> list[Finding]:
    """The audit's findings, those over all texts, and those of each predicted class where there is room."""
    told, story = by_class(record, audit), record.stories.get(audit, Story())
    hidden = {measure.name for measure in story.measures if measure.hidden}
    return [f for f in record.findings if f.audit == audit and f.measure not in hidden and (f.group == "all" or told)]


def verdict_table(record: Record) -> Table:
    """The verdict for the terminal: a line for each explainer, then the words; it fits 100 columns.

    A mark and a word say what the colour says. Of many explainers only the one of the headline gets words.
    """
    grid, found = verdict_rows(record), verdicts(record)
    told = found if len(found) <= MANY else [v for v in found if v.name == leading(record)]
    words = [Text.assemble((v.name, "bold"), f": {' '.join((v.sentence, *v.more))}") for v in told]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=Text("\n").join(words), caption_justify="left")
    table.add_column(grid.columns[0], no_wrap=True, overflow="ellipsis", max_width=NAME)
    for place, name in enumerate(grid.columns[1:], start=1):
        table.add_column(name, justify="right" if place >= grid.first_number else "left", no_wrap=True)
    for verdict, row in zip(found, grid.rows, strict=True):
        cells = [Text(cell) for cell in row]
        table.add_row(cells[0], _badge(verdict), *cells[2:])
    return table


def leaderboard_table(record: Record, width: int = WIDTH) -> Table | None:
    """The leaderboard for a terminal so wide: as many measures, from the most telling on, as fit.

    None where no measure of the leaderboard was run.
    """
    board = leaderboard(record)
    if board is None:
        return None
    shown = _fitting(board, width)
    left = len(board.measures) - shown
    notes = [
        f"* best, {TIE} not clearly worse than it (model confidence set, 95 %). Ordered {board.order}.",
        "Passes are forward + backward for each text, seconds in all."
        + (f" {left} more {'measures stand' if left > 1 else 'measure stands'} in the report." if left else ""),
    ]
    caption = Text("\n".join([*notes, *board.notes]))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    table.add_column("explainer", no_wrap=True, overflow="ellipsis", max_width=NAME)
    heads = [f"{measure.short} {measure.arrow}" for measure in board.measures[:shown]]
    for head in ("verdict", "rank", *heads, *_costs(board)):
        table.add_column(head, justify="right", no_wrap=True)
    for row in board.rows:
        table.add_row(*_line(board, row, shown))
    if board.apart:
        table.add_section()
    for row in board.apart:
        table.add_row(*_line(board, row, shown), style="dim")
    return table


def _fitting(board: Leaderboard, width: int) -> int:
    """How many measures fit beside name, rank and costs; a column needs its head or a number, and two blanks."""
    rows = (*board.rows, *board.apart)
    costs = zip(*(_costs(board, row) for row in rows), strict=True)
    spent = [min(NAME, max(len(row.name) for row in rows)), 9, 4, *(max(7, *map(len, cost)) for cost in costs)]
    ends = accumulate(max(7, len(measure.short) + 2) + 2 for measure in board.measures)
    return max(1, sum(end <= width - sum(spent) - 2 * len(spent) for end in ends))


def _line(board: Leaderboard, row: Row, shown: int) -> list[Text]:
    cells = [
        Text(f"{cell.text}{'*' if cell.best else TIE if cell.tied else ' '}", style="bold" if cell.best else "")
        for cell in row.cells[:shown]
    ]
    return [Text(row.name), Text(row.verdict), Text(row.rank), *cells, *map(Text, _costs(board, row))]


def _costs(board: Leaderboard, row: Row | None = None) -> list[str]:
    """A row's costs, or the heads above them; both kinds of passes share a column."""
    if board.costs[:2] != ("forward", "backward"):
        return list(board.costs if row is None else row.costs)
    if row is None:
        return ["passes", *board.costs[2:]]
    return [" + ".join(row.costs[:2]).replace("– + –", "–"), *row.costs[2:]]


def _badge(verdict: Verdict) -> Text:
    return Text(f"{MARKS[verdict.grade]} {verdict.grade}", style=f"bold {COLOURS[verdict.grade]}")


def _spread(finding: Finding) -> tuple[str]:
    return (f"{number(finding.mean)} ± {number(finding.std)}",)


def _size(finding: Finding) -> tuple[str, str, str]:
    return interval(finding.low, finding.high), count(finding.n), count(finding.undefined)
