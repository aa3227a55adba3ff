"""Which runs are the same but for the seed of training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from assay.records import Record

COURSE = ("data", "epochs", "best_epoch", "best_dev", "losses", "dev_scores", "skipped")
"""What the history of a model tells of how training went; `data` is a hash, and planted texts follow the seed."""


def seed(record: Record) -> int | None:
    """The seed that the model was trained with, or None where the record does not say."""
    recipe = _history(record).get("recipe") or {}
    known = (recipe.get("training") or {}).get("seed", recipe.get("seed"))
    return known if isinstance(known, int) else None


def groups(records: Mapping[str, Record]) -> list[tuple[str, ...]]:
    """The names of runs that differ only by the seed of training, at least two together, in their order.

    Runs of which two have the same seed are no such group: one may be a copy of the other.
    """
    alike: dict[str, list[str]] = {}
    for name, record in records.items():
        if seed(record) is not None:
            alike.setdefault(_but_for_seeds(record), []).append(name)
    return [
        tuple(names)
        for names in alike.values()
        if len(names) > 1 and len({seed(records[name]) for name in names}) == len(names)
    ]


def _but_for_seeds(record: Record) -> str:
    """Corpus, recipe and plan of a run as one text, without any seed."""
    summary, corpus = record.summary, record.summary["corpus"]
    history = {key: value for key, value in _history(record).items() if key not in COURSE}
    kept = {
        "corpus": {key: corpus.get(key) for key in ("name", "classes", "split")},
        "model": {"description": summary.get("model", {}).get("description"), "history": history},
        "plan": summary.get("plan", {}),
    }
    return json.dumps(_without_seeds(kept), sort_keys=True, default=str)


def _without_seeds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_seeds(inner) for key, inner in value.items() if key != "seed"}
    return [_without_seeds(inner) for inner in value] if isinstance(value, list) else value


def _history(record: Record) -> dict[str, Any]:
    return record.summary.get("model", {}).get("history") or {}
