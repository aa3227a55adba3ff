"""What a notebook shows: fragments of HTML without a script, which fit its theme and ask for nothing."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from assay.grading.leaderboard import leaderboard
from assay.records import Record
from assay.report.heatmaps import strengths, window
from assay.report.outcome import outcome
from assay.report.sections import CARD_MARKS
from assay.report.tables import TIE, verdict_rows
from assay.report.templating import TEMPLATES, environment
from assay.report.trees import drawn
from assay.report.trees import style as tree_style
from assay.trees import Tree
from assay.writing import count, figures, number, percent

if TYPE_CHECKING:
    from jinja2 import Template

WORDS, LETTERS = 14, 92  # in one line of a table, at most
LONGEST = 40  # letters of a word that are shown
MOST = 120  # words of a text that are shown
CLASSES = 5  # the likeliest
MEASURES = 4  # of the leaderboard
CONTROLS = {place: 0x2400 + place for place in range(32) if chr(place) not in "\t\n"} | {0x7F: 0x2421}


@runtime_checkable
class Explained(Protocol):
    """A prediction, and the score of each word under each explainer."""

    @property
    def query(self) -> str | None: ...
    @property
    def words(self) -> list[str]: ...
    @property
    def predicted(self) -> str: ...
    @property
    def probabilities(self) -> dict[str, float]: ...
    @property
    def scores(self) -> dict[str, list[float]]: ...
    @property
    def target(self) -> str: ...
    @property
    def notes(self) -> dict[str, dict[str, float]]: ...
    @property
    def left_out(self) -> dict[str, str]: ...
    @property
    def trees(self) -> dict[str, Tree]: ...


@dataclass(frozen=True)
class Cell:
    """One score: as short text that lines up with others, in full, and as the class that colours it."""

    text: str
    full: str
    step: str


@dataclass(frozen=True)
class Line:
    """Some words that follow each other, and under them a row of cells for each explainer."""

    words: list[str]
    rows: dict[str, list[Cell]]


def explanation(found: Explained) -> str:
    """The decision, and a table of all explainers over the same words, a line of the text after the other."""
    words = [shown(word) for word in found.words]
    first, last = window(_together(found.scores.values(), len(words)), MOST)
    cells = {name: list(_cells(scores)) for name, scores in found.scores.items()}
    lines = [
        Line(words[start:end], {name: row[start:end] for name, row in cells.items()})
        for start, end in _lines(words, first, last)
    ]
    likely = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    notes = {name: _said(numbers) for name, numbers in found.notes.items() if numbers}
    return _render(
        "explanation",
        found=found,
        lines=lines,
        likely=[(name, percent(share)) for name, share in likely[:CLASSES]],
        rest=len(likely) - CLASSES,
        cut=None if last - first == len(words) else (count(len(words)), count(first + 1), count(last)),
        notes=notes,
        trees=[drawn(replace(tree, method=shown(name, 80)), words) for name, tree in found.trees.items()],
    )


def audit(record: Record) -> str:
    """The verdict of an audit, and its leaderboard in short."""
    grid, board, found = verdict_rows(record), leaderboard(record), outcome(record)
    return _render(
        "audit",
        outcome=found,
        columns=grid.columns,
        rows=list(zip(found.verdicts, grid.rows, strict=True)),
        board=board,
        measures=board.measures[:MEASURES] if board else (),
        more=max(len(board.measures) - MEASURES, 0) if board else 0,
        audited=count(len(record.examples)),
        corpus=record.summary["corpus"].get("name", ""),
    )


def shown(text: str, most: int = LONGEST) -> str:
    """Text that can be seen: control characters as pictures, half characters as question marks, and not too long."""
    cut = text if len(text) <= most else f"{text[:most]}…"
    return cut.translate(CONTROLS).encode("utf-8", "replace").decode("utf-8")


def _said(numbers: dict[str, float]) -> str:
    """What an explainer says of its own scores."""
    return ", ".join(f"{name.replace('_', ' ')} {figures(value)}" for name, value in numbers.items())


def _together(rows: Iterable[Sequence[float]], size: int) -> list[float]:
    """How strong each word is over all rows, each row counted alike."""
    sums = [0.0] * size
    for row in rows:
        for place, level in enumerate(strengths(row)):
            sums[place] += abs(level)
    return sums


def _cells(scores: Sequence[float]) -> Iterator[Cell]:
    """The scores of one row, all to the places that tell the largest to three figures."""
    peak = max((abs(score) for score in scores if math.isfinite(score)), default=0.0)
    places = 2 - math.floor(math.log10(peak)) if peak > 0 else 3
    for score, level in zip(scores, strengths(scores), strict=True):
        full = figures(score) if math.isfinite(score) else "–"
        text = number(score, places) if 0 <= places <= 5 and math.isfinite(score) else full
        yield Cell(text, full, f"{'p' if level > 0 else 'n'}{abs(level)}" if level else "")


def _lines(words: Sequence[str], first: int, last: int) -> list[tuple[int, int]]:
    """Where each line starts and ends: so many words and letters as fit a page, on as even lines as can be."""
    lines = _filled(words, first, last, WORDS)
    for fewer in range(1, WORDS):
        if len(_filled(words, first, last, fewer)) == len(lines):
            return _filled(words, first, last, fewer)
    return lines


def _filled(words: Sequence[str], first: int, last: int, most: int) -> list[tuple[int, int]]:
    starts, letters = [first], 0
    for place in range(first, last):
        wide = max(len(words[place]), 5) + 2
        if place > starts[-1] and (place - starts[-1] == most or letters + wide > LETTERS):
            starts.append(place)
            letters = 0
        letters += wide
    return list(zip(starts, [*starts[1:], last], strict=True)) if last > first else []


def _render(part: str, **values: Any) -> str:
    template, style, name = _template()
    values |= {"part": part, "style": style, "name": name, "marks": CARD_MARKS, "tie": TIE, "shown": shown}
    text = template.render(**values)
    return re.sub(r"\s*\n\s*", "\n", text).encode("utf-8", "replace").decode("utf-8")


@cache
def _template() -> tuple[Template, str, str]:
    """The template, its style, and the class that the style is bound to: another one for another version of it."""
    written = (TEMPLATES / "notebook.css").read_text(encoding="utf-8") + tree_style("&")
    name = f"assay-{hashlib.sha256(written.encode()).hexdigest()[:8]}"
    # twice the same class: it must weigh more than what a notebook says of tables
    return environment().get_template("notebook.html.jinja"), written.replace("&", f".{name}.{name}"), name
