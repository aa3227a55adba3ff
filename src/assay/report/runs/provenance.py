"""What differs between the plans, models, data and versions of runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assay.records import Record
from assay.report.plain import line

SHOWN = ("command", "created", "assay", "versions", "platform", "device", "plan", "corpus", "model")
COURSE = ("losses", "dev_scores")
LONG = 240
ABSENT = "–"


@dataclass(frozen=True)
class Provenance:
    """What differs, as a name and a text for each run, and the names of what is the same in all."""

    different: tuple[tuple[str, tuple[str, ...]], ...]
    same: tuple[tuple[str, str], ...]


def provenance(records: Mapping[str, Record]) -> Provenance:
    """The facts of all runs, sorted into those that differ and those that do not."""
    held = [dict(_facts(record.summary)) for record in records.values()]
    rows = [
        (name, tuple(facts.get(name, ABSENT) for facts in held)) for name in dict.fromkeys(n for f in held for n in f)
    ]
    return Provenance(
        tuple((name, texts) for name, texts in rows if len(set(texts)) > 1),
        tuple((name, texts[0]) for name, texts in rows if len(set(texts)) == 1),
    )


def _facts(summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in SHOWN:
        if name in summary:
            yield from _flat(name, summary[name])


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A value under its name, and what is inside a dictionary under names with dots."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in COURSE:
                yield from _flat(f"{name}.{key}", inner)
    else:
        yield name, _short(value)


def _short(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return line(text if len(text) <= LONG else f"{text[:LONG]} …")
