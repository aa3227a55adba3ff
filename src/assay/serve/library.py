"""Finished audits below some folders: scanned, read with distrust, filtered; no request becomes a path."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from assay.audits.findings import tell
from assay.errors import AssayError
from assay.grading.grade import Grade
from assay.lookup import WORDS
from assay.records import EXAMPLES, FIRST_LAYER, INSTANCES, NEEDED, SUMMARY, Record, from_zero
from assay.report.figures import KINDS, VERDICT
from assay.report.outcome import outcome
from assay.stories import Story

# Reads untrusted records: only the columns that a page needs, with limits on sizes, and only inside the folder.


LARGEST = 64 * 2**20  # bytes of a summary
LONGEST = 160  # letters of a name
ENOUGH = 2000  # letters of any text in a summary
ENDLESS = re.compile(rb'[^"]{%d}' % ENOUGH)
JUDGED = {
    EXAMPLES: ("label", "predicted", "starts", "truth"),
    INSTANCES: ("audit", "erased:", "fraction:", "never:", "right:"),
}
"""The columns that verdicts are made of, by how their names start: far fewer than a file holds."""


def plain(text: object, longest: int = LONGEST) -> str:
    """One line of text: control characters made visible, whitespace collapsed, cut to a length."""
    whole = str(text)
    shown = whole[:longest] + ("…" if len(whole) > longest else "")
    return "".join(" " if letter.isspace() else "�" if _unprinted(letter) else letter for letter in shown)


def _unprinted(letter: str) -> bool:
    return letter < " " or "\x7f" <= letter < "\xa0" or "\ud800" <= letter <= "\udfff"


def within(path: Path, root: Path) -> Path:
    """The path of a file inside the folder; raises where a link leads out of it."""
    if not path.resolve().is_relative_to(root):
        raise AssayError(f"{path.name} is a link that leads out of the folder.")
    if not path.is_file():
        raise AssayError(f"{path.name} is missing.")
    return path


def judged(folder: Path, root: Path, every_row: bool = False) -> Record:
    """A record with only the columns that verdicts need."""
    summary = summarised(within(folder / SUMMARY, root))
    instances = _columns(within(folder / INSTANCES, root), None if every_row else JUDGED[INSTANCES])
    return tell(Record(summary, instances, _columns(within(folder / EXAMPLES, root), JUDGED[EXAMPLES])))


def summarised(path: Path) -> dict[str, Any]:
    """A summary checked for the required fields, with overlong texts cut."""
    if path.stat().st_size > LARGEST:
        raise AssayError(f"{SUMMARY} is larger than {LARGEST // 2**20} MB.")
    text = path.read_bytes()
    try:
        summary: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise AssayError(f"{SUMMARY} is not JSON.") from fault
    if lacking := [key for key in NEEDED if key not in summary]:
        raise AssayError(f"{SUMMARY} lacks {', '.join(lacking)}.")
    summary = summary if FIRST_LAYER in summary else from_zero(summary)
    return _cut(summary) if ENDLESS.search(text) else summary


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _cut(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_cut(inner) for inner in value]
    return f"{value[:ENOUGH]}…" if isinstance(value, str) and len(value) > ENOUGH else value


def _columns(path: Path, starts: tuple[str, ...] | None) -> pa.Table:
    try:
        with pq.ParquetFile(path.absolute()) as file:
            names = file.schema_arrow.names
            return file.read([each for each in names if starts is None or each.startswith(starts)])
    except (OSError, pa.ArrowException) as fault:
        raise AssayError(f"{path.name} is damaged.") from fault


# Scans folders for finished audits; nothing in a request becomes a path.


DEPTH = 4  # folders below the given ones
FOLDERS = 20_000  # that one look goes through
FILES = (SUMMARY, INSTANCES, EXAMPLES)

Stamp = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Run:
    """One finished audit; its texts are short and hold no control characters, but are untrusted."""

    id: str
    name: str
    folder: Path
    root: Path
    stamp: Stamp  # another one after the files have changed
    corpus: str
    model: str
    created: str
    audited: int
    accuracy: float | None
    grade: Grade
    headline: str
    explainers: tuple[str, ...]
    audits: tuple[str, ...]
    figures: Mapping[str, str] = field(default_factory=dict)  # those that it may have, with their titles

    def file(self, name: str) -> Path:
        """The path of one of its files, which must lie within the app's folders."""
        return within(self.folder / FILES[FILES.index(name)], self.root)

    def read(self) -> Record:
        """The complete record."""
        for name in FILES:
            self.file(name)
        return tell(replace(Record.read(self.folder), summary=summarised(self.file(SUMMARY))))

    def judged(self, every_row: bool = False) -> Record:
        """The record with the columns that verdicts need, or also all of `instances`, for figures."""
        return judged(self.folder, self.root, every_row)


@dataclass(frozen=True)
class Damaged:
    """A folder that looks like a finished audit and cannot be read."""

    name: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """The result of a scan; `cut` where there were too many folders."""

    runs: tuple[Run, ...]
    damaged: tuple[Damaged, ...]
    cut: bool


class Library:
    """Scans folders repeatedly; a run is read again only when its files change."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._roots = tuple(dict.fromkeys(folder.resolve() for folder in folders))
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[Stamp, Run | Damaged]] = {}
        self._listing = Listing((), (), False)

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        return list(self.look().runs)

    def look(self) -> Listing:
        """Scans the folders."""
        with self._lock:
            places, cut = _places(self._roots)
            self._known = {folder: self._entry(folder, root) for folder, root in places.items()}
            entries = _named([entry for _, entry in self._known.values()])
            runs = [entry for entry in entries if isinstance(entry, Run)]
            runs.sort(key=lambda run: (run.created, run.name), reverse=True)
            damaged = tuple(entry for entry in entries if isinstance(entry, Damaged))
            self._listing = Listing(tuple(runs), damaged, cut)
            return self._listing

    def run(self, id: str) -> Run | None:
        """The run with this id; scans again where it is not known yet."""
        known = next((run for run in self._listing.runs if run.id == id), None)
        if known is not None and _stamp(known.folder) == known.stamp:
            return known
        return next((run for run in self.look().runs if run.id == id), None)

    def _entry(self, folder: Path, root: Path) -> tuple[Stamp, Run | Damaged]:
        stamp = _stamp(folder)
        known = self._known.get(folder)
        return known if known is not None and known[0] == stamp else (stamp, self._read(folder, root, stamp))

    def _read(self, folder: Path, root: Path, stamp: Stamp) -> Run | Damaged:
        own = folder.relative_to(root).parts
        parts = (root.name, *own) if len(self._roots) > 1 or not own else own
        name = plain("/".join(parts))
        try:
            return _run(folder, root, stamp, name)
        except AssayError as fault:
            return Damaged(name, str(fault))
        except Exception as fault:  # a folder may hold anything; one that breaks must not hide the others
            return Damaged(
                name, plain(f"{SUMMARY} does not hold what an audit leaves ({type(fault).__name__}: {fault})")
            )


def _places(roots: Sequence[Path]) -> tuple[dict[Path, Path], bool]:
    """Folders with a summary and the root of each, and whether the scan was cut short."""
    seen: dict[Path, Path] = {}
    walked = ((root, *found) for root in roots for found in _walk(root, DEPTH))
    for number, (root, folder, names) in enumerate(walked):
        if number == FOLDERS:
            return seen, True
        if SUMMARY in names:
            seen.setdefault(folder, root)
    return seen, False


def _walk(folder: Path, depth: int) -> Iterator[tuple[Path, list[str]]]:
    """Folders from here down with their entries; links and hidden folders are skipped."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    yield folder, [entry.name for entry in entries]
    for entry in entries if depth else []:
        if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
            yield from _walk(folder / entry.name, depth - 1)


def _stamp(folder: Path) -> Stamp:
    """Modification times and sizes, by which a change is noticed."""
    states = []
    for name in FILES:
        try:
            state = (folder / name).stat()
            states.append((state.st_mtime_ns, state.st_size))
        except (OSError, ValueError):
            states.append((0, -1))
    return tuple(states)


def _run(folder: Path, root: Path, stamp: Stamp, name: str) -> Run:
    record = judged(folder, root)
    found = outcome(record)
    summary = record.summary
    corpus, model = summary["corpus"], summary.get("model") or {}
    accuracy = (model.get("test") or {}).get("accuracy")
    return Run(
        id=hashlib.sha256(os.fsencode(folder)).hexdigest()[:16],
        name=name,
        folder=folder,
        root=root,
        stamp=stamp,
        corpus=plain(corpus["name"]),
        model=plain(model.get("description") or "not described"),
        created=plain(summary.get("created") or ""),
        audited=int(corpus.get("audited", record.examples.num_rows)),
        accuracy=float(accuracy) if isinstance(accuracy, (int, float)) and math.isfinite(accuracy) else None,
        grade=found.grade,
        headline=plain(found.headline, 4 * LONGEST),
        explainers=tuple(plain(each) for each in summary["explainers"]),
        audits=tuple(str(each) for each, about in summary["audits"].items() if about.get("applies", True)),
        figures=figures_of(
            story for each, story in record.stories.items() if summary["audits"][each].get("applies", True)
        ),
    )


def figures_of(stories: Iterable[Story]) -> dict[str, str]:
    """What each figure of some audits is called in a list: its own name, and the question of its audit."""
    found = {VERDICT: VERDICT.capitalize()}
    for story in stories:
        for drawing in story.drawings:
            if drawing.kind in KINDS:
                words = drawing.name.replace("_", " ").capitalize()
                found.setdefault(drawing.name, plain(f"{words}: {WORDS.named(story.title)}"))
    return found


def _named(entries: list[Run | Damaged]) -> list[Run | Damaged]:
    """The entries with unique names, where folders are called alike or names were cut."""
    taken: set[str] = set()
    different: list[Run | Damaged] = []
    for entry in entries:
        others = (f"{entry.name} ({again})" for again in itertools.count(2))
        name = next(each for each in itertools.chain([entry.name], others) if each not in taken)
        taken.add(name)
        different.append(replace(entry, name=name))
    return different


# Search, filter, sort and page the list of runs, by the query string of the address.


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
