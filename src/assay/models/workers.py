"""Trains several models in parallel, one worker process each; the weights equal those of sequential training."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from assay import progress
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.files import write_text
from assay.models import store
from assay.models.config import Architecture
from assay.models.network import Network
from assay.models.networks import built
from assay.models.objectives import Guided, Imitated, Labels, Objective, Without
from assay.models.recipes import Recipe, train
from assay.models.store import Trained, save_tensors

JOB_FILE, TEACHER = "job.json", "teacher.safetensors"
OBJECTIVES: dict[str, type[Any]] = {kind.__name__: kind for kind in (Labels, Guided, Imitated, Without)}


@dataclass(frozen=True)
class WorkerJob:
    """The arguments of one training run; rounding depends on the number of threads, so it is the caller's."""

    corpus: Corpus
    recipe: Recipe
    folder: Path
    device: str
    objective: Objective | None
    threads: int

    def write(self, folder: Path) -> None:
        """Writes all that decides the weights to a folder; evidence and test texts are left out."""
        stored = {
            "corpus": {"name": self.corpus.name, "classes": self.corpus.classes},
            "train": [_row(example) for example in self.corpus.train],
            "dev": [_row(example) for example in self.corpus.dev],
            "recipe": asdict(self.recipe),
            "folder": str(self.folder.absolute()),
            "device": self.device,
            "objective": None if self.objective is None else _objective_json(self.objective, folder),
            "threads": self.threads,
        }
        write_text(folder / JOB_FILE, json.dumps(stored))

    @classmethod
    def read(cls, folder: Path) -> WorkerJob:
        """Reads the job from a folder."""
        stored = json.loads((folder / JOB_FILE).read_text(encoding="utf-8"))
        train, dev = (tuple(map(_example, stored[split])) for split in ("train", "dev"))
        corpus = Corpus(stored["corpus"]["name"], tuple(stored["corpus"]["classes"]), train, dev, ())
        objective = None if stored["objective"] is None else _objective(stored["objective"], folder)
        return cls(
            corpus, Recipe.of(stored["recipe"]), Path(stored["folder"]), stored["device"], objective, stored["threads"]
        )


def _row(example: Example) -> list[Any]:
    return [example.text, example.label, example.query, example.candidates]


def _example(row: list[Any]) -> Example:
    text, label, query, candidates = row
    return Example(text, label, query=query, candidates=None if candidates is None else tuple(candidates))


def _objective_json(objective: Any, folder: Path) -> dict[str, Any]:
    """An objective as JSON; the weights of its teacher go into a file beside it."""
    stored: dict[str, Any] = {"kind": type(objective).__name__}
    for each in fields(objective):
        value = getattr(objective, each.name)
        if isinstance(value, Network):
            save_tensors(value.state_dict(), folder / TEACHER)
            sizes = value.embedding.num_embeddings, value.decoder.out_features
            value = {"architecture": asdict(value.architecture), "sizes": sizes}
        stored[each.name] = value
    return stored


def _objective(stored: dict[str, Any], folder: Path) -> Objective:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()}
    if (teacher := given.get("teacher")) is not None:
        weights = load_file(folder / TEACHER)
        network = built(Architecture(**teacher["architecture"]), *teacher["sizes"])
        given["teacher"] = network.to(weights["decoder.weight"].dtype).eval()
        network.load_state_dict(weights)
    objective: Objective = OBJECTIVES[given.pop("kind")](**given)
    return objective


WORKERS = "ASSAY_WORKERS"
ON_ONE_GPU = 8  # trainings at once, unless the variable above says more
REFUSED = 2  # the exit status of a worker whose error the user can correct
# Not multiprocessing: it would run the script of the caller again, which may have no guard against that.
WORK = [
    sys.executable,
    "-P",
    "-c",
    "from assay.models.workers import work; work()",
]  # and the folder of the job


@dataclass(frozen=True)
class Variant:
    """A model to train: its recipe, and its training objective if that is not cross-entropy of the labels."""

    recipe: Recipe
    objective: Objective | None = None


def train_all(
    corpus: Corpus, variants: Mapping[str, Variant], folder: Path | None = None, device: str = "cpu"
) -> dict[str, Trained]:
    """Models trained on the corpus, by name and in that order; with a folder, each is stored there under its name.

    A finished model is only loaded; an interrupted training is resumed from its checkpoint.
    """
    waiting = [name for name in variants if folder is None or not (folder / name / store.CARD).exists()]
    workers = worker_count(len(waiting), device)
    with tempfile.TemporaryDirectory() if folder is None and workers > 1 else nullcontext(folder) as scratch:
        root = None if scratch is None else Path(scratch)

        def one(name: str) -> Trained:
            own = None if root is None else root / name
            return train(corpus, variants[name].recipe, own, device, variants[name].objective)

        models = {name: one(name) for name in variants if name not in waiting}
        if root is None or workers == 1:
            models |= _in_turn(waiting, one)
            return {name: models[name] for name in variants}
        jobs = {
            name: WorkerJob(corpus, each.recipe, root / name, device, each.objective, torch.get_num_threads())
            for name, each in variants.items()
            if name in waiting
        }
        WorkerPool(workers).do_all(jobs)
        return {name: models.get(name) or one(name) for name in variants}


def _in_turn(names: Sequence[str], one: Callable[[str], Trained]) -> dict[str, Trained]:
    """Trains the models one after another in this process; a single one shows its epochs."""
    if len(names) < 2:
        return {name: one(name) for name in names}
    with progress.bar() as shown:
        task = shown.add_task("training models", total=len(names))
        models = {}
        for name in names:
            models[name] = one(name)
            shown.advance(task)
    return models


def worker_count(jobs: int, device: str) -> int:
    """The number of worker processes: CPU cores / threads of each, or the environment variable's value."""
    asked = os.environ.get(WORKERS, "")
    if asked and (not asked.isdecimal() or int(asked) < 1):
        raise AssayError(f"{WORKERS}, the number of parallel trainings, must be at least 1, got {asked!r}.")
    usual = (os.cpu_count() or 1) // torch.get_num_threads()
    if device.startswith("cuda"):
        usual = min(usual, ON_ONE_GPU)
    return max(1, min(jobs, int(asked) if asked else usual))


@dataclass
class WorkerPool:
    """A pool of worker processes; when one fails or the user interrupts, all are stopped."""

    workers: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    stopped: bool = False
    lock: Any = field(default_factory=threading.Lock)

    def do_all(self, jobs: Mapping[str, WorkerJob]) -> None:
        """Runs all jobs; returns when each has stored its model in its folder."""
        with ThreadPoolExecutor(self.workers) as pool, progress.bar() as shown:
            task = shown.add_task(f"training models, {self.workers} at once", total=len(jobs))
            futures = [pool.submit(self.do, name, job) for name, job in jobs.items()]
            try:
                for future in as_completed(futures):
                    future.result()
                    shown.advance(task)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise

    def do(self, name: str, job: WorkerJob) -> None:
        """Runs one job in a new process, which reads it from a folder and stops when its standard input is closed."""
        with tempfile.TemporaryDirectory() as folder:
            job.write(Path(folder))
            status, output = self._run(folder)
        if status != 0 and not self.stopped:
            raise _fault(name, status, output)

    def _run(self, folder: str) -> tuple[int, str]:
        with self.lock:
            if self.stopped:
                return 0, ""
            paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            process = subprocess.Popen(
                [*WORK, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=paths, start_new_session=True
            )
            self.processes.append(process)
        assert process.stdin is not None and process.stdout is not None
        output = process.stdout.read().decode()
        status = process.wait()
        process.stdout.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
        return status, output

    def stop(self) -> None:
        """Terminates all running workers; checkpoints stay."""
        with self.lock:
            self.stopped = True
        for process in self.processes:
            if process.poll() is None:
                process.terminate()


def _fault(name: str, status: int, output: str) -> Exception:
    if status == REFUSED:
        return AssayError(output)
    if output:
        return RuntimeError(f"The training of {name!r} failed:\n{output}")
    return AssayError(
        f"The training of {name!r} was ended from outside (status {status}), perhaps for want of memory; "
        f"set {WORKERS} to a lower number, and try again."
    )


def work() -> None:
    """The main function of a worker: one training, read from the given folder; an error goes to standard output."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # scratch files are cleared away
    job = WorkerJob.read(Path(sys.argv[1]))
    threading.Thread(target=_until_left_alone, daemon=True).start()
    progress.console.quiet = True  # the caller shows a bar for all
    torch.set_num_threads(job.threads)
    try:
        train(job.corpus, job.recipe, job.folder, job.device, job.objective)
    except AssayError as fault:
        _end(REFUSED, str(fault))
    except (MemoryError, torch.OutOfMemoryError):
        _end(REFUSED, f"Too many trainings for the memory at once; set {WORKERS} to a lower number, and try again.")
    except Exception:
        _end(1, traceback.format_exc())


def _end(status: int, output: str) -> None:
    sys.stdout.buffer.write(output.encode())
    sys.stdout.flush()
    sys.exit(status)


def _until_left_alone() -> None:
    """Stops the worker when its parent process is gone, for whatever reason."""
    while os.read(0, 1):  # not through sys.stdin: its lock must be free when Python ends
        pass
    signal.raise_signal(signal.SIGTERM)
