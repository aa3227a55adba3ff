"""What a notebook shows: fragments of HTML without a script, which fit its theme and ask for nothing."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol, runtime_checkable

from assay.document import MARKS, Block, Cell, Column, Phrases, Prose, Row, Span, Table, some
from assay.records import Record
from assay.report.audit import brief
from assay.report.heatmaps import strengths, window
from assay.report.html import TEMPLATES, fragment
from assay.report.outcome import outcome
from assay.report.trees import style as tree_style
from assay.trees import Tree
from assay.writing import count, encodable, figures, number, percent

WIDTH = 100  # letters of a leaderboard
WORDS, LETTERS = 14, 92  # in one line of a table, at most
LONGEST = 40  # letters of a word that are shown
MOST = 120  # words of a text that are shown
CLASSES = 5  # the likeliest
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


def explanation(found: Explained) -> str:
    """The decision, and a table of all explainers over the same words, a line of the text after the other."""
    words = [shown(word) for word in found.words]
    first, last = window(_together(found.scores.values(), len(words)), MOST)
    cells = {name: list(_cells(words, scores)) for name, scores in found.scores.items()}
    of = "the predicted class" if found.target == found.predicted else ("the class ", _name(found.target))
    return _framed(
        some(
            _soft("question or hypothesis ", _name(found.query, 500)) if found.query is not None else None,
            _decided(found),
            _cut(len(words), first, last),
            [_table(words, cells, start, end) for start, end in _lines(words, first, last)],
            _soft(
                *(Span("speaks for", "key"), " ", Span("speaks against", "key"), " "),
                *(of if isinstance(of, tuple) else (of,)),
                "; the strongest word of each row sets its scale.",
            ),
            [Phrases(replace(tree, method=shown(name, 80)), words) for name, tree in found.trees.items()],
            [_soft(_name(name), f": {_said(numbers)}") for name, numbers in found.notes.items() if numbers],
            [_soft(_name(name), f" is left out: {shown(reason, 500)}.") for name, reason in found.left_out.items()],
        )
    )


def audit(record: Record) -> str:
    """The verdict of an audit, and its leaderboard in short."""
    found, name = outcome(record), record.summary["corpus"].get("name", "")
    lead = Prose(Span(f"{MARKS[found.grade]} {found.headline}"), "lead")
    where = Span('.report("report.html")', "code")
    rest = _soft(f"{count(len(record.examples))} texts of ", _name(name), ". The whole report: ", where)
    return _framed((lead, *brief(record, WIDTH, words=False)[1:], rest))


def shown(text: str, most: int = LONGEST) -> str:
    """Text that can be seen: control characters as pictures, half characters as question marks, and not too long."""
    cut = text if len(text) <= most else f"{text[:most]}…"
    return encodable(cut.translate(CONTROLS))


def _framed(blocks: Iterable[Block]) -> str:
    style, name = _style()
    text = f'<div class="{name}">\n<style>{style}</style>\n{fragment(blocks)}</div>'
    return encodable(re.sub(r"\s*\n\s*", "\n", text))


def _soft(*words: str | Span) -> Prose:
    return Prose(words, "soft")


def _name(text: str, most: int = 80) -> Span:
    return Span(shown(text, most), "name")


def _decided(found: Explained) -> tuple[Block, ...]:
    (_, sure), *others = sorted(found.probabilities.items(), key=lambda pair: -pair[1])
    lead = Prose((Span(shown(found.predicted, 80), "called"), f" {percent(sure)}"), "lead")
    told: list[str | Span] = []
    for name, share in others[: CLASSES - 1]:
        told += [", " if told else "", _name(name), f" {percent(share)}"]
    rest = len(others) + 1 - CLASSES
    return some(lead, _soft(*told, f", and {rest} more" if rest > 0 else "") if told else None)


def _cut(size: int, first: int, last: int) -> Prose | None:
    if last - first == size:
        return None
    part = f"Of {count(size)} words these are {count(first + 1)} to {count(last)}, around the strongest; "
    return _soft(part, Span(".scores", "code"), " has all.")


def _table(words: Sequence[str], cells: dict[str, list[Cell]], start: int, end: int) -> Table:
    """Some words that follow each other, and under them a row of cells for each explainer."""
    heads = (Column(), *(Column(Span(word, "name")) for word in words[start:end]))
    rows = tuple(Row((_name(name), *row[start:end])) for name, row in cells.items())
    return Table(heads, rows, layout="words", role="heat")


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


def _cells(words: Sequence[str], scores: Sequence[float]) -> Iterator[Cell]:
    """The scores of one row, all to the places that tell the largest to three figures, and in full on hover."""
    peak = max((abs(score) for score in scores if math.isfinite(score)), default=0.0)
    places = 2 - math.floor(math.log10(peak)) if peak > 0 else 3
    for word, score, level in zip(words, scores, strengths(scores), strict=True):
        full = figures(score) if math.isfinite(score) else "–"
        text = number(score, places) if 0 <= places <= 5 and math.isfinite(score) else full
        yield Cell(text, level=level, title=f"\u2068{word}\u2069 {full}")


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


@cache
def _style() -> tuple[str, str]:
    """The style, and the class that it is bound to: another one for another version of it."""
    written = (TEMPLATES / "notebook.css").read_text(encoding="utf-8") + tree_style("&")
    name = f"assay-{hashlib.sha256(written.encode()).hexdigest()[:8]}"
    # twice the same class: it must weigh more than what a notebook says of tables
    return written.replace("&", f".{name}.{name}"), name
