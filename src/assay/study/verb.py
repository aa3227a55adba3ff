"""A study from its plan to its tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from assay.study import plan_file
from assay.study.engines import Engine
from assay.study.engines.engine_settings import EngineSettings
from assay.study.engines.engine_settings import engine as named_engine
from assay.study.folder import Folder, opened
from assay.study.plans import StudyPlan
from assay.study.running import run
from assay.study.status import TrialStatus, counted, trial_statuses
from assay.study.writing import write


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
