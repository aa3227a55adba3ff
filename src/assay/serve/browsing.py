"""Search, filter, sort and page the list of runs, by the query string of the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import AssayError
from assay.serve.library import Run

GRADES = ("pass", "warn", "fail", "not applicable")
A_PAGE = 50
SORTS: dict[str, tuple[str, Callable[[Run], Any], bool]] = {
    "newest": ("newest first", lambda run: run.created, True),
    "oldest": ("oldest first", lambda run: run.created, False),
    "name": ("by name", lambda run: run.name.casefold(), False),
    "corpus": ("by corpus", lambda run: (run.corpus.casefold(), run.name.casefold()), False),
    "accuracy": ("most accurate model first", lambda run: -1.0 if run.accuracy is None else run.accuracy, True),
    "grade": ("by verdict, passes first", lambda run: GRADES.index(run.grade), False),
}
"""What a page may be sorted by: its words, what is compared, and whether the largest comes first."""


@dataclass(frozen=True)
class RunFilter:
    """Filter, order and page of the list of runs; an empty string filters nothing."""

    search: str = ""
    corpus: str = ""
    model: str = ""
    grade: str = ""
    sort: str = "newest"
    page: int = 1

    def __post_init__(self) -> None:
        if self.sort not in SORTS:
            raise AssayError(f"Runs can be sorted by {', '.join(SORTS)}.")
        if self.grade and self.grade not in GRADES:
            raise AssayError(f"A verdict is one of {', '.join(GRADES)}.")

    @property
    def narrow(self) -> bool:
        return bool(self.search or self.corpus or self.model or self.grade)

    def matches(self, run: Run, but: str = "") -> bool:
        """Whether a run passes the filter, ignoring the field `but`."""
        wanted = {"corpus": self.corpus, "model": self.model, "grade": self.grade}
        if any(value and name != but and getattr(run, name) != value for name, value in wanted.items()):
            return False
        words = f"{run.name} {run.corpus} {run.model} {run.headline} {' '.join(run.explainers)}".casefold()
        return all(word in words for word in self.search.casefold().split())


@dataclass(frozen=True)
class RunPage:
    """One page of the list: its runs, the total, and how many runs each choice of a filter would show."""

    runs: tuple[Run, ...]
    total: int
    page: int
    pages: int
    choices: dict[str, list[tuple[str, int]]]


def browse(runs: Sequence[Run], wanted: RunFilter) -> RunPage:
    """The page of runs that the filter selects, or the last page where there are fewer."""
    _, key, largest = SORTS[wanted.sort]
    found = sorted((run for run in runs if wanted.matches(run)), key=key, reverse=largest)
    pages = max(1, -(-len(found) // A_PAGE))
    page = min(max(wanted.page, 1), pages)
    choices = {field: _choices(runs, wanted, field) for field in ("corpus", "model", "grade")}
    return RunPage(tuple(found[A_PAGE * (page - 1) : A_PAGE * page]), len(found), page, pages, choices)


def _choices(runs: Sequence[Run], wanted: RunFilter, field: str) -> list[tuple[str, int]]:
    counts = Counter(str(getattr(run, field)) for run in runs if wanted.matches(run, but=field))
    chosen = getattr(wanted, field)
    counts.update({chosen: 0} if chosen else {})  # what is chosen stays in sight even where nothing is left of it
    return sorted(counts.items(), key=lambda choice: choice[0].casefold())
