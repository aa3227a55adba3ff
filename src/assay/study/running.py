"""Runs the missing trials of a plan, each once, even if several processes share the folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from assay import progress
from assay.errors import AssayError
from assay.study.attempts import Outcome, store_outcome
from assay.study.engines import Engine
from assay.study.folder import Folder, opened
from assay.study.status import unique
from assay.study.trials import Trial

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
