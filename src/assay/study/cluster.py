"""Ray engine: trials run on nodes with free resources; those of a lost node are run again elsewhere."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from assay import __version__
from assay.errors import AssayError, library_errors
from assay.study.attempts import Outcome, answer, attempt, work_folder
from assay.study.plans import checked_hash
from assay.study.trials import Trial

# Connects to a Ray cluster, or starts a temporary one.


ANSWERING = 5.0  # seconds until somebody must have answered


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Context manager: Ray, connected; an existing connection stays open."""
    try:
        import ray
    except ImportError as fault:
        raise AssayError("The engine ray needs the library ray; install it: pip install 'assay[cluster]'.") from fault
    if ray.is_initialized():
        yield ray
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if where == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours reports to nobody
        options["include_dashboard"] = False
    with library_errors(lambda why: f"No Ray cluster can be used at {where!r} ({why}); 'ray status' there tells more."):
        _reach(where)
        ray.init(where, **options)
    try:
        yield ray
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Raises where nobody listens at the address; Ray itself would retry for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "://" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWERING).close()


# What a node of a cluster does: it makes one trial, in a folder of its own or in that of the study.
#
# Jobs and answers are JSON, and results are bytes, so that a node needs nothing but the same versions.


@dataclass(frozen=True)
class Job:
    """A trial with the versions, device and folder that a node needs to run it."""

    run: str
    trial: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str = "cpu"
    shared: str | None = None  # the folder of the study, where all nodes see it


def make(job: str, node: str) -> tuple[str, dict[str, bytes]]:
    """Runs a job; returns the answer, and the result's files unless they are in the shared folder."""
    told = Job(**json.loads(job))
    trial = Trial.of(told.trial)
    if unfit := _unfit(told):
        return json.dumps({"unfit": unfit}), {}
    if lacking := _lacking(trial):
        return json.dumps(answer(Outcome(trial, reason=lacking))), {}
    if told.shared is not None:
        return json.dumps(answer(attempt(trial, Path(told.shared), told.device))), {}
    _scratch(told.run).mkdir(mode=0o700, exist_ok=True)
    place = _scratch(told.run) / node
    outcome = attempt(trial, place, told.device, keep=False)
    if outcome.full:
        unfit = f"The disk of the node {_here()} is full; make room in {place.parent.parent} there"
        return json.dumps({"unfit": unfit}), {}
    shutil.rmtree(work_folder(place, trial), ignore_errors=True)
    return json.dumps(answer(outcome)), dict(outcome.files or {})


def forget(run: str) -> None:
    """Deletes what a run has left on this node, including models."""
    shutil.rmtree(_scratch(run), ignore_errors=True)


def versions() -> dict[str, str]:
    """Versions of the packages that decide the numbers; build tags do not count, as GPU nodes have other builds."""
    return {"assay": __version__, "torch": metadata.version("torch").partition("+")[0]}


@contextmanager
def signed(place: Path, run: str) -> Iterator[None]:
    """Context manager: a temporary file by which a node recognises the shared study folder."""
    sign = _sign(place, run)
    sign.parent.mkdir(parents=True, exist_ok=True)
    sign.touch()
    try:
        yield
    finally:
        sign.unlink(missing_ok=True)


def _unfit(job: Job) -> str | None:
    """Why this node cannot run the job, or None."""
    for name, version in versions().items():
        if version != job.versions[name]:
            return (
                f"The node {_here()} has {name} {version}, and here is {job.versions[name]}; "
                "install the same version on every node"
            )
    if job.shared is not None and not _sign(Path(job.shared), job.run).is_file():
        return (
            f"The node {_here()} does not see the folder {job.shared}; share it with all nodes, or leave out --shared"
        )
    return None


def _lacking(trial: Trial) -> str | None:
    """An input file that is missing or different on this node, or None."""
    kind = trial.kind
    for name, sha256 in ((trial.corpus.name, trial.corpus.sha256), (kind.path or kind.base, kind.sha256)):
        if name is None or sha256 is None:  # it is no file or folder
            continue
        if not Path(name).exists():
            return f"{name} does not exist on the node {_here()}; put it where all nodes see it, at the same path"
        try:
            checked_hash(Path(name), sha256)
        except AssayError:
            return f"{name} on the node {_here()} is not what it is here; put the same on every node, at the same path"
    return None


def _sign(place: Path, run: str) -> Path:
    return place / f".shared-{run}"


def _scratch(run: str) -> Path:
    return Path(tempfile.gettempdir()) / f"assay-{run}"


def _here() -> str:
    return socket.gethostname()


MARGIN = 2  # trials that wait on the cluster, so that no node waits for us
PATIENCE = 5.0  # seconds between looks at how many nodes there are
FAREWELL = 10.0  # seconds for nodes to tidy up
FOLDERS = ("ASSAY_DATA", "ASSAY_CACHE")


@dataclass(frozen=True)
class Ray:
    """Runs trials on a Ray cluster at an address, or one of this machine, with these resources for each trial.

    A trial whose process or node is lost is tried again so often. Results come back through Ray, unless the folder of
    the study is `shared` with all nodes: then they write there themselves.
    """

    address: str | None = None
    cpus: float = 1
    gpus: float = 0
    retries: int = 3
    shared: bool = False
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.cpus <= 0 or self.gpus < 0 or self.retries < 0:
            raise AssayError("A trial on a cluster needs more than 0 CPUs; GPUs and retries are numbers from 0.")
        if any(share > 1 and share != int(share) for share in (self.cpus, self.gpus)):
            raise AssayError("A trial has a share of one CPU or GPU, or a whole number of them.")
        if self.device not in ("cpu", "cuda"):
            raise AssayError(f"On a cluster the device is cpu or cuda, not {self.device!r}: Ray chooses which GPU.")
        if (self.device == "cuda") != (self.gpus > 0):
            raise AssayError("Trials on GPUs need the device cuda, and a number of GPUs, or a share of one, for each.")

    def __call__(self, trials: Iterator[Trial], place: Path) -> Iterator[Outcome]:
        first = next(trials, None)
        if first is None:  # a cluster is not needed for nothing
            return
        run, trials = uuid.uuid4().hex, chain([first], trials)
        job = Job(run, {}, versions(), self.device, str(place.resolve()) if self.shared else None)
        sign = signed(place, run) if self.shared else contextlib.nullcontext()
        with sign, connected(self.address) as ray, contextlib.closing(_RunningTrials(ray, self, job)) as errands:
            if errands.room == 0:
                size = f"{self.cpus:g} CPUs" + f" and {self.gpus:g} GPUs" * (self.gpus > 0)
                raise AssayError(f"No node of the cluster has the {size} that a trial is to have; ask for less.")
            while errands.fill(trials):
                yield from errands.ended()


@dataclass
class _RunningTrials:
    """Trials in progress on a cluster."""

    ray: Any
    engine: Ray
    job: Job  # what is the same in all of them
    pending: dict[Any, tuple[Trial, int]] = field(default_factory=dict)  # and how often each was lost

    @property
    def room(self) -> int:
        """How many trials the present nodes can run at once."""
        return sum(self._on(node["Resources"]) for node in self.ray.nodes() if node["Alive"])

    def fill(self, trials: Iterator[Trial]) -> bool:
        """Submits trials while there is room; False where none is left, or they cannot be submitted."""
        free = self.room + MARGIN - len(self.pending)
        for _ in range(free):
            if (trial := next(trials, None)) is None:
                break
            self._send(trial, 0)
        return bool(self.pending)

    def ended(self) -> Iterator[Outcome]:
        """Outcomes of finished trials; lost ones are submitted again."""
        done, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=PATIENCE)
        for reference in done:
            trial, losses = self.pending.pop(reference)
            try:
                answer, files = self.ray.get(reference)
            except self.ray.exceptions.RayTaskError as fault:  # not of the trial: that tells of its faults itself
                why = " ".join(str(fault.cause).split())[:200]
                raise AssayError(f"A node cannot run assay ({why}); install the same version on every node.") from fault
            except self.ray.exceptions.RayError as fault:
                if losses < self.engine.retries:
                    self._send(trial, losses + 1)
                else:
                    yield self._given_up(trial, fault)
            else:
                yield _outcome(trial, json.loads(answer), files)

    def close(self) -> None:
        """Cancels what is running, and cleans up the nodes."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            for reference in self.pending:
                self.ray.cancel(reference, force=True)
            left = [self._tidied(node["NodeID"]) for node in self.ray.nodes() if node["Alive"]]
            self.ray.wait(left, num_returns=len(left), timeout=FAREWELL)

    def _tidied(self, node: str) -> Any:
        there = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
        return self._task(forget, num_cpus=0, scheduling_strategy=there).remote(self.job.run)

    def _send(self, trial: Trial, losses: int) -> None:
        job = replace(self.job, trial=trial.json())
        self.pending[self._making.remote(json.dumps(asdict(job)))] = (trial, losses)

    @cached_property
    def _making(self) -> Any:
        return self._task(_made, num_cpus=self.engine.cpus, num_gpus=self.engine.gpus)

    def _task(self, function: Any, **options: Any) -> Any:
        """A remote function. Losses are counted here, so Ray's own retries are off."""
        environment = {"env_vars": _environment(self.engine)}
        return self.ray.remote(function).options(max_retries=0, runtime_env=environment, **options)

    def _on(self, resources: dict[str, float]) -> int:
        """How many trials one node can run at once."""
        wanted = {"CPU": self.engine.cpus, "GPU": self.engine.gpus}
        return int(min(resources.get(name, 0) / share + 1e-9 for name, share in wanted.items() if share))

    def _given_up(self, trial: Trial, fault: Exception) -> Outcome:
        times = f" {self.engine.retries + 1} times" if self.engine.retries else ""
        memory = isinstance(fault, self.ray.exceptions.OutOfMemoryError)
        hint = " for want of memory; give each trial more CPUs, so that fewer share a node" if memory else ""
        return Outcome(trial, reason=f"its process or node was lost{times}{hint}", details=str(fault))


def _made(job: str) -> tuple[str, dict[str, bytes]]:
    """Runs a job on a node."""
    import ray

    return make(job, ray.get_runtime_context().get_node_id())


def _outcome(trial: Trial, answer: dict[str, Any], files: dict[str, bytes]) -> Outcome:
    if "unfit" in answer:  # for other trials, too: it would only collect failures
        raise AssayError(f"{answer['unfit']}, and run the same command again: what is finished is kept.")
    return Outcome(trial, **answer, files=files or None)


def _environment(engine: Ray) -> dict[str, str]:
    """Environment of the nodes: one thread, as everywhere, so that numbers agree; and the data folders, if set."""
    given = {name: str(Path(os.environ[name]).absolute()) for name in FOLDERS if os.environ.get(name)}
    threads = os.environ.get("OMP_NUM_THREADS", "1")
    return given | {"OMP_NUM_THREADS": threads, "ASSAY_WORKERS": str(max(1, int(engine.cpus)))}
