"""The data of the example browser: up to 200 examples chosen by rule, with all scores as small whole numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from jaxtyping import Float

from assay.grading.grade import trusted, trusts
from assay.records import Record
from assay.report.examples import DECEIVED, EXACT, FIRST, MANY, OTHER, SMALLEST, Choice, choose, evidence, opening
from assay.report.heatmaps import PIECE, window
from assay.writing import number

MOST = 200
"""Examples in the browser; all others lie in the files beside a page."""

CELLS = 120_000
"""Scores in the browser together, about 400 kB; longer texts are cut to fit."""

LONGEST, LEAST = 400, 20
"""Tokens of a text that are shown at most, and those for which there is always room."""

STEPS = 999
"""A score is a whole number of steps up to the strongest of its row, which has this many."""

KEYS = {
    "Strongest disagreement": "worst",
    "Best agreement": "best",
    "Most disputed": "disputed",
    "At random": "random",
}
NONE = "none: whatever is erased, the decision stays"
QUERY = 600  # letters of a question that are shown

SHARED = ("example", "text", "query", "label", "predicted", "probabilities", "adversary_jsd", "adversary_tvd")


@dataclass(frozen=True)
class Line:
    """A column of the examples table as a row of the heat table."""

    column: str
    name: str
    remark: str = ""
    flags: bool = False
    none: str = ""  # what is said where no flag is set


def browse(record: Record, order: Sequence[str] = ()) -> dict[str, Any] | None:
    """What the browser shows, ready for JSON; None where a record has no examples. Rows stand in this order."""
    lines = _lines(record, order)
    room = max(8, CELLS // (LEAST * max(1, len(lines))))
    choices = choose(record, min(MOST, room, max(1, record.examples.num_rows)))
    if not choices:
        return None
    table = record.examples.take(pa.array([row for choice in choices for row in choice.rows], pa.int64()))
    lengths = _lengths(table)
    size = _window(lengths, len(lines))
    groups = [place for place, choice in enumerate(choices) for _ in choice.rows]
    shown = _Shown(record, table, lines, size)
    return {
        "classes": [str(name) for name in record.summary["corpus"]["classes"]],
        "groups": [_group(choice) for choice in choices],
        "rows": [{key: value for key, value in asdict(line).items() if value} for line in lines],
        "first": FIRST if len(lines) > MANY else None,
        "total": record.examples.num_rows,
        "steps": STEPS,
        "window": size if bool((lengths > size).any()) else None,
        "lengths": thirds(record),
        "examples": [{"group": group} | example for group, example in zip(groups, shown, strict=True)],
    }


def thirds(record: Record) -> tuple[int, int]:
    """Up to how many tokens a text counts as short, and up to how many as medium: thirds of all texts."""
    lengths = _lengths(record.examples)
    low, high = np.quantile(lengths, [1 / 3, 2 / 3]) if len(lengths) else (0, 0)
    return int(low), int(high)


def _group(choice: Choice) -> dict[str, str]:
    return {"key": KEYS.get(choice.title, choice.title.lower()), "title": choice.title, "rule": choice.rule}


def _lines(record: Record, order: Sequence[str]) -> list[Line]:
    """Attention with what could stand in its place, then all explainers from the best on, then what is known."""
    table = record.examples
    there = [name for name in table.column_names if table[name].null_count < table.num_rows]
    names = [name.removeprefix("score:") for name in there if name.startswith("score:")]
    ranked = sorted(names, key=lambda name: order.index(name) if name in order else len(order))
    first = [name for name in ranked if name == "attention"]
    lines = [Line(f"score:{name}", name) for name in first]
    if first and OTHER in there:
        lines.append(Line(OTHER, "furthest equivalent attention"))
    lines += [Line(f"score:{name}", name) for name in ranked if name not in first]
    extra = [
        Line(DECEIVED, "deceiving attention", "another model"),
        Line("truth", *evidence(record), flags=True),
        Line(SMALLEST, "smallest set that flips the decision", EXACT, flags=True, none=NONE),
    ]
    return lines + [line for line in extra if line.column in there]


def _lengths(table: pa.Table) -> np.ndarray:
    return np.asarray(pa.compute.list_value_length(table["starts"]).to_numpy())


def _window(lengths: np.ndarray, rows: int) -> int:
    """The most tokens of a text so that all rows of all texts hold no more than CELLS."""
    sizes = range(LONGEST, LEAST, -1)
    return next((size for size in sizes if rows * int(np.minimum(lengths, size).sum()) <= CELLS), LEAST)


class _Shown:
    """The examples of a table one by one, as the browser wants them."""

    def __init__(self, record: Record, table: pa.Table, lines: Sequence[Line], size: int) -> None:
        self.table, self.lines, self.size = table, lines, size
        self.trusts = trusts(record)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        rows = self.table.select([name for name in SHARED if name in self.table.column_names]).to_pylist()
        scores = {line.column: self.table[line.column] for line in self.lines}
        for place, row in enumerate(rows):
            starts, ends = (self.table[name][place].values.to_numpy() for name in ("starts", "ends"))
            mine = [_numbers(scores[line.column][place], len(starts)) for line in self.lines]
            yield self._example(row, starts, ends, mine)

    def _example(
        self, row: dict[str, Any], starts: np.ndarray, ends: np.ndarray, scores: list[np.ndarray | None]
    ) -> dict[str, Any]:
        guide = next((each for each in scores if each is not None), np.zeros(len(starts)))
        first, last = window(guide.tolist(), self.size)
        spans = zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True)
        query = {"query": opening(row["query"], QUERY)} if row.get("query") else {}
        remark: dict[str, Any] = {"remark": _distance(row)} if row.get("adversary_jsd") is not None else {}
        if known := self.trusts.get(row["example"]):
            remark["trust"] = {name: trusted(value) for name, value in known.items()}
        return {
            "number": row["example"],
            "label": row["label"],
            "predicted": row["predicted"],
            "probability": round(float(row["probabilities"][row["predicted"]]), 3),
            "opening": opening(row["text"]),
            "length": len(starts),
            "first": first,
            "words": [_piece(row["text"], start, end) for start, end in spans],
            "scores": [None if each is None else _steps(each, first, last) for each in scores],
        } | (query | remark)


def _distance(row: dict[str, Any]) -> str:
    return f"JSD {number(row['adversary_jsd'])}, TVD {number(row.get('adversary_tvd'))}"


def _piece(text: str, start: int, end: int) -> str:
    return text[start:end] if end - start <= PIECE else f"{text[start : start + PIECE]}…"


def _numbers(scores: Any, tokens: int) -> Float[np.ndarray, " T"] | None:
    """The scores of one text; None where an example has none, as with evidence that is not known."""
    if not scores.is_valid or len(scores.values) != tokens:
        return None
    return np.asarray(scores.values.to_numpy(zero_copy_only=False)).astype(float)


def _steps(scores: Float[np.ndarray, " T"], first: int, last: int) -> list[Any]:
    """The strongest of the whole text, then each score that is shown in steps up to it; None where there is no number.

    A score is told to a thousandth of the strongest, which is finer than any shade.
    """
    finite = np.isfinite(scores)
    peak = float(np.abs(scores[finite]).max(initial=0.0))
    scaled = np.where(finite, scores, 0.0)[first:last] / (peak or 1.0)
    steps = np.rint(STEPS * scaled).astype(int).tolist()
    known = finite[first:last].tolist()
    told = float(f"{peak:.4g}") if math.isfinite(peak) else 0.0
    return [told, *(step if there else None for step, there in zip(steps, known, strict=True))]
