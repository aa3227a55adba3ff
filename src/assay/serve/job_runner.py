"""Runs jobs as processes that outlive the server: starts them in turn, and notices how they end."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from assay.errors import AssayError
from assay.progress import PROGRESS_FILE
from assay.records import SUMMARY
from assay.serve.job_store import LOG, OPEN, PROGRESS, RUN, Job, JobStore, Order
from assay.serve.safety import Limits

# Processes that outlive the server, each in a session of its own, identified by process id and start time.


PROC = Path("/proc")
_children: set[int] = set()  # started by this server: it learns how they end


def start(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> int:
    """Starts a process in a new session, appends its output to the log, and returns its id.

    It is no `subprocess.Popen`: nobody waits for it when the server stops.
    """
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    process = os.posix_spawn(command[0], list(command), dict(environment), file_actions=actions, setsid=True)
    _children.add(process)
    return process


def born(process: int) -> str | None:
    """The start time of a process as the kernel counts it, or None where it no longer runs."""
    if not PROC.is_dir():
        told = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(process)], capture_output=True, text=True)
        state, _, moment = told.stdout.strip().partition(" ")
        return moment.strip() if state and not state.startswith("Z") else None
    try:
        told_by_system = (PROC / str(process) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = told_by_system.rpartition(")")[2].split()  # the name before may hold anything
    return None if fields[0] in ("Z", "X") else fields[19]


def ended(process: int, birth: str | None) -> tuple[bool, int | None]:
    """Whether it has ended, and its exit code (negative for a signal), or None where only its parent learned it."""
    if process not in _children:  # a server before this one started it
        return birth is None or born(process) != birth, None
    number, status = os.waitpid(process, os.WNOHANG)
    if number == 0:
        return False, None
    _children.discard(process)
    return True, os.waitstatus_to_exitcode(status)


def stop(process: int, birth: str | None, by: signal.Signals) -> None:
    """Signals the process group, if the process is still the same one."""
    if birth is not None and born(process) == birth:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process, by)


def sweep(process: int) -> None:
    """Kills what is left of the group of a process that has just ended."""
    if process > 1 and born(process) is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)


# Runs jobs: starts queued ones in turn, notices how they end, and stops those that exceed the time limit.


TICK = 0.2  # seconds between two looks
GRACE = 5.0  # seconds from asking a process to end to making it
PROGRAM = (sys.executable, "-m", "assay.cli")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}


class JobRunner:
    """A background thread that runs jobs as separate processes, which survive a stop of the server.

    `models` are those that are open, each with the options that it was opened with.
    """

    def __init__(self, job_store: JobStore, limits: Limits, models: Mapping[str, Sequence[str]]) -> None:
        self.job_store, self.limits, self.models = job_store, limits, models
        self.program: Sequence[str] = PROGRAM
        self._asked: dict[str, float] = {}  # when a process was asked to end
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        with suppress(OSError):  # the folder may be there to be read only
            self.job_store.claim()
        self._over.clear()
        self._thread = threading.Thread(target=self._keep, name="jobs", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Signals that the server is stopping, so that event streams end."""
        self._over.set()

    def close(self) -> None:
        """Stops the thread; running jobs go on."""
        self.leave()
        if self._thread is not None:
            self._thread.join()
        self.job_store.release()

    @property
    def closing(self) -> bool:
        return self._over.is_set()

    def submit(self, order: Order, title: str, bring: Callable[[Path], None]) -> Job:
        """Queues a new job; `bring` puts its input files into its folder."""
        order.check(self.models)
        job = Job(id=secrets.token_hex(8), title=title, order=order, created=time.time())
        with self.job_store.lock:
            if sum(each.state in OPEN for each in self.job_store.all()) >= self.limits.jobs:
                raise AssayError(f"{self.limits.jobs} jobs wait already; cancel one or wait until some have ended.")
            place = self.job_store.place(job)
            place.mkdir(parents=True)
            try:
                bring(place)
                return self.job_store.put(job)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise

    def cancel(self, job: Job) -> Job:
        """Takes a job out of the queue, or asks its process to end."""
        with self.job_store.lock:
            job = self.job_store.get(job.id) or job
            if job.state == "queued":
                return self._end(job, "cancelled", "Cancelled before it began.")
            if job.state != "running":
                raise AssayError(f"This job is {job.state}; only one that waits or runs can be cancelled.")
            return self.job_store.change(job, stopping="cancelled")

    def resume(self, job: Job) -> Job:
        """Queues an interrupted job again; its audit goes on where it stopped."""
        with self.job_store.lock:
            job = self.job_store.get(job.id) or job
            if job.state in (*OPEN, "finished"):
                raise AssayError(f"This job is {job.state}; only one that broke off can go on.")
            job.order.check(self.models)
            fresh = {"started": None, "ended": None, "process": None, "birth": None, "stopping": None}
            return self.job_store.change(job, state="queued", sentence="", **fresh)

    def _keep(self) -> None:
        while not self._over.wait(TICK):
            with suppress(OSError):  # such as a full disk: the next look may do better
                if self.job_store.claim():
                    self.look()

    def look(self) -> None:
        """Advances the state of every job once."""
        with self.job_store.lock:
            jobs = self.job_store.all()
            for job in jobs:
                if job.state == "running":
                    self._follow(job)
            if not any(job.state == "running" for job in self.job_store.all()):
                waiting = next((job for job in self.job_store.all() if job.state == "queued"), None)
                if waiting is not None:
                    self._begin(waiting)

    def _begin(self, job: Job) -> None:
        """Starts the process. The command is rebuilt from the order, never read from the disk."""
        place = self.job_store.place(job)
        job = self.job_store.change(job, state="running", started=time.time())
        try:
            job.order.check(self.models)
            (place / PROGRESS).unlink(missing_ok=True)
            command = [*self.program, *self.arguments(job)]
            environment = os.environ | ENVIRONMENT | {PROGRESS_FILE: str(place / PROGRESS)}
            process = start(command, place / LOG, environment)
        except (AssayError, OSError, ValueError) as fault:
            self._end(job, "failed", str(fault))
            return
        birth = born(process)
        try:
            self.job_store.change(job, process=process, birth=birth)
        except OSError:  # what cannot be written down would not be found again
            stop(process, birth, signal.SIGKILL)
            raise

    def arguments(self, job: Job) -> list[str]:
        """The command-line arguments, after 'assay', of this job."""
        return job.order.arguments(self.job_store.place(job), self.models.get(job.order.model, ()))

    def _follow(self, job: Job) -> None:
        if job.process is None:
            self._end(job, "failed", "The server stopped while this job was being started.")
            return
        over, code = ended(job.process, job.birth)
        if over:
            self._judge(job, code)
        elif job.stopping is not None:
            self._stop(job, job.process)
        elif time.time() - (job.started or 0) > self.limits.seconds:
            self.job_store.change(job, stopping="timed out")

    def _stop(self, job: Job, process: int) -> None:
        """Signals the whole process group to terminate, and kills it after a grace period."""
        first = self._asked.setdefault(job.id, time.monotonic())
        by = signal.SIGTERM if time.monotonic() - first < GRACE else signal.SIGKILL
        stop(process, job.birth, by)

    def _judge(self, job: Job, code: int | None) -> None:
        """The outcome of a process by what it left, as only its parent learns the exit code."""
        self._asked.pop(job.id, None)
        if job.process is not None:
            sweep(job.process)
        if code in (0, None) and (self.job_store.place(job) / RUN / SUMMARY).is_file():
            self._end(job, "finished", "")
        elif job.stopping == "cancelled":
            self._end(job, "cancelled", "Cancelled; what was done so far is kept.")
        elif job.stopping == "timed out":
            most = duration(self.limits.seconds)
            self._end(job, "timed out", f"Stopped after {most}, the longest that a job may run.")
        else:
            self._end(job, "failed", self._reason(job, code))

    def _reason(self, job: Job, code: int | None) -> str:
        """The last line of the log, where the command line prints errors."""
        lines = [line.strip() for line in self.job_store.log(job).splitlines() if line.strip()]
        said = lines[-1] if lines else ""
        if code is not None and code < 0:
            return f"The process was ended by signal {-code}; perhaps the memory did not suffice."
        shown = said.replace(str(self.job_store.place(job) / f"upload.{job.order.kind}"), "The file")
        return shown[:500] or "The process ended without a word."

    def _end(self, job: Job, state: str, sentence: str) -> Job:
        return self.job_store.change(job, state=state, sentence=sentence, ended=time.time(), stopping=None)


def duration(seconds: int | float) -> str:
    """A time in words, rounded."""
    for size, name in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size or size == 1:
            number = round(seconds / size)
            return f"{number} {name}{'' if number == 1 else 's'}"
    raise AssertionError
