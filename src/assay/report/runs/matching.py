"""Which texts two runs have in common, and their numbers in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float, Int

from assay.lookup import side_by_side, texts
from assay.records import Record

Key = tuple[str, str | None, str, int]


def matched(first: Record, second: Record) -> Int[np.ndarray, "n 2"]:
    """The places in both tables of examples that hold the same text, query and label; each is used once."""
    there = {key: place for place, key in enumerate(_keys(second))}
    pairs = [(place, there[key]) for place, key in enumerate(_keys(first)) if key in there]
    return np.array(pairs, dtype=int).reshape(-1, 2)


def numbers(record: Record, audit: str, columns: Sequence[str]) -> Float[np.ndarray, "n k"]:
    """These columns of an audit in the order of the table of examples; nan where a text has no number."""
    place = {example: row for row, example in enumerate(record.examples["example"].to_pylist())}
    ordered = np.full((record.examples.num_rows, len(columns)), np.nan)
    ordered[[place[example] for example in texts(record, audit).tolist()]] = side_by_side(record, audit, columns)
    return ordered


def _keys(record: Record) -> Iterator[Key]:
    """What makes a text the same: its words, its query, the name of its label, and how often it came before."""
    classes, examples = record.summary["corpus"]["classes"], record.examples
    queries = examples["query"].to_pylist() if "query" in examples.column_names else [None] * examples.num_rows
    seen: dict[tuple[str, str | None, str], int] = {}
    for text, query, label in zip(examples["text"].to_pylist(), queries, examples["label"].to_pylist(), strict=True):
        key = (text, query, str(classes[label]) if 0 <= label < len(classes) else str(label))
        seen[key] = seen.get(key, 0) + 1
        yield (*key, seen[key])
