"""A few examples as plain data: the words of each, and every explainer's scores of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from assay.grading.grade import trusted, trusts
from assay.records import Record
from assay.report import heatmaps
from assay.report.examples import DECEIVED, OTHER, SMALLEST, choose
from assay.writing import clipped

MOST = 8
"""So many are shown where a page would show more; all of them stand in the record."""

ROOM = 60
"""Tokens of a text; of longer ones those around the strongest."""

SHOWN = 6
"""Explainers beside each text, at most; the rest stand in the record."""


def samples(record: Record, order: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Groups of examples, each with the rule that chose them; of many explainers those that come first in `order`."""
    choices = choose(record, MOST)
    places = pa.array([row for choice in choices for row in choice.rows], pa.int64())
    rows, known = iter(record.examples.take(places).to_pylist()), trusts(record)
    return [
        {
            "title": choice.title,
            "rule": choice.rule,
            "examples": [_sample(record, next(rows), order, known) for _ in choice.rows],
        }
        for choice in choices
    ]


def strongest(words: Sequence[str], scores: Sequence[float], most: int = 5) -> list[tuple[str, float]]:
    """The words with the largest scores, for or against, the largest first; a score of 0 says nothing."""
    scored = [(word, score) for word, score in zip(words, scores, strict=True) if math.isfinite(score) and score != 0]
    return sorted(scored, key=lambda pair: -abs(pair[1]))[:most]


def _sample(
    record: Record, row: dict[str, Any], order: Sequence[str], known: Mapping[int, Mapping[str, float]]
) -> dict[str, Any]:
    trust = known.get(row["example"], {})
    classes = [str(name) for name in record.summary["corpus"]["classes"]]
    scores = {key.removeprefix("score:"): row[key] for key in row if key.startswith("score:") and row[key] is not None}
    names = sorted(scores, key=lambda name: (name != "attention", [*order, name].index(name)))[:SHOWN]
    first, last = heatmaps.window(next(iter(scores.values()), [0.0] * len(row["starts"])), ROOM)
    if "attention" in scores:
        first, last = heatmaps.window(scores["attention"], ROOM)
    kept = slice(first, last)
    return {
        "example": row["example"],
        "label": classes[row["label"]],
        "predicted": classes[row["predicted"]],
        "right": row["label"] == row["predicted"],
        "probability": row["probabilities"][row["predicted"]],
        "query": clipped(row["query"]) if row.get("query") else None,
        "before": first,
        "after": len(row["starts"]) - last,
        "words": [_piece(row["text"][start:end]) for start, end in zip(row["starts"], row["ends"], strict=True)][kept],
        "rows": [
            _scored(name, scores[name], kept) | {"trust": trusted(trust[name]) if name in trust else None}
            for name in names
        ]
        + _known(record, row, kept),
        "left_out": len(scores) - len(names),
    }


def _known(record: Record, row: dict[str, Any], kept: slice) -> list[dict[str, Any]]:
    """Other attention, and what is known of the words, where the record has them."""
    told = []
    if row.get(OTHER) is not None:
        told.append(_scored("furthest equivalent attention", row[OTHER], kept))
    if row.get(DECEIVED):
        told.append(_scored("deceiving attention of another model", row[DECEIVED], kept))
    if row.get("truth"):
        planted = record.summary["corpus"].get("planted", True)
        told.append(_flagged("deciding words" if planted else "words marked by people", row["truth"], kept))
    if row.get(SMALLEST):
        told.append(_flagged("smallest set that flips the decision", row[SMALLEST], kept))
    return told


def _scored(name: str, scores: Sequence[float], kept: slice) -> dict[str, Any]:
    """One line: scores as they are, and how strong each is beside the strongest of the whole text, from -8 to 8."""
    return {"name": name, "kind": "scores", "scores": scores[kept], "levels": heatmaps.strengths(scores)[kept]}


def _flagged(name: str, flags: Sequence[float | bool], kept: slice) -> dict[str, Any]:
    scores = [1.0 if flag else 0.0 for flag in flags]
    return _scored(name, scores, kept) | {"kind": "flags"}


def _piece(word: str) -> str:
    return word if len(word) <= heatmaps.PIECE else f"{word[: heatmaps.PIECE]}…"
