"""A small study in a process of its own, to be disturbed; and what is compared before and after."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from assay.errors import AssayError
from assay.study.engines import Local
from assay.study.plans import StudyPlan, read
from assay.study.studying import run
from assay.study.trials import MARK, Folder

ROOT = Path(__file__).parents[2]
PLAN = """
corpora = [{name = "planted:keyword", train = 64}]
seeds = SEEDS
[models.small]
encoder = "average"
hidden = 8
embedding = 8
epochs = 1
[models.lstm]
encoder = "lstm"
hidden = 8
embedding = 8
epochs = 2
[audits]
explainers = ["attention", "random"]
audits = ["agreement", "truth"]
limit = 8
"""


def planned(place: Path, seeds: int = 1, more: str = "") -> Path:
    """A plan of twice as many trials as there are seeds, as a file."""
    path = place / "plan.toml"
    path.write_text(PLAN.replace("SEEDS", str(list(range(seeds)))) + more)
    return path


def started(plan: Path, place: Path, jobs: int = 2, memory: int = 0, beside: str = "") -> subprocess.Popen[str]:
    """A process that runs the plan, at the head of a group of its own; `beside` is looked for before other modules."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.studying", str(plan), str(place), str(jobs), str(memory)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": beside},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and what was said."""
    said, _ = process.communicate(timeout=600)
    return process.returncode, said


def marked(place: Path) -> dict[str, dict[str, str]]:
    """The sha256 of each file of each trial that is marked as done."""
    folders = [mark.parent for mark in place.glob(f"trials/*/{MARK}") if not mark.parent.name.startswith(".")]
    return {folder.name: contents(folder) for folder in folders}


def contents(folder: Path) -> dict[str, str]:
    """The sha256 of each file of a folder."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def found(plan: StudyPlan, place: Path) -> dict[str, tuple[Any, list[dict[str, Any]]]]:
    """The findings of each trial, and the rows that they are made of; all must be finished."""
    folder = Folder(place)
    assert all(folder.done(trial) is not None for trial in plan.trials)
    records = {trial.title: folder.record(trial) for trial in plan.trials}
    return {title: (record.summary["findings"], record.instances.to_pylist()) for title, record in records.items()}


def main(plan: str, place: str, jobs: str, memory: str) -> None:
    """Runs a plan; what a person can mend is said in one sentence. Each process may take so many bytes, 0 for any."""
    trials = read(Path(plan)).trials
    if int(memory):
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    try:
        tally = run(trials, Path(place), Local(int(jobs)))
    except AssayError as fault:
        print(fault)
        sys.exit(2)
    print(f"{tally.done} done", *(f"{title}: {reason}" for title, reason in tally.failed.items()), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
