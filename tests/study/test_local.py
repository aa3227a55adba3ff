"""Processes of this machine: one that dies costs its attempt, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from assay.errors import AssayError
from assay.study import engines as local
from assay.study import plans
from assay.study.engines import Local
from assay.study.studying import run
from assay.study.trials import Folder, trial_statuses
from tests.study import small

# Like the worker, but over in a moment. What it does is told by the seed: 0 answers, 1 dies over its first attempt,
# 2 over every one, 3 in the middle of its first answer, 4 never answers.
ACTOR = """
import json, os, pathlib, signal, sys, time
for line in sys.stdin:
    job = json.loads(line)
    seed, place = job["trial"]["seed"], pathlib.Path(job["place"])
    tries = place / f"tries-{seed}"
    with tries.open("a") as noted:
        noted.write(f"{os.getpid()}\\n")
    first = len(tries.read_text().split()) == 1
    if seed == 2 or (seed == 1 and first):
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 3 and first:
        sys.stdout.write('{"seconds": 1')
        sys.stdout.flush()
        os._exit(7)
    while seed == 4:
        time.sleep(0.01)
    print(json.dumps({"seconds": 1.0, "device": job["device"]}), flush=True)
"""


@pytest.fixture
def acted(monkeypatch):
    monkeypatch.setattr(local, "WORK", [sys.executable, "-S", "-c", ACTOR])


def tries(place: Path, seed: int) -> list[int]:
    """The processes that tried a trial."""
    path = place / f"tries-{seed}"
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def workers(parent: int) -> list[int]:
    """Children of a process that make trials."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if "assay.study.attempts" in line]


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_process_that_dies_costs_its_attempt_alone(acted, tmp_path, jobs):
    trials = [small.trial(seed) for seed in (2, 0, 1, 3)]
    outcomes = {each.trial.seed: each for each in Local(jobs)(iter(trials), tmp_path)}
    assert {seed: each.reason for seed, each in outcomes.items() if seed != 2} == {0: None, 1: None, 3: None}
    assert outcomes[2].reason.startswith("its process was killed by signal 9, 3 times")
    assert [len(tries(tmp_path, seed)) for seed in (0, 1, 2, 3)] == [1, 2, 3, 2]
    assert len(set(tries(tmp_path, 1))) == 2


def test_a_trial_is_tried_again_as_often_as_is_said(acted, tmp_path):
    (outcome,) = Local(retries=0)(iter([small.trial(3)]), tmp_path)
    assert outcome.reason == "its process ended with 7, 1 times"
    assert len(tries(tmp_path, 3)) == 1


def test_one_process_makes_many_trials_and_devices_are_taken_in_turn(acted, tmp_path):
    list(Local(1)(iter([small.trial()] * 5), tmp_path))
    assert len(tries(tmp_path, 0)) == 5
    assert len(set(tries(tmp_path, 0))) == 1
    slots = Local(3, devices=("cuda:0", "cuda:1"))(iter([small.trial()] * 30), tmp_path)
    assert {each.device for each in slots} <= {"cuda:0", "cuda:1"}


def test_who_stops_listening_stops_the_work(acted, tmp_path):
    taken = []
    outcomes = Local(2)((taken.append(seed) or small.trial(seed) for seed in (0, 4, 4, 4)), tmp_path)
    assert next(outcomes).trial.seed == 0
    while not tries(tmp_path, 4):
        time.sleep(0.01)
    outcomes.close()
    before = tries(tmp_path, 4)
    assert not any(alive(process) for process in before)
    assert taken.count(4) <= 2
    time.sleep(0.1)
    assert tries(tmp_path, 4) == before  # nothing was started again


def test_what_goes_wrong_in_taking_trials_is_not_swallowed(acted, tmp_path):
    def broken():
        yield small.trial()
        raise AssayError("no more of them")

    with pytest.raises(AssayError, match="no more of them"):
        list(Local(2)(broken(), tmp_path))


@pytest.mark.parametrize("options", [{"jobs": 0}, {"retries": -1}, {"devices": ()}])
def test_no_engine_has_nobody_to_work(options):
    with pytest.raises(AssayError, match="Jobs are a number from 1"):
        Local(**options)


@pytest.mark.slow
def test_a_worker_that_is_killed_from_outside_is_followed_by_another(tmp_path):
    plan = plans.read(small.planned(tmp_path))
    place, killed = tmp_path / "study", []
    outcomes = Local(1)(iter(plan.trials), place)

    def kill() -> None:
        while not (found := workers(os.getpid())):
            time.sleep(0.01)
        time.sleep(1)
        os.kill(found[0], signal.SIGKILL)
        killed.append(found[0])

    killer = threading.Thread(target=kill)
    killer.start()
    assert [each.reason for each in outcomes] == [None, None]
    killer.join()
    assert killed
    assert {each.state for each in trial_statuses(plan.trials, Folder(place))} == {"done"}


@pytest.mark.slow
def test_a_worker_does_not_outlive_who_started_it(tmp_path):
    path = small.planned(tmp_path)
    with subprocess.Popen([sys.executable, "-m", "assay.cli", "study", str(path), "--out", str(tmp_path / "x")]) as run:
        while not (found := workers(run.pid)):
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    for _ in range(3000):
        if not any(alive(process) for process in found):
            break
        time.sleep(0.01)
    assert not any(alive(process) for process in found)


RUN = """
import json, sys
from pathlib import Path
from assay.study.engines import Local
from assay.study.plans import read
from assay.study.studying import run
tally = run(read(Path(sys.argv[1])).trials, Path(sys.argv[2]), Local(1))
print(json.dumps([tally.done, tally.elsewhere, len(tally.failed)]))
"""


@pytest.mark.slow
def test_two_processes_in_one_folder_make_each_trial_once(tmp_path):
    path = small.planned(tmp_path, small.PLAN.replace("[0, 1]", "[0, 1, 2, 3, 4, 5]"))
    command = [sys.executable, "-c", RUN, str(path), str(tmp_path / "study")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [json.loads(process.communicate()[0]) for process in both]
    assert sum(done for done, _, _ in told) == 6  # whoever made it
    assert all(failed == 0 for _, _, failed in told)
    plan = plans.read(path)
    assert Counter(each.state for each in trial_statuses(plan.trials, Folder(tmp_path / "study"))) == {"done": 6}
    assert run(plan.trials, tmp_path / "study", Local(1)).done == 0
