"""Engines: they run trials in processes of this machine or on a cluster. An engine is shaped like `map`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Protocol, runtime_checkable

from assay.errors import AssayError, unknown
from assay.study.attempts import Outcome
from assay.study.trials import Trial

ENGINES = ("local", "ray")


@runtime_checkable
class Engine(Protocol):
    """Takes trials as it has room for them, and gives an outcome for each, in any order.

    Outcomes with files are still to be kept in the folder `place`; others are there.
    Where it is a generator, closing it stops the work.
    """

    def __call__(self, trials: Iterator[Trial], place: Path) -> Iterator[Outcome]: ...


# Local engine: worker processes of this machine; one that dies affects only its own attempt.


WORK = [sys.executable, "-m", "assay.study.attempts"]


@dataclass(frozen=True)
class Local:
    """Runs trials in so many processes, assigned to these devices in turn, with retries where a process dies."""

    jobs: int = 1
    retries: int = 2
    devices: tuple[str, ...] = ("cpu",)

    def __post_init__(self) -> None:
        if self.jobs < 1 or self.retries < 0 or not self.devices:
            raise AssayError("Jobs are a number from 1, retries one from 0, and there is at least one device.")

    def __call__(self, trials: Iterator[Trial], place: Path) -> Iterator[Outcome]:
        queue = _TrialQueue(trials)
        slots = [
            _Worker(queue, place, self.devices[number % len(self.devices)], self.retries) for number in range(self.jobs)
        ]
        for slot in slots:
            slot.start()
        try:
            for _ in slots:  # each says None when it has ended
                while (outcome := queue.outcomes.get()) is not None:
                    if isinstance(outcome, BaseException):
                        raise outcome
                    yield outcome
        finally:
            queue.closed = True
            for slot in slots:
                slot.stop()
            for slot in slots:
                slot.join()


@dataclass
class _TrialQueue:
    """Thread-safe queue of trials to run, and of outcomes."""

    trials: Iterator[Trial]
    outcomes: SimpleQueue[Outcome | BaseException | None] = field(default_factory=SimpleQueue)
    closed: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> Trial | None:
        with self._turn:
            return None if self.closed else next(self.trials, None)


class _Worker(threading.Thread):
    """A thread that manages one worker process."""

    def __init__(self, queue: _TrialQueue, place: Path, device: str, retries: int) -> None:
        super().__init__(daemon=True)
        self.queue, self.place, self.device, self.retries = queue, place, device, retries
        self.process: subprocess.Popen[str] | None = None
        self.stopped = False
        self.turn = threading.Lock()

    def run(self) -> None:
        try:
            while (trial := self.queue.next()) is not None and (outcome := self._made(trial)) is not None:
                self.queue.outcomes.put(outcome)
        except BaseException as fault:
            self.queue.outcomes.put(fault)
        finally:
            self.stop()
            self._exit_code()
            self.queue.outcomes.put(None)

    def stop(self) -> None:
        """Kills the process, even within a trial, and starts no other."""
        with self.turn:
            self.stopped = True
            if self.process is not None:
                self.process.kill()

    def _made(self, trial: Trial) -> Outcome | None:
        """The outcome of the trial, or None where it was stopped."""
        code = 0
        for _ in range(self.retries + 1):
            with self.turn:
                if self.stopped:
                    return None
                process = self.process = self.process or _started(self.place)
            line = _told(process, {"trial": trial.json(), "place": str(self.place), "device": self.device})
            if line.endswith("\n"):  # a process may die in the middle of its answer
                return Outcome(trial, **json.loads(line))
            code = self._exit_code()
        if self.stopped:
            return None
        why = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        hint = "; perhaps there was not enough memory, so try fewer --jobs" if code == -9 else ""
        return Outcome(trial, reason=f"its process {why}, {self.retries + 1} times{hint}")

    def _exit_code(self) -> int:
        """The exit code of the process, which is dead or about to die."""
        process, self.process = self.process, None
        if process is None:
            return 0
        assert process.stdin is not None and process.stdout is not None
        process.stdout.close()
        with suppress(OSError):  # what it was told last was not read
            process.stdin.close()
        return process.wait()


def _told(process: subprocess.Popen[str], job: dict[str, object]) -> str:
    """The process's answer; nothing, or part of it, where it died."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return process.stdout.readline()
    except OSError:
        return ""


def _started(place: Path) -> subprocess.Popen[str]:
    log = place / "logs" / f"{os.getpid()}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as aside:
        return subprocess.Popen(
            WORK,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=aside,
            text=True,
            encoding="utf-8",
            env=os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
            start_new_session=True,  # Ctrl-C is for us: we stop it
        )


# Engines by name, with their settings.


OF_RAY = ("address", "cpus", "gpus", "shared")


@dataclass(frozen=True)
class EngineSettings:
    """Settings of an engine; None is the engine's default."""

    jobs: int | None = None
    devices: tuple[str, ...] = ()
    retries: int | None = None
    address: str | None = None
    cpus: float | None = None
    gpus: float | None = None
    shared: bool | None = None

    def given(self, *names: str) -> dict[str, object]:
        """Those of the named settings that are set."""
        return {name: value for name in names if (value := getattr(self, name)) not in (None, ())}


def engine(name: str, wanted: EngineSettings | None = None) -> Engine:
    """The engine of that name."""
    options = wanted or EngineSettings()
    if name not in ENGINES:
        raise unknown("engine", name, ENGINES)
    meant = OF_RAY if name == "ray" else ("jobs",)
    for option in options.given(*(each.name for each in fields(EngineSettings))):
        if option not in (*meant, "devices", "retries"):
            raise AssayError(f"--{option} is not for the engine {name}; leave it out, or choose another --engine.")
    return _ray(options) if name == "ray" else _local(options)


def _local(options: EngineSettings) -> Engine:
    usual = {"jobs": max(1, len(options.devices))}  # one for each device, where several are named
    return Local(**usual | options.given("jobs", "retries", "devices"))  # type: ignore[arg-type]


def _ray(options: EngineSettings) -> Engine:
    if find_spec("ray") is None:
        raise AssayError("The engine ray needs the library ray; install it: pip install 'assay[cluster]'.")
    from assay.study.cluster import Ray

    usual = {"device": ",".join(options.devices) or ("cuda" if options.gpus else "cpu")}
    return Ray(**usual | options.given(*OF_RAY, "retries"))  # type: ignore[arg-type]
