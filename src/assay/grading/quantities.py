"""What of a run can be put beside another: numbers, texts that are in both, and which runs differ by their seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from assay.grading.grade import AGREES as AGREEMENT
from assay.grading.grade import DECIDING, REFERENCE, TRUTH, yardstick
from assay.grading.leaderboard import Column, columns
from assay.lookup import over_all, side_by_side, texts
from assay.records import Finding, Record

ATTENTION = "attention"
YARDSTICKS = [(each.audit, each.measure) for each in (TRUTH, DECIDING)]
COURSE = ("data", "epochs", "best_epoch", "best_dev", "losses", "dev_scores", "skipped")
"""What the history of a model tells of how training went; `data` is a hash, and planted texts follow the seed."""


@dataclass(frozen=True)
class Quantity:
    """One number of an explainer in each run, and its number for each text; `rises` is None where no way is better."""

    audit: str
    measure: str
    title: str = field(compare=False)
    rises: bool | None = field(compare=False)
    meaning: str = field(compare=False)
    alone: bool = field(default=False, compare=False)  # whether it is one number of the model, not of each explainer

    def subjects(self, record: Record) -> dict[str, Finding]:
        """The explainers that have this number in a run, each with its finding over all texts."""
        found = {self._subject(each.subject): each for each in over_all(record, self.audit, self.measure)}
        return {name: each for name, each in found.items() if name in record.summary["explainers"]}

    def column(self, record: Record, subject: str) -> str | None:
        """The column of `instances` with the number of each text, or None."""
        names = [f"{self.measure}:{subject}"]
        if self.audit == AGREEMENT[0]:
            names = [f"{self.measure}:{subject}~{REFERENCE}", f"{self.measure}:{REFERENCE}~{subject}"]
        elif self.alone:
            names = [self.measure]
        return next((name for name in names if record.instances.schema.get_field_index(name) >= 0), None)

    def _subject(self, name: str) -> str:
        """The explainer that a finding is about: of a pair with the reference, the other one."""
        one, _, other = name.partition("~")
        if self.audit != AGREEMENT[0] or REFERENCE not in (one, other):
            return name
        return one if other == REFERENCE else other


AGREES = Quantity(*AGREEMENT, "τ with leave-one-out", True, "how alike its ranking is to that of deletion")
"""Where runs hold no number that a verdict could be read off."""


def known(records: Iterable[Record]) -> tuple[Quantity, ...]:
    """What any of the runs may have: the columns of leaderboards, the yardsticks first, and numbers of attention."""
    every = sorted((each for record in records for each in columns(record)), key=lambda each: each.measure.place)
    board = dict.fromkeys(map(_of_column, every))
    yardsticks = [each for each in board if (each.audit, each.measure) in YARDSTICKS]
    rest = [each for each in board if each not in yardsticks]
    return (*yardsticks, AGREES, *rest, *_of_attention(records))


def _of_column(column: Column) -> Quantity:
    return Quantity(column.audit, column.name, column.title, column.rises, column.meaning)


def _of_attention(records: Iterable[Record]) -> Iterable[Quantity]:
    """Numbers of attention itself, which no way is better of."""
    return dict.fromkeys(
        Quantity(audit, measure.name, measure.short, None, measure.help, alone=True)
        for record in records
        for audit, story in record.stories.items()
        for measure in story.measures
        if measure.short and not measure.column
    )


def headline(record: Record) -> Quantity:
    """What the grades of a run are given by."""
    found = yardstick(record)
    board = map(_of_column, columns(record))
    mine = Quantity(found.audit, found.measure, found.symbol, True, found.against)
    return next((each for each in board if each == mine), mine)


def quantities(records: Mapping[str, Record]) -> tuple[Quantity, ...]:
    """What two runs or more have a number of: yardsticks first, and τ only where none of them is there."""
    every = known(list(records.values()))
    held = [each for each in every if sum(bool(each.subjects(record)) for record in records.values()) > 1]
    judged = any(headline(record) in held for record in records.values())
    return tuple(each for each in held if each is not AGREES or not judged)


def why_not(quantity: Quantity, first: Record, second: Record) -> str | None:
    """Why the same quantity is not the same question in two runs, or None."""
    audit, summaries = quantity.audit, (first.summary, second.summary)
    if _options(first, audit) != _options(second, audit):
        return f"the audit “{audit}” had other options"
    asked = []
    if quantity.alone:
        items = [summary.get("model", {}).get("items", "words") for summary in summaries]
        asked.append(("attention is over {} in one and over {} in the other", items))
    if quantity.alone and audit == "adversary":
        epsilons = [summary.get("plan", {}).get("epsilon") for summary in summaries]
        kinds = [summary["audits"].get(audit, {}).get("kind") for summary in summaries]
        asked.append(("“the same prediction” is within {} in one and within {} in the other", epsilons))
        asked.append(("it is {} in one and {} in the other", kinds))
    return next((told.format(*both) for told, both in asked if both[0] != both[1]), None)


def _options(record: Record, audit: str) -> str:
    """The options of an audit as they stand in the plan."""
    named = (str(name).partition("(") for name in record.summary.get("plan", {}).get("audits", ()))
    return next((options for name, _, options in named if name.strip() == audit), "")


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


def _keys(record: Record) -> Iterator[tuple[str, str | None, str, int]]:
    """What makes a text the same: its words, its query, the name of its label, and how often it came before."""
    classes, examples = record.summary["corpus"]["classes"], record.examples
    queries = examples["query"].to_pylist() if "query" in examples.column_names else [None] * examples.num_rows
    seen: dict[tuple[str, str | None, str], int] = {}
    for text, query, label in zip(examples["text"].to_pylist(), queries, examples["label"].to_pylist(), strict=True):
        key = (text, query, str(classes[label]) if 0 <= label < len(classes) else str(label))
        seen[key] = seen.get(key, 0) + 1
        yield (*key, seen[key])


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
