"""Compares two study folders, number for number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.records import Record
from assay.study.folder import Folder
from assay.study.trials import Trial

NAMES = ("audit", "subject", "measure", "group")
NUMBERS = ("mean", "low", "high", "std", "n", "undefined", "significant", "p_value")


@dataclass(frozen=True)
class Difference:
    """A number that differs between two trials; without a size, it is missing from one of them."""

    where: str
    first: int | float | None
    second: int | float | None

    @property
    def size(self) -> float:
        return float("inf") if self.first is None or self.second is None else abs(self.first - self.second)


@dataclass(frozen=True)
class Comparison:
    """How many trials and numbers two studies share, and the differences."""

    shared: int
    only_first: int
    only_second: int
    findings: int  # numbers that were compared, of shared trials
    differing: int  # trials in which a number differs
    largest: Difference | None

    @property
    def identical(self) -> bool:
        return self.shared > 0 and self.differing == 0


def compared(first: Path, second: Path) -> Comparison:
    """Compares the finished trials of two folders that have the same identity."""
    marks = [_marks(first), _marks(second)]
    shared = [identity for identity in marks[0] if identity in marks[1]]
    findings, differences = 0, []
    for identity in shared:
        title = Trial.of(marks[0][identity]["trial"]).title
        ours, theirs = (_numbers(folder / "trials" / identity) for folder in (first, second))
        findings += len(ours)
        differences.append(_largest(ours, theirs, title))
    found = [each for each in differences if each is not None]
    largest = max(found, key=lambda each: each.size, default=None)
    only = [len(own) - len(shared) for own in marks]
    return Comparison(len(shared), only[0], only[1], findings, len(found), largest)


def _marks(place: Path) -> dict[str, dict[str, Any]]:
    if not (place / "trials").is_dir():
        raise AssayError(f"{place} is no folder of a study: it has no trials; name one that 'assay study' has left.")
    return Folder(place).marks()


def _numbers(folder: Path) -> dict[str, int | float | None]:
    """Every number of a trial, by its location."""
    return {
        " · ".join([*(str(row[name]) for name in NAMES), number]): row.get(number)
        for row in Record.read(folder).summary["findings"]
        for number in NUMBERS
    }


def _largest(
    first: Mapping[str, int | float | None], second: Mapping[str, int | float | None], title: str
) -> Difference | None:
    differing = [
        Difference(f"{title} · {where}", first.get(where), second.get(where))
        for where in {**first, **second}
        if first.get(where) != second.get(where)
    ]
    return max(differing, key=lambda each: each.size, default=None)
