"""Who looks after the jobs: starts them one by one, notices how they end, stops those that take too long."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from assay.errors import AssayError
from assay.progress import PROGRESS_FILE
from assay.records import SUMMARY
from assay.serve import processes
from assay.serve.ledger import LOG, OPEN, PROGRESS, RUN, Job, Ledger
from assay.serve.orders import Order
from assay.serve.settings import Limits

TICK = 0.2  # seconds between two looks
GRACE = 5.0  # seconds from asking a process to end to making it
PROGRAM = (sys.executable, "-m", "assay.cli")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


class Keeper:
    """A thread beside the server. The jobs are processes of their own and go on when it ends.

    `models` are those that are open, each with the options that it was opened with.
    """

    def __init__(self, ledger: Ledger, limits: Limits, models: Mapping[str, Sequence[str]]) -> None:
        self.ledger, self.limits, self.models = ledger, limits, models
        self.program: Sequence[str] = PROGRAM
        self._asked: dict[str, float] = {}  # when a process was asked to end
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        with suppress(OSError):  # the folder may be there to be read only
            self.ledger.claim()
        self._over.clear()
        self._thread = threading.Thread(target=self._keep, name="jobs", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Says that the server is about to stop, so that nobody is kept listening."""
        self._over.set()

    def close(self) -> None:
        """Lets go of the jobs; those that run go on."""
        self.leave()
        if self._thread is not None:
            self._thread.join()
        self.ledger.release()

    @property
    def closing(self) -> bool:
        return self._over.is_set()

    def submit(self, order: Order, title: str, bring: Callable[[Path], None]) -> Job:
        """A new job at the end of the queue; `bring` puts what it needs into its folder."""
        order.check(self.models)
        job = Job(id=secrets.token_hex(8), title=title, order=order, created=time.time())
        with self.ledger.lock:
            if sum(each.state in OPEN for each in self.ledger.all()) >= self.limits.jobs:
                raise AssayError(f"{self.limits.jobs} jobs wait already; cancel one or wait until some have ended.")
            place = self.ledger.place(job)
            place.mkdir(parents=True)
            try:
                bring(place)
                return self.ledger.put(job)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise

    def cancel(self, job: Job) -> Job:
        """Takes a job out of the queue, or asks its process to end."""
        with self.ledger.lock:
            job = self.ledger.get(job.id) or job
            if job.state == "queued":
                return self._end(job, "cancelled", "Cancelled before it began.")
            if job.state != "running":
                raise AssayError(f"This job is {job.state}; only one that waits or runs can be cancelled.")
            return self.ledger.change(job, stopping="cancelled")

    def resume(self, job: Job) -> Job:
        """Puts a job that broke off into the queue again; the audit goes on where it stopped."""
        with self.ledger.lock:
            job = self.ledger.get(job.id) or job
            if job.state in (*OPEN, "finished"):
                raise AssayError(f"This job is {job.state}; only one that broke off can go on.")
            job.order.check(self.models)
            fresh = {"started": None, "ended": None, "process": None, "birth": None, "stopping": None}
            return self.ledger.change(job, state="queued", sentence="", **fresh)

    def _keep(self) -> None:
        while not self._over.wait(TICK):
            with suppress(OSError):  # such as a full disk: the next look may do better
                if self.ledger.claim():
                    self.look()

    def look(self) -> None:
        """Brings every job one step on."""
        with self.ledger.lock:
            jobs = self.ledger.all()
            for job in jobs:
                if job.state == "running":
                    self._follow(job)
            if not any(job.state == "running" for job in self.ledger.all()):
                waiting = next((job for job in self.ledger.all() if job.state == "queued"), None)
                if waiting is not None:
                    self._begin(waiting)

    def _begin(self, job: Job) -> None:
        """Starts the process. The command is made of the order again, never read from the disk."""
        place = self.ledger.place(job)
        job = self.ledger.change(job, state="running", started=time.time())
        try:
            job.order.check(self.models)
            (place / PROGRESS).unlink(missing_ok=True)
            command = [*self.program, *self.arguments(job)]
            environment = os.environ | ENVIRONMENT | {PROGRESS_FILE: str(place / PROGRESS)}
            process = processes.start(command, place / LOG, environment)
        except (AssayError, OSError, ValueError) as fault:
            self._end(job, "failed", str(fault))
            return
        birth = processes.born(process)
        try:
            self.ledger.change(job, process=process, birth=birth)
        except OSError:  # what cannot be written down would not be found again
            processes.stop(process, birth, signal.SIGKILL)
            raise

    def arguments(self, job: Job) -> list[str]:
        """The words after 'assay' that do this job."""
        return job.order.arguments(self.ledger.place(job), self.models.get(job.order.model, ()))

    def _follow(self, job: Job) -> None:
        if job.process is None:
            self._end(job, "failed", "The server stopped while this job was being started.")
            return
        over, code = processes.ended(job.process, job.birth)
        if over:
            self._judge(job, code)
        elif job.stopping is not None:
            self._stop(job, job.process)
        elif time.time() - (job.started or 0) > self.limits.seconds:
            self.ledger.change(job, stopping="timed out")

    def _stop(self, job: Job, process: int) -> None:
        """Asks the process and all that it started to end, and makes them when they do not."""
        first = self._asked.setdefault(job.id, time.monotonic())
        by = signal.SIGTERM if time.monotonic() - first < GRACE else signal.SIGKILL
        processes.stop(process, job.birth, by)

    def _judge(self, job: Job, code: int | None) -> None:
        """Says how a process ended: by what it left, for only its parent learns the exit code."""
        self._asked.pop(job.id, None)
        if job.process is not None:
            processes.sweep(job.process)
        if code in (0, None) and (self.ledger.place(job) / RUN / SUMMARY).is_file():
            self._end(job, "finished", "")
        elif job.stopping == "cancelled":
            self._end(job, "cancelled", "Cancelled; what was done so far is kept.")
        elif job.stopping == "timed out":
            most = duration(self.limits.seconds)
            self._end(job, "timed out", f"Stopped after {most}, the longest that a job may run.")
        else:
            self._end(job, "failed", self._reason(job, code))

    def _reason(self, job: Job, code: int | None) -> str:
        """The last line that the process printed, which is where the command line says what is wrong."""
        lines = [line.strip() for line in self.ledger.log(job).splitlines() if line.strip()]
        said = lines[-1] if lines else ""
        if code is not None and code < 0:
            return f"The process was ended by signal {-code}; perhaps the memory did not suffice."
        shown = said.replace(str(self.ledger.place(job) / f"upload.{job.order.kind}"), "The file")
        return shown[:500] or "The process ended without a word."

    def _end(self, job: Job, state: str, sentence: str) -> Job:
        return self.ledger.change(job, state=state, sentence=sentence, ended=time.time(), stopping=None)


def duration(seconds: int | float) -> str:
    """A time in words, roughly."""
    for size, name in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size or size == 1:
            number = round(seconds / size)
            return f"{number} {name}{'' if number == 1 else 's'}"
    raise AssertionError
