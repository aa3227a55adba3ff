"""Faults on purpose: whatever is killed, full or damaged, nothing finished is lost, and the rest completes."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.models import store
from assay.study.attempts import make_record
from assay.study.plans import read
from assay.study.trials import MARK, model_folder
from tests.reliability.studying import contents, ended, found, marked, planned, started

pytestmark = pytest.mark.slow

KILLS = 50
SITE = """
import os, sys
def met(event, given):
    if event == "open" and isinstance(given[0], (str, os.PathLike)) and "work/IDENTITY" in os.fspath(given[0]):
        os.kill(os.getpid(), 9)
if "assay.study.attempts" in " ".join(sys.orig_argv):
    sys.addaudithook(met)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    """A study of four trials that nothing happened to; its plan lies beside it."""
    place = tmp_path_factory.mktemp("undisturbed")
    assert ended(started(planned(place, 2), place / "out"))[0] == 0
    return place


@pytest.fixture
def finished(undisturbed, tmp_path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    return tmp_path


def descendants(process: int) -> list[int]:
    """All processes that a process started, and those that these started."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            said = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        parents.setdefault(int(said[1]), []).append(int(path.parent.name))
    below = parents.get(process, [])
    return below + [each for child in below for each in descendants(child)]


def kill(processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def has_worker(process: subprocess.Popen[str]) -> bool:
    """Waits until the study has started a worker; False where it ended before."""
    while process.poll() is None:
        if descendants(process.pid):
            return True
        time.sleep(0.02)
    return False


def test_a_study_that_is_killed_fifty_times_finishes_with_the_same_findings(undisturbed, tmp_path):
    plan, moments, studies, kills = undisturbed / "plan.toml", random.Random(0), 0, 0
    place, before = tmp_path / "0", {}
    while kills < KILLS:
        process = started(plan, place)
        if has_worker(process):
            time.sleep(moments.uniform(0, 8))
        kill([process.pid, *descendants(process.pid)])
        code, said = ended(process)
        after = marked(place)
        assert before.items() <= after.items()  # what was done is there as it was
        before = after
        if code == -signal.SIGKILL:
            kills += 1
        else:  # it was quicker: another study is killed
            assert code == 0, said
            assert found(read(plan), place) == found(read(plan), undisturbed / "out")
            studies, before = studies + 1, {}
            place = tmp_path / str(studies)
    code, said = ended(started(plan, place))
    assert code == 0, said
    assert before.items() <= marked(place).items()
    assert found(read(plan), place) == found(read(plan), undisturbed / "out")
    assert not (place / "damaged").exists()


def test_a_worker_that_is_killed_is_replaced_and_the_others_go_on(undisturbed, tmp_path):
    plan, place, seen = undisturbed / "plan.toml", tmp_path / "out", set()
    process = started(plan, place)
    for _ in range(2):  # one that is at work, then one that has just been started in its place
        new: list[int] = []
        while not new or not any(place.glob("work/*")):
            assert process.poll() is None
            new = [each for each in descendants(process.pid) if each not in seen]
            time.sleep(0.01)
        seen.update(descendants(process.pid))
        kill(new[:1])
    code, said = ended(process)
    assert (code, said.splitlines()[-1]) == (0, "4 done")
    assert found(read(plan), tmp_path / "out") == found(read(plan), undisturbed / "out")


def test_a_trial_that_always_kills_its_worker_is_given_up_and_takes_no_other_with_it(undisturbed, tmp_path):
    plan = undisturbed / "plan.toml"
    poison, *others = read(plan).trials
    (tmp_path / "sitecustomize.py").write_text(SITE.replace("IDENTITY", poison.identity))
    code, said = ended(started(plan, tmp_path / "out", beside=str(tmp_path)))
    assert code == 0
    assert said.splitlines()[-2:] == [
        "3 done",
        f"{poison.title}: its process was killed by signal 9, 3 times; "
        "perhaps there was not enough memory, so try fewer --jobs",
    ]
    assert set(marked(tmp_path / "out")) == {trial.identity for trial in others}


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of its own that starts without room."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_on_a_full_disk_one_sentence_is_said_and_the_study_completes_when_there_is_room(undisturbed, small_disk):
    plan, place = undisturbed / "plan.toml", small_disk / "out"
    sentences, before = [], {}
    for size in (16, 96, 160, 224, 288, 352, 20_000):
        subprocess.run(["mount", "-o", f"remount,size={size}k", small_disk], check=True)
        code, said = ended(started(plan, place))
        assert before.items() <= marked(place).items()
        before = marked(place)
        if code == 0:
            break
        assert code == 2, said
        assert "Traceback" not in said
        sentences.append(said.splitlines()[-1])
    full = "The disk is full; make room, and run the same command again: what is finished is kept."
    assert sentences and set(sentences) <= {full}
    assert found(read(plan), place) == found(read(plan), undisturbed / "out")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("instances.parquet", "flipped"),
        ("examples.parquet", "cut"),
        ("summary.json", "flipped"),
        ("summary.json", "gone"),
        (MARK, "cut"),
        (MARK, "gone"),
    ],
)
def test_a_damaged_result_is_found_put_aside_and_made_again(undisturbed, finished, name, damage):
    plan, place = read(finished / "plan.toml"), finished / "out"
    hurt, *others = (place / "trials" / trial.identity for trial in plan.trials)
    before, times = marked(place), {path: path.stat().st_mtime_ns for path in others}
    spoil(hurt / name, damage)
    spoilt = contents(hurt)
    code, said = ended(started(finished / "plan.toml", place, jobs=1))
    assert (code, said.splitlines()[-1]) == (0, "1 done")
    assert [contents(aside) for aside in place.glob("damaged/*/*")] == [spoilt]
    after = marked(place)
    assert {path.name: after.pop(path.name) for path in others}.items() <= before.items()
    assert {path: path.stat().st_mtime_ns for path in others} == times
    assert found(plan, place) == found(plan, undisturbed / "out")


@pytest.mark.parametrize("name", ["weights.safetensors", "model.json", "tokenizer.json"])
def test_a_damaged_model_is_put_aside_and_trained_again(undisturbed, finished, name):
    plan, place = read(finished / "plan.toml"), finished / "out"
    first = plan.trials[0]
    shutil.rmtree(place / "trials" / first.identity)
    spoil(model_folder(place, first) / name, "cut" if name.endswith("json") else "flipped")
    code, said = ended(started(finished / "plan.toml", place, jobs=1))
    assert (code, said.splitlines()[-1]) == (0, "1 done")
    assert len(list(place.glob(f"damaged/*/*/{name}"))) == 1
    assert found(plan, place) == found(plan, undisturbed / "out")


@pytest.mark.parametrize("damage", ["flipped", "cut"])
def test_a_damaged_checkpoint_is_put_aside_and_training_begins_anew(undisturbed, finished, monkeypatch, damage):
    plan, place = read(finished / "plan.toml"), finished / "out"
    first = plan.trials[0]
    shutil.rmtree(place / "trials" / first.identity)
    model = model_folder(place, first)
    shutil.rmtree(model)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(store, "save", interrupted)
        make_record(first, place)
    spoil(model / "checkpoint.safetensors", damage)
    code, said = ended(started(finished / "plan.toml", place, jobs=1))
    assert (code, said.splitlines()[-1]) == (0, "1 done")
    assert len(list(place.glob("damaged/*/*/checkpoint.safetensors"))) == 1
    assert found(plan, place) == found(plan, undisturbed / "out")


def test_a_trial_without_enough_memory_fails_alone(undisturbed, tmp_path):
    large = '[models.large]\nencoder = "average"\nembedding = 60_000_000\nhidden = 8\nepochs = 1\n'
    code, said = ended(started(planned(tmp_path, 1, large), tmp_path / "out", jobs=1, memory=8 << 30))
    assert code == 0, said
    done, *failed = said.splitlines()[-2:]
    assert done == "2 done"
    assert "large" in failed[0] and "not enough memory" in failed[0]


def interrupted(*given: object) -> None:
    raise KeyboardInterrupt


def spoil(path: Path, damage: str) -> None:
    """Flips a bit in the middle of a file, cuts it in half, or removes it."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    if damage != "gone":
        path.write_bytes(content if damage == "flipped" else content[: len(content) // 2])
