"""One attempt at a trial, isolated so that a failure reaches no other; and the worker process that makes attempts."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from filelock import FileLock

from assay.data import corpora
from assay.data import corpora as datasets
from assay.data.examples import Corpus, examples_for, thinned
from assay.errors import AssayError, Damaged
from assay.models import store
from assay.models.store import Opened
from assay.records import Record
from assay.run import api as verbs
from assay.run.auditing import audited
from assay.study.plans import checked_hash
from assay.study.trials import Folder, Trial, files_of, model_folder


def make_record(trial: Trial, place: Path, device: str = "cpu") -> Record:
    """The record of a trial; unfinished work is stored in `place`, and resumes there."""
    corpus = _corpus(trial)
    model = _model(trial, corpus, place, device)
    about = {"corpus": corpora.about(corpus, trial.corpus.title) | {"split": "test"}, "command": "assay study"}
    examples = examples_for(corpus, "test", model.classes)
    plan, work = trial.audit_set.plan(trial.seed), work_folder(place, trial)
    try:
        return audited(model, examples, plan, work, about, corpus)
    except Damaged:
        Folder(place).put_aside(work)
        return audited(model, examples, plan, work, about, corpus)


def work_folder(place: Path, trial: Trial) -> Path:
    """The folder of a trial's unfinished work."""
    return place / "work" / trial.identity


def _corpus(trial: Trial) -> Corpus:
    source = trial.corpus
    if source.sha256 is not None:
        checked_hash(Path(source.name), source.sha256)
    found = corpora.corpus(source.name, trial.data_seed, joined=source.joined)
    return found if source.train is None else thinned(found, source.train, trial.data_seed)


def _model(trial: Trial, corpus: Corpus, place: Path, device: str) -> Opened:
    kind = trial.kind
    if kind.sha256 is not None:
        checked_hash(Path(str(kind.path or kind.base)), kind.sha256)
    if kind.path is not None:
        return verbs.load(kind.path, device)
    folder = model_folder(place, trial)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):  # who comes second waits, and then only reads
        try:
            return _learnt(trial, corpus, folder, device)
        except AssayError as fault:
            if not (isinstance(fault, Damaged) or is_trained(folder)):
                raise
            Folder(place).put_aside(folder)  # it was finished or begun, and cannot be read any more
            return _learnt(trial, corpus, folder, device)


def _learnt(trial: Trial, corpus: Corpus, folder: Path, device: str) -> Opened:
    given = dict(trial.kind.options)
    if trial.kind.base is not None:
        base = trial.kind.base.removeprefix(datasets.PREFIX)
        return verbs.finetune(corpus, base, folder, **given, seed=trial.seed, device=device)
    from assay.models.recipes import train

    return train(corpus, verbs.recipe(seed=trial.seed, corpus=corpus.name, **given), folder, device)


def is_trained(folder: Path) -> bool:
    """Whether a folder holds a complete model: its card is written last."""
    from assay.models.hf_loading import CARD

    return (folder / CARD).exists() or (folder / store.CARD).exists()


# One attempt at a trial, isolated so that a failure reaches no other trial.


FULL = (errno.ENOSPC, errno.EDQUOT)
NO_MEMORY = "not enough memory"


@dataclass(frozen=True)
class Outcome:
    """Result of an attempt: files to store, stored already, or the reason of a failure."""

    trial: Trial
    seconds: float = 0.0
    reason: str | None = None
    details: str = ""
    full: bool = False  # the disk: no other trial could be stored either
    files: Mapping[str, bytes] | None = None
    device: str = "cpu"

    @property
    def memory(self) -> bool:
        """Whether it ran out of memory: finished work is sound, and another worker can resume it."""
        return (self.reason or "").startswith(NO_MEMORY)

    @property
    def about(self) -> dict[str, Any]:
        """Metadata for the mark of a finished trial."""
        return {"seconds": round(self.seconds, 2), "device": self.device}


def attempt(trial: Trial, place: Path, device: str = "cpu", keep: bool = True) -> Outcome:
    """Runs a trial in a folder; with `keep` the result is stored there, else the files are returned."""
    started, work = time.monotonic(), work_folder(place, trial)
    try:
        record = make_record(trial, place, device)
        outcome = Outcome(trial, time.monotonic() - started, files=files_of(record, work), device=device)
        if keep:
            store_outcome(outcome, Folder(place))
            shutil.rmtree(work, ignore_errors=True)
            return Outcome(trial, outcome.seconds, device=device)
        return outcome
    except Exception as fault:  # whatever a library raises, the other trials go on
        failed = _failed(trial, fault)
        if not (failed.full or failed.memory):  # it may be the work so far that is damaged: begin anew next time
            shutil.rmtree(work, ignore_errors=True)
        return failed


def store_outcome(outcome: Outcome, folder: Folder) -> None:
    """Stores the files of an outcome in the folder."""
    assert outcome.files is not None
    folder.keep(outcome.trial, outcome.files, outcome.about)


def _failed(trial: Trial, fault: Exception) -> Outcome:
    if _is_full(fault):
        return Outcome(trial, reason="the disk is full", full=True)
    if isinstance(fault, MemoryError) or "DefaultCPUAllocator" in str(fault):  # of torch, which has no error of its own
        return Outcome(trial, reason=NO_MEMORY)
    if type(fault).__name__ == "OutOfMemoryError":
        return Outcome(trial, reason=f"{NO_MEMORY} on the device")
    if isinstance(fault, AssayError):
        return Outcome(trial, reason=str(fault))
    told = " ".join(str(fault).split())[:200]
    return Outcome(trial, reason=f"{type(fault).__name__}: {told}", details=traceback.format_exc())


def _is_full(fault: BaseException | None) -> bool:
    """Whether an error means that the disk is full; native libraries raise errors of their own for it."""
    if fault is None:
        return False
    said = "No space left on device" in str(fault)
    return said or getattr(fault, "errno", None) in FULL or _is_full(fault.__cause__)


# Worker process: reads trials as JSON lines on standard input, and answers likewise. It dies with its parent, as their
# pipe is then closed.


ANSWERED = ("seconds", "reason", "details", "full", "device")


def main() -> None:
    """Answers until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    told: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_listen, args=(told,), daemon=True).start()
    while True:
        job = told.get()
        outcome = attempt(Trial.of(job["trial"]), Path(job["place"]), job["device"])
        print(json.dumps(answer(outcome)), file=answers, flush=True)


def answer(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON values."""
    return {name: value for name, value in asdict(outcome).items() if name in ANSWERED}


def _listen(told: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        told.put(json.loads(line))
    os._exit(0)  # in the middle of a trial, too: what is finished of it is kept


if __name__ == "__main__":
    main()
