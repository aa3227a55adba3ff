"""`assay study` and its verbs as a person meets them: tiny grids, and what each mistake says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay import cli
from assay.study import engines as engine_settings
from assay.study import plans
from assay.study.engines import EngineSettings, Local, engine
from assay.study.trials import Folder
from tests.calling import call
from tests.study import small

BAD = small.PLAN.replace('["texts.csv"]', '["texts.csv", "one_class.csv"]').replace("[0, 1]", "[0]")


@pytest.fixture
def assay(monkeypatch, capsys, tmp_path):
    """The command line, where trials are made in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.console, "width", 100)
    monkeypatch.setattr(Local, "__call__", lambda self, trials, place: small.here(trials, place))
    return lambda *words: call(monkeypatch, capsys, *words)


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return small.planned(tmp_path)


def test_a_dry_run_shows_the_grid_and_writes_nothing(assay, plan, tmp_path):
    code, out, told = assay("study", "small.toml", "--dry-run")
    assert code == 0, told
    assert "Study small in runs/small: 2 trials, 2 missing." in out
    assert "texts.csv   0 of 2 done" in out
    assert "To make: 2 trials, for which 2 models to train." in out
    assert "no trial is done; to explain: 2 × (4 test texts × 2 explainers)." in " ".join(out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.toml", "texts.csv"]


def test_a_study_is_run_looked_at_and_told_from_its_folder(assay, plan):
    code, out, told = assay("study", "small.toml")
    assert code == 0, told
    assert "Study small in runs/small: 2 trials, 2 done." in out
    assert "Tables: runs/small/" in out and "Page: runs/small/" in out
    page = next(line for line in out.splitlines() if line.startswith("Page: ")).removeprefix("Page: ")
    assert Path(page).is_file()
    for place in ("runs/small", "small.toml"):
        code, out, _ = assay("study", "status", place)
        assert code == 0
        assert "2 of 2 done" in out
    code, out, _ = assay("study", "status", "runs/small", "--json")
    assert [each["state"] for each in json.loads(out)] == ["done", "done"]
    code, out, _ = assay("study", "runs/small", "--dry-run")
    assert "Nothing is left to do." in out


def test_what_is_done_is_not_done_again_and_the_estimate_is_by_it(assay, plan, tmp_path):
    assert assay("study", "small.toml")[0] == 0
    marks = {path: path.stat().st_mtime_ns for path in Path("runs").glob("*/trials/*/done.json")}
    small.planned(tmp_path, small.PLAN.replace("[0, 1]", "[0, 1, 2]"))
    _, out, _ = assay("study", "small.toml", "--dry-run", "--jobs", "2")
    assert "3 trials, 2 done, 1 missing" in out
    assert "Time: about 1 second, 2 at once, judged by the 2 trials done." in " ".join(out.split())
    assert assay("study", "small.toml")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in marks} == marks
    assert len(list(Path("runs/small/trials").iterdir())) == 3
    assert "seeds = [0, 1, 2]" in Path("runs/small/plan.toml").read_text()


def test_the_plan_in_the_folder_means_the_same_wherever_the_folder_is(assay, plan, tmp_path):
    assert assay("study", "small.toml", "--out", "study")[0] == 0
    first = [trial.identity for trial in plans.read(Path("small.toml")).trials]
    (tmp_path / "far").mkdir()
    shutil.move("study", "far/study")
    shutil.move("texts.csv", "gone.csv")
    assert [trial.identity for trial in plans.read(Path("far/study/plan.toml")).trials] == first
    code, out, _ = assay("study", "status", "far/study")
    assert (code, "2 of 2 done" in out) == (0, True)
    small.texts(tmp_path / "texts.csv", rows=61)
    code, _, told = assay("study", "status", "far/study")
    assert code == 2
    assert "texts.csv is not what it was when the study was planned" in " ".join(told.split())


def test_trials_that_fail_are_told_with_reasons_and_can_be_tried_again(assay, tmp_path):
    small.texts(tmp_path / "one_class.csv", labels=("no",))
    small.planned(tmp_path, BAD)
    code, out, _ = assay("study", "small.toml")
    assert code == 1
    assert "2 trials, 1 done, 1 failed" in out
    assert "Failed: " in out and "  one_class.csv · average · seed 0 · audits" in out
    assert "Try again: assay study retry-failed runs/small" in out
    assert "Page: " in out  # of what is done
    code, out, _ = assay("study", "status", "runs/small")
    assert code == 0
    assert "0 of 1 done, 1 failed" in out
    (failed,) = Path("runs/small/failed").iterdir()
    before = failed.stat().st_mtime_ns
    assert assay("study", "small.toml")[0] == 1
    assert failed.stat().st_mtime_ns == before  # left alone until it is asked for
    assert assay("study", "retry-failed", "runs/small")[0] == 1
    assert failed.stat().st_mtime_ns > before


def test_what_failed_for_a_reason_that_has_passed_is_made_by_retry_failed(assay, plan):
    trial = plans.read(plan).trials[0]
    Folder(Path("runs/small")).fail(trial, "a bad day")
    code, out, _ = assay("study", "small.toml")
    assert code == 1
    assert "Failed: a bad day" in out
    code, out, told = assay("study", "retry-failed", "small.toml")
    assert code == 0, told
    assert "2 trials, 2 done." in out


def test_the_titles_of_many_failures_are_cut_short(assay, tmp_path):
    path = small.planned(tmp_path, small.PLAN.replace("[0, 1]", "[0, 1, 2, 3, 4, 5, 6]"))
    for trial in plans.read(path).trials:
        Folder(Path("runs/small")).fail(trial, "[the same] day")
    code, out, _ = assay("study", "status", "small.toml")
    assert code == 0
    assert out.count("Failed: [the same] day") == 1
    assert "and 2 more" in out


def test_a_trial_under_way_is_named(assay, plan):
    trial = plans.read(plan).trials[1]
    lock = Folder(Path("runs/small")).claim(trial)
    _, out, _ = assay("study", "status", "small.toml")
    lock.release()
    assert "1 under way" in out
    assert f"Under way: {trial.title}" in out
    assert "Go on: assay study small.toml" in out


def test_two_studies_are_compared_number_for_number(assay, plan):
    for folder in ("one", "two"):
        assert assay("study", "small.toml", "--out", folder)[0] == 0
    code, out, _ = assay("study", "compare", "one", "two")
    assert code == 0
    assert "2 trials in both, 0 only in one, 0 only in two." in out
    assert "numbers are the same." in out
    trial = plans.read(plan).trials[0]
    folder = Folder(Path("two"))
    files = {path.name: path.read_bytes() for path in folder.trial(trial).iterdir() if path.name != "done.json"}
    summary = json.loads(files["summary.json"])
    summary["findings"][0]["mean"] += 0.5
    shutil.rmtree(folder.trial(trial))
    folder.keep(trial, files | {"summary.json": json.dumps(summary).encode()}, {})
    code, out, _ = assay("study", "compare", "one", "two")
    assert code == 1
    assert "Numbers differ in 1 of 2 trials; the largest difference is 0.5," in " ".join(out.split())
    assert "seed 0" in out and "mean" in out


def test_a_plan_that_somebody_wrote_is_never_written_over(assay, plan, tmp_path):
    (tmp_path / "mine").mkdir()
    own = tmp_path / "mine" / "plan.toml"
    own.write_text("# dear to me\n" + small.PLAN)
    code, _, told = assay("study", "small.toml", "--out", "mine")
    assert code == 2
    assert "There is another plan, mine/plan.toml" in told
    small.texts(tmp_path / "mine" / "texts.csv")
    assert assay("study", "mine/plan.toml", "--out", "mine")[0] == 0
    assert own.read_text().startswith("# dear to me")
    assert "2 of 2 done" in assay("study", "status", "mine")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("study", "nothing.toml"), "There is no plan nothing.toml."),
        (("study", "texts.csv"), "texts.csv cannot be read as TOML"),
        (("study", "."), ". is no folder of a study: it has no plan.toml"),
        (("study", "status", "nothing.toml"), "There is no plan nothing.toml."),
        (("study", "retry-failed", "."), ". is no folder of a study"),
        (("study", "compare", ".", "."), ". is no folder of a study: it has no trials"),
        (("study", "small.toml", "--jobs", "0"), "Jobs are a number from 1"),
        (("study", "small.toml", "--jobs", "two"), "Invalid value"),
        (("study", "small.toml", "--engine", "rays"), "Invalid value"),
        (("study", "small.toml", "--device", "abacus"), "The device 'abacus' cannot be used here; try cpu."),
        (("study", "small.toml", "--cpus", "2"), "--cpus is not for the engine local; leave it out"),
        (("study", "small.toml", "--engine", "ray", "--jobs", "2"), "--jobs is not for the engine ray"),
        (("study", "small.toml", "--out", "texts.csv"), "texts.csv cannot be a folder of a study"),
        (("study",), "requires an argument"),
    ],
)
def test_each_mistake_is_one_sentence(assay, plan, words, sentence):
    code, _, told = assay(*words)
    assert code == 2
    assert sentence in " ".join(told.split())
    assert "Traceback" not in told
    assert not Path("runs").exists()


def test_a_stop_says_how_to_go_on(assay, plan, monkeypatch):
    def stopped(trials, place):
        yield from ()
        next(trials)
        raise KeyboardInterrupt

    monkeypatch.setattr(Local, "__call__", lambda self, trials, place: stopped(trials, place))
    code, _, told = assay("study", "small.toml")
    assert code == 130
    assert "Stopped; the same command goes on from here." in told


def test_an_engine_is_made_of_what_is_said_of_it():
    assert engine("local") == Local()
    assert engine("local", EngineSettings(jobs=3, retries=0)) == Local(3, 0)
    two = ("cuda:0", "cuda:1")
    assert engine("local", EngineSettings(devices=two)) == Local(2, devices=two)
    assert engine("local", EngineSettings(jobs=4, devices=two)) == Local(4, devices=two)


def test_without_the_library_the_engine_ray_names_the_extra(assay, plan, monkeypatch):
    monkeypatch.setattr(engine_settings, "find_spec", lambda name: None)
    code, _, told = assay("study", "small.toml", "--engine", "ray")
    assert code == 2
    assert "pip install 'assay[cluster]'" in told


@pytest.mark.cluster
def test_the_engine_ray_is_made_of_what_is_said_of_it():
    pytest.importorskip("ray", reason="the extra cluster is not installed")
    from assay.study.cluster import Ray

    assert engine("ray") == Ray()
    asked = EngineSettings(address="auto", cpus=2.0, gpus=0.5, retries=1, shared=True)
    assert engine("ray", asked) == Ray("auto", 2.0, 0.5, 1, True, "cuda")


@pytest.mark.slow
def test_a_study_that_is_stopped_by_hand_goes_on_with_the_same_command(plan, tmp_path):
    command = [sys.executable, "-m", "assay.cli", "study", str(plan), "--jobs", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob("runs/small/models/*.lock")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate()
    assert process.returncode == 130
    assert "Stopped; the same command goes on from here." in told
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert again.returncode == 0, again.stderr
    assert "2 trials, 2 done." in again.stdout
