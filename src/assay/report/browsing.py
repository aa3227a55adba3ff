"""The data of the example browser: up to 200 examples chosen by rule, with all scores as small whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from assay.document import Example
from assay.records import Record
from assay.report.examples import (
    FIRST,
    LEAST,
    MANY,
    OTHER,
    Source,
    choose,
    lengths,
    shown_examples,
    sources,
    window,
)
from assay.report.heatmaps import PIECE

MOST = 200
"""Examples in the browser; all others lie in the files beside a page."""

CELLS = 120_000
"""Scores in the browser together, about 400 kB; longer texts are cut to fit."""

LONGEST = 400
"""Tokens of a text that are shown at most."""

STEPS = 999
"""A score is a whole number of steps up to the strongest of its row, which has this many."""

KEYS = {
    "Strongest disagreement": "worst",
    "Best agreement": "best",
    "Most disputed": "disputed",
    "At random": "random",
}


def browse(record: Record, order: Sequence[str] = ()) -> dict[str, Any] | None:
    """What the browser shows, ready for JSON; None where a record has no examples. Rows stand in this order."""
    found = sources(record, order)
    room = max(8, CELLS // (LEAST * max(1, len(found))))
    choices = choose(record, min(MOST, room, max(1, record.examples.num_rows)))
    if not choices:
        return None
    size = window(record, choices, len(found), CELLS, LONGEST)
    classes = [str(name) for name in record.summary["corpus"]["classes"]]
    groups = [place for place, choice in enumerate(choices) for _ in choice.rows]
    shown = [_data(example, found, classes) for example in shown_examples(record, choices, found, size)]
    return {
        "classes": classes,
        "groups": [{"key": _key(choice.title), "title": choice.title, "rule": choice.rule} for choice in choices],
        "rows": [{key: value for key, value in asdict(source).items() if value} for source in found],
        "first": FIRST if len(found) > MANY else None,
        "total": record.examples.num_rows,
        "steps": STEPS,
        "window": size if any(example["length"] > size for example in shown) else None,
        "lengths": thirds(record),
        "examples": [{"group": group} | example for group, example in zip(groups, shown, strict=True)],
    }


def thirds(record: Record) -> tuple[int, int]:
    """Up to how many tokens a text counts as short, and up to how many as medium: thirds of all texts."""
    every = lengths(record)
    low, high = np.quantile(every, [1 / 3, 2 / 3]) if len(every) else (0, 0)
    return int(low), int(high)


def _key(title: str) -> str:
    return KEYS.get(title, title.lower())


def _data(example: Example, found: Sequence[Source], classes: Sequence[str]) -> dict[str, Any]:
    lines = {line.name: line for line in (*example.lines, *example.rest)}
    remarks = {name: line.remark for name, line in lines.items() if line.remark}
    trust = {name: remark for name, remark in remarks.items() if lines[name].kind == "explainer"}
    moved = next((remarks[each.name] for each in found if each.column == OTHER and each.name in lines), "")
    own = {"query": example.query, "remark": moved, "trust": trust}
    return {
        "number": example.number,
        "label": classes.index(example.label),
        "predicted": classes.index(example.predicted),
        "probability": round(float(example.probability), 3),
        "opening": example.opening,
        "length": len(example.starts),
        "first": example.first,
        "words": [word if len(word) <= PIECE else f"{word[:PIECE]}…" for word in example.words],
        "scores": [_steps(lines[each.name].scores, example) if each.name in lines else None for each in found],
    } | {name: value for name, value in own.items() if value}


def _steps(given: Sequence[float], example: Example) -> list[Any]:
    """The strongest of the whole text, then each score that is shown in steps up to it; None where there is no number.

    A score is told to a thousandth of the strongest, which is finer than any shade.
    """
    scores = np.array(given, float)
    finite = np.isfinite(scores)
    peak = float(np.abs(scores[finite]).max(initial=0.0))
    steps = np.rint(STEPS * np.where(finite, scores, 0.0) / (peak or 1.0)).astype(int).tolist()
    told = [step if there else None for step, there in zip(steps, finite.tolist(), strict=True)]
    return [float(f"{peak:.4g}") if math.isfinite(peak) else 0.0, *told[example.first : example.last]]
