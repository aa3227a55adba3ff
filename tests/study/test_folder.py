"""The folder of a study: whole results or none, and one maker for each trial."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from assay.errors import AssayError
from assay.study.trials import FILES, MARK, Folder, opened
from tests.study import small

HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("mine", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "study")


@pytest.fixture
def holder(folder: Folder):
    """Another process that has claimed a trial."""
    folder.claim(small.trial()).release()
    (lock,) = (folder.place / "locks").glob("*.claim")
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "mine\n"
        yield process
        process.kill()


def test_what_is_kept_is_found_with_what_is_known_of_it(folder):
    assert folder.done(small.trial()) is None
    folder.keep(small.trial(), small.files(), {"seconds": 1.5})
    mark = folder.done(small.trial())
    assert mark["seconds"] == 1.5
    assert mark["trial"] == small.trial().json()
    assert folder.done(small.trial(1)) is None
    assert list(folder.marks()) == [small.trial().identity]
    assert (folder.trial(small.trial()) / FILES[0]).read_bytes() == small.files()[FILES[0]]


def test_a_result_that_is_there_and_whole_stays(folder):
    folder.keep(small.trial(), small.files("first"), {"seconds": 1})
    folder.keep(small.trial(), small.files("second"), {"seconds": 2})
    assert folder.done(small.trial())["seconds"] == 1
    assert [path.name for path in (folder.place / "trials").iterdir()] == [small.trial().identity]
    assert not (folder.place / "damaged").exists()


@pytest.mark.parametrize("moment", ["write_bytes", "rename"])
def test_a_result_that_cannot_be_kept_leaves_nothing(folder, monkeypatch, moment):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, moment, full)
        with pytest.raises(OSError, match="No space left"):
            folder.keep(small.trial(), small.files(), {})
    assert folder.done(small.trial()) is None
    assert list((folder.place / "trials").iterdir()) == []
    folder.keep(small.trial(), small.files(), {})
    assert folder.done(small.trial()) is not None


@pytest.mark.parametrize("name", [*FILES, MARK])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_file_is_found_and_put_aside(folder, name, damage):
    folder.keep(small.trial(), small.files(), {})
    path = folder.trial(small.trial()) / name
    held = path.read_bytes()
    path.unlink() if damage == "gone" else path.write_bytes(held[:-3] if damage == "cut" else b"?" + held[1:])
    assert folder.done(small.trial()) is None
    assert folder.marks() == {}
    folder.keep(small.trial(), small.files("anew"), {})
    assert folder.done(small.trial()) is not None
    (aside,) = (folder.place / "damaged").glob("*/*")
    assert (aside / name).exists() == (damage != "gone")


def test_a_mark_that_lists_too_little_is_no_mark(folder):
    folder.keep(small.trial(), small.files(), {})
    path = folder.trial(small.trial()) / MARK
    for held in ('{"files": {}}', '{"files": []}', "[]", '{"files": {"summary.json": 3}}'):
        path.write_text(held)
        assert folder.done(small.trial()) is None


def test_a_failure_is_noted_until_it_is_forgotten_or_made_good(folder):
    folder.fail(small.trial(), "no such luck", "and more")
    assert folder.reason(small.trial()) == "no such luck"
    assert json.loads(folder.failure(small.trial()).read_text())["details"] == "and more"
    assert folder.reason(small.trial(1)) is None
    folder.forget(small.trial())
    assert folder.reason(small.trial()) is None
    folder.fail(small.trial(), "again")
    folder.keep(small.trial(), small.files(), {})
    assert folder.reason(small.trial()) is None


def test_a_claim_excludes_another_process_until_that_is_killed(folder, holder):
    assert folder.claim(small.trial()) is None
    assert folder.claimed(small.trial())
    assert not folder.claimed(small.trial(1))
    holder.kill()
    holder.wait()
    assert not folder.claimed(small.trial())
    lock = folder.claim(small.trial())
    assert lock is not None and lock.is_locked
    lock.release()


def test_a_claim_may_be_released_in_another_thread_than_it_was_made_in(folder):
    held = []
    thread = threading.Thread(target=lambda: held.append(folder.claim(small.trial())))
    thread.start()
    thread.join()
    assert folder.claimed(small.trial())
    held[0].release()
    assert not folder.claimed(small.trial())


def test_to_look_whether_a_trial_is_claimed_writes_nothing(folder):
    assert not folder.claimed(small.trial())
    assert folder.marks() == {}
    assert not folder.place.exists()


def test_a_file_cannot_be_the_folder_of_a_study(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AssayError, match="cannot be a folder of a study"):
        opened(tmp_path / "file")
