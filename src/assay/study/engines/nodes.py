"""What a node of a cluster does: it makes one trial, in a folder of its own or in that of the study.

Jobs and answers are JSON, and results are bytes, so that a node needs nothing but the same versions.
"""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from assay import __version__
from assay.errors import AssayError
from assay.study.attempts import Outcome, attempt
from assay.study.entries import checked_hash
from assay.study.trial_record import work_folder
from assay.study.trials import Trial
from assay.study.worker import answer


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
