"""A study from its plan to its tables: it runs what is missing, estimates the rest, writes, and compares two."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from filelock import FileLock

from assay import progress
from assay.errors import AssayError
from assay.files import write_text
from assay.records import Record, write_table
from assay.report import html
from assay.study import plans as plan_file
from assay.study.attempts import Outcome, is_trained, store_outcome
from assay.study.engines import Engine, EngineSettings
from assay.study.engines import engine as named_engine
from assay.study.plans import StudyPlan
from assay.study.questions import Finished, Found, answered, finished, missing, questions
from assay.study.results import Answer, Line, Study, long
from assay.study.study_page import as_markdown, document, separated
from assay.study.trials import (
    AuditSet,
    Folder,
    Trial,
    TrialStatus,
    counted,
    model_folder,
    opened,
    trial_statuses,
    unique,
)

# Runs the missing trials of a plan, each once, even if several processes share the folder.


PATIENCE = 2.0  # seconds between looks at a trial that another process is making


@dataclass
class Tally:
    """Counts of a run: finished, failed, and run by other processes."""

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # reasons by title
    elsewhere: int = 0  # made meanwhile by another process


def run(trials: Sequence[Trial], place: Path, engine: Engine, retry: bool = False) -> Tally:
    """Runs the trials that are neither finished nor failed; with `retry` the failed ones, too."""
    folder, tally = opened(place), Tally()
    missing = [trial for trial in unique(trials) if folder.done(trial) is None]
    for trial in missing if retry else ():
        folder.forget(trial)
    missing = [trial for trial in missing if folder.reason(trial) is None]
    with progress.bar("status") as shown:
        task = shown.add_task("trials", total=len(missing), status="")
        while missing:
            waiting: list[Trial] = []
            with closing(_outcomes(missing, folder, engine, waiting.append)) as outcomes:
                for outcome in outcomes:
                    _settle(outcome, folder, tally)
                    shown.update(task, advance=1, status=_status(tally))
            before = len(waiting)
            missing = [trial for trial in waiting if folder.done(trial) is None and folder.reason(trial) is None]
            tally.elsewhere += before - len(missing)
            shown.update(task, advance=before - len(missing), status=_status(tally))
            if missing:
                time.sleep(PATIENCE)
    return tally


def _outcomes(
    trials: Sequence[Trial], folder: Folder, engine: Engine, busy: Callable[[Trial], None]
) -> Generator[Outcome, None, None]:
    """Outcomes of the trials that no other process runs; each is locked until its outcome is handled."""
    claims: dict[str, FileLock] = {}
    outcomes = engine(_claimed(trials, folder, claims, busy), folder.place)
    try:
        for outcome in outcomes:
            yield outcome
            claims.pop(outcome.trial.identity).release()
    finally:
        if isinstance(outcomes, Generator):
            outcomes.close()  # nobody works any more when others may claim the rest
        for lock in claims.values():
            lock.release()


def _claimed(
    trials: Sequence[Trial], folder: Folder, claims: dict[str, FileLock], busy: Callable[[Trial], None]
) -> Iterator[Trial]:
    """The trials that no other process runs, locked one by one as the engine takes them."""
    for trial in trials:
        lock = folder.claim(trial)
        if lock is None:
            busy(trial)
        elif (
            folder.done(trial) is not None or folder.reason(trial) is not None
        ):  # by another process, since the list was made
            lock.release()
            busy(trial)
        else:
            claims[trial.identity] = lock
            yield trial


def _settle(outcome: Outcome, folder: Folder, tally: Tally) -> None:
    if outcome.full:
        raise AssayError("The disk is full; make room, and run the same command again: what is finished is kept.")
    if outcome.reason is not None:
        folder.fail(outcome.trial, outcome.reason, outcome.details)
        tally.failed[outcome.trial.title] = outcome.reason
        return
    if outcome.files is not None:
        store_outcome(outcome, folder)
    tally.done += 1


def _status(tally: Tally) -> str:
    return f"{len(tally.failed)} failed" if tally.failed else ""


# Estimates the remaining time of a study from finished trials, or else describes the remaining work.


LIKENESSES: tuple[Callable[[Trial], Hashable], ...] = (  # the nearest first
    lambda trial: (trial.corpus, trial.kind, trial.audit_set),
    lambda trial: (trial.kind, trial.audit_set),
    lambda trial: trial.audit_set,
    lambda trial: None,
)


def seconds_left(found: Sequence[TrialStatus], jobs: int = 1) -> float | None:
    """Estimated seconds for the unfinished trials, so many at once; None where none is finished yet.

    Each is taken to last as long as, on average, those finished ones that are most like it.
    """
    left = [each.trial for each in found if each.state in ("missing", "under way")]
    if not left:
        return 0.0
    known = [each for each in found if each.seconds is not None]
    if not known:
        return None
    lasting = [_likely(trial, known) for trial in left]
    return max(sum(lasting) / jobs, max(lasting))


def untrained(trials: Sequence[Trial], place: Path) -> int:
    """The number of models still to be trained."""
    wanted = {model_folder(place, trial) for trial in trials if trial.kind.path is None}
    return sum(not is_trained(folder) for folder in wanted)


def work(trials: Sequence[Trial]) -> list[str]:
    """The work of each set of audits in words: texts and explainers."""
    return [
        f"{number} × ({_explained(audit_set)})"
        for audit_set, number in Counter(trial.audit_set for trial in trials).items()
    ]


def span(seconds: float) -> str:
    """A duration in words."""
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            digits = 0 if seconds >= 10 * size else 1
            return f"about {seconds / size:.{digits}f} {name}"
    return f"about {max(1, round(seconds))} second{'s' if seconds >= 1.5 else ''}"


def _explained(audit_set: AuditSet) -> str:
    texts = "all test texts" if audit_set.limit is None else f"{audit_set.limit} test texts"
    return f"{texts} × {len(audit_set.explainers)} explainer{'s' if len(audit_set.explainers) > 1 else ''}"


def _likely(trial: Trial, known: Sequence[TrialStatus]) -> float:
    for likeness in LIKENESSES:
        alike = [each.seconds for each in known if likeness(each.trial) == likeness(trial) and each.seconds is not None]
        if alike:
            return fmean(alike)
    raise AssertionError("all trials are alike in the last way")


# Compares two study folders, number for number.


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


# Writes the tables of a study as files; equal trials give equal bytes.


TABLES, FINDINGS, PAGE = "tables", "findings.parquet", "study.html"
OURS = re.compile(r"\d{2,}-[a-z0-9-]*\.(md|csv)")
LONGEST = 60  # letters of a name


def write(plan: StudyPlan, folder: Folder, found: Found | None = None) -> list[Path]:
    """Writes a table for each question, all findings and the page; returns their paths.

    What was found may be given, where trials come from elsewhere than the folder.
    """
    asked = questions(plan)
    found = finished(plan.trials, folder) if found is None else found
    study = studied(plan, found, tuple(answered(question, plan, found) for question in asked))
    written = []
    for place, answer in enumerate(study.answers, start=1):
        for ending, text in ((".md", as_markdown(answer)), (".csv", separated(answer))):
            path = folder.place / TABLES / f"{named(place, answer)}{ending}"
            write_text(path, text)
            written.append(path)
    _clear(folder.place / TABLES, written)
    write_table(long(list(_lines(plan, found))), folder.place / FINDINGS)
    html.write(document(study), folder.place / PAGE)
    return [*written, folder.place / FINDINGS, folder.place / PAGE]


def studied(plan: StudyPlan, found: Found, answers: tuple[Answer, ...]) -> Study:
    """The study with its answers and its progress."""
    lacking = missing(plan.trials, found)
    return Study(
        plan.name,
        tuple(each.title for each in plan.corpora),
        tuple(each.name for each in plan.models),
        plan.seeds,
        len(plan.trials),
        len(plan.trials) - len(lacking),
        answers,
        lacking,
    )


def named(place: int, answer: Answer) -> str:
    """The file name of a table."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{answer.audit}-{answer.measure}".lower())[:LONGEST].strip("-")
    return f"{place:02d}-{slug}"


def _lines(plan: StudyPlan, found: Found) -> Iterator[Line]:
    """Every finding over all texts, trial by trial in plan order."""
    for trial in plan.trials:
        each = found[trial.identity]
        if isinstance(each, Finished):
            names = (trial.corpus.title, trial.kind.name, trial.seed, trial.audit_set.name)
            for (audit, subject, measure), one in each.findings.items():
                yield Line(*names, audit, subject, measure, one.mean, one.low, one.high, one.n, one.kind)


def _clear(tables: Path, written: list[Path]) -> None:
    """Deletes tables of questions that are no longer in the plan."""
    for path in tables.iterdir() if tables.is_dir() else ():
        if OURS.fullmatch(path.name) and path not in written:
            path.unlink(missing_ok=True)


# A study from its plan to its tables.


@dataclass(frozen=True)
class Studied:
    """A study as it stands in its folder: its trials, and the files that were written of those that are done."""

    plan: StudyPlan
    folder: Path
    trials: list[TrialStatus]
    paths: list[Path]

    def __str__(self) -> str:
        counts = ", ".join(f"{number} {state}" for state, number in counted(self.trials).items() if number)
        return f"Study {self.plan.name} in {self.folder}: {len(self.trials)} trials, {counts}."


def study(
    plan: str | Path,
    out: str | Path | None = None,
    engine: str | Engine = "local",
    jobs: int | None = None,
    device: str | None = None,
    retries: int | None = None,
    address: str | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    shared: bool | None = None,
    retry_failed: bool = False,
) -> Studied:
    """Runs what is missing of a grid, corpora x models x seeds x audits, and writes a table for each question.

    The plan is a TOML file, or the folder of a study; what is done stays, so after a stop the same call goes on. With
    `retry_failed`, trials that failed are tried again. The engine is "local", for processes of this machine, "ray", or
    anything that is called with trials and a folder and gives their outcomes.
    """
    devices = tuple(each.strip() for each in (device or "").split(",") if each.strip())
    wanted = EngineSettings(jobs, devices, retries, address, cpus, gpus, shared or None)
    chosen = named_engine(engine, wanted) if isinstance(engine, str) else engine
    read, folder = plan_file.load(Path(plan), None if out is None else Path(out))
    opened(folder)
    plan_file.store(read, folder, Path(plan))
    run(read.trials, folder, chosen, retry_failed)
    found = trial_statuses(read.trials, Folder(folder))
    return Studied(read, folder, found, write(read, Folder(folder)) if counted(found)["done"] else [])
