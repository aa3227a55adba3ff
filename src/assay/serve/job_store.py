"""Jobs: what is ordered, and a folder each on disk with a card that is rewritten at every change of state."""

from __future__ import annotations

import fcntl
import json
import math
import os
import re
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.audits import AUDITS, USUAL_AUDITS
from assay.data.corpora import listing
from assay.errors import AssayError, unknown
from assay.explainers import EXPLAINERS, USUAL
from assay.files import write_text
from assay.serve.uploads import NAME

# Job requests: validated names and numbers, and the command line made from them.


TRAIN = "train"
HERE = ("local copy", "cached", "generated")  # corpora that nothing is fetched for
UPLOAD = "^[0-9a-f]{32}$"

Column = Annotated[str, Field(max_length=NAME)]
Names = Annotated[list[Annotated[str, Field(max_length=40)]], Field(max_length=100)]


class Order(BaseModel):
    """Request body of an audit job."""

    model_config = ConfigDict(extra="forbid")

    upload: Annotated[str, Field(pattern=UPLOAD)] | None = None
    corpus: Annotated[str, Field(max_length=60)] | None = None
    kind: Literal["csv", "tsv", "jsonl"] = "csv"  # of the upload
    text_column: Column = "text"
    label_column: Column = "label"
    query_column: Column | None = None
    model: Annotated[str, Field(max_length=1000)] = TRAIN
    explainers: Names = list(USUAL)
    audits: Names = list(USUAL_AUDITS)
    limit: Annotated[int, Field(ge=1, le=1_000_000)] = 200
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0

    def check(self, models: Iterable[str]) -> None:
        """Raises for names of explainers, audits or models that are unknown."""
        if (self.upload is None) == (self.corpus is None):
            raise AssayError("Choose a file, or a corpus that is here.")
        if self.corpus is not None and self.corpus not in corpora():
            raise unknown("corpus", self.corpus, corpora())
        if self.model != TRAIN and self.model not in (known := list(models)):
            raise unknown("model", self.model, [TRAIN, *known])
        for kind, names, every in (("explainer", self.explainers, EXPLAINERS), ("audit", self.audits, AUDITS)):
            _check_names(kind, names, every)

    def check_columns(self, there: Sequence[str]) -> None:
        """Raises for columns that the file lacks, and for one column used twice."""
        wanted = {"texts": self.text_column, "classes": self.label_column, "questions": self.query_column or None}
        given = [name for name in wanted.values() if name is not None]
        for purpose, name in wanted.items():
            if name is not None and name not in there:
                raise AssayError(f"The file has no column {name!r:.60} to take the {purpose} from.")
        if len(set(given)) < len(given):
            raise AssayError("Texts and classes must come from different columns.")

    def arguments(self, folder: Path, reading: Sequence[str] = ()) -> list[str]:
        """The arguments after 'assay'. Every value is joined by '=', so that none can be taken for an option.

        `reading` are the options with which the live model was opened.
        """
        if self.upload is not None:
            data = [
                f"--data={folder / f'upload.{self.kind}'}",
                f"--text-column={self.text_column}",
                f"--label-column={self.label_column}",
                f"--query-column={self.query_column or ''}",
            ]
        else:
            data = [f"--data={self.corpus}"]
        return [
            *("audit", *data),
            *([] if self.model == TRAIN else [f"--model={self.model}", *reading]),
            f"--explainers={_listed(self.explainers, USUAL)}",
            f"--audits={_listed(self.audits, USUAL_AUDITS)}",
            f"--limit={self.limit}",
            f"--seed={self.seed}",
            f"--out={folder / 'run'}",
        ]


def corpora() -> dict[str, str]:
    """The corpora that are available here, each with a sentence."""
    return {row.name: row.description for row in listing() if row.where in HERE}


def _check_names(kind: str, names: Sequence[str], known: Iterable[str]) -> None:
    every = list(known)
    for name in names:
        if name not in every:
            raise unknown(kind, name, every)
    if not names or len(set(names)) < len(names):
        raise AssayError(f"Choose at least one {kind}, and each once.")


def _listed(names: Sequence[str], usual: Sequence[str]) -> str:
    return "usual" if set(names) == set(usual) else ",".join(names)


# Jobs on disk: a folder each, with a JSON card that is rewritten atomically at every change of state.


CARD, PROGRESS, LOG, RUN = "job.json", "progress.json", "log.txt", "run"
ID = re.compile("[0-9a-f]{16}")
TAIL = 16_384  # bytes of a log that are shown
State = Literal["queued", "running", "finished", "failed", "cancelled", "timed out"]
OPEN = ("queued", "running")


class Job(BaseModel):
    """One audit job and its state."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str  # the name of the file as the browser told it, or of the corpus: a text, never a path
    order: Order
    created: float
    state: State = "queued"
    sentence: str = ""
    started: float | None = None
    ended: float | None = None
    process: Annotated[int, Field(gt=1)] | None = None
    birth: str | None = None  # of the process: its number may go to another one later
    stopping: Literal["cancelled", "timed out"] | None = None  # what it will end as


class JobStore:
    """All jobs below a folder. One server at a time may write; others may read."""

    def __init__(self, home: Path) -> None:
        self.folder = (home / "jobs").absolute()
        self.lock = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._claim: int | None = None

    @property
    def mine(self) -> bool:
        """Whether this server holds the lock."""
        return self._claim is not None

    def claim(self) -> bool:
        """Locks the folder for this server, unless another one holds it."""
        with self.lock:
            if self._claim is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(handle)
                    return False
                self._claim = handle
                self._jobs = {job.id: job for job in self._read()}
            return True

    def release(self) -> None:
        with self.lock:
            if self._claim is not None:
                os.close(self._claim)
                self._claim = None

    def all(self) -> list[Job]:
        """All jobs, oldest first."""
        with self.lock:
            jobs = list(self._jobs.values()) if self.mine else list(self._read())
        return sorted(jobs, key=lambda job: (job.created, job.id))

    def get(self, id: str) -> Job | None:
        """The job with this id, or None."""
        if self.mine:
            with self.lock:
                return self._jobs.get(id)
        return next((job for job in self.all() if job.id == id), None)

    def put(self, job: Job) -> Job:
        """Writes the job's card; needs the lock."""
        with self.lock:
            if not self.mine:
                where = self.folder.parent
                raise AssayError(f"Another 'assay serve' keeps the jobs in {where}, or it cannot be written to.")
            write_text(self.place(job) / CARD, job.model_dump_json(indent=2) + "\n")
            self._jobs[job.id] = job
        return job

    def change(self, job: Job, **values: Any) -> Job:
        return self.put(Job.model_validate(job.model_dump() | values))

    def remove(self, job: Job) -> None:
        """Deletes a job with its folder."""
        with self.lock:
            if not self.mine or job.state in OPEN:
                raise AssayError("Only jobs that have ended can be removed.")
            del self._jobs[job.id]
        shutil.rmtree(self.place(job), ignore_errors=True)

    def place(self, job: Job) -> Path:
        return self.folder / job.id

    def progress(self, job: Job) -> dict[str, Any] | None:
        """The progress that the process last reported, or None."""
        try:
            told = json.loads((self.place(job) / PROGRESS).read_text(encoding="utf-8"))
            task, done, total, left = str(told["task"]), float(told["done"]), told["total"], told.get("left")
            known = {"total": None if total is None else float(total), "left": None if left is None else float(left)}
        except (OSError, ValueError, TypeError, KeyError):
            return None
        numbers = [done, *(value for value in known.values() if value is not None)]
        return {"task": task[:100], "done": done, **known} if all(map(math.isfinite, numbers)) else None

    def log(self, job: Job) -> str:
        """The end of the process's output."""
        try:
            with (self.place(job) / LOG).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                raw = file.read()
        except OSError:
            return ""
        text = raw.decode("utf-8", "replace")
        return "".join(sign for sign in text if sign == "\n" or sign.isprintable())

    def _read(self) -> Iterator[Job]:
        with suppress(OSError):
            for card in sorted(self.folder.glob(f"*/{CARD}")):
                if ID.fullmatch(card.parent.name) and (job := _job(card)) is not None:
                    yield job


def _job(card: Path) -> Job | None:
    """The job on a card, or None where it is not valid."""
    try:
        job = Job.model_validate_json(card.read_bytes())
    except (OSError, ValueError):
        return None
    return job if job.id == card.parent.name else None
