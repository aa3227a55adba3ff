"""How far a process is, told in a file to who started it."""

from __future__ import annotations

import json
import time

import pytest

from assay import progress


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.PROGRESS_FILE, str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def test_the_file_follows_the_bar_to_its_end(place):
    with progress.bar() as shown:
        task = shown.add_task("auditing", total=4)
        assert json.loads(place.read_text()) == {"task": "auditing", "done": 0, "total": 4, "left": None}
        shown.update(task, completed=3)
        shown.refresh()
        assert json.loads(place.read_text())["done"] == 3
        shown.advance(task)
    assert json.loads(place.read_text())["done"] == 4
    assert [path.name for path in place.parent.iterdir()] == [place.name]


def test_the_clock_tells_without_being_asked(place):
    """The bar is drawn some times a second by a thread of its own."""
    with progress.bar() as shown:
        task = shown.add_task("auditing", total=4)
        shown.update(task, completed=2)
        end = time.monotonic() + 20
        while json.loads(place.read_text())["done"] == 0 and time.monotonic() < end:
            time.sleep(0.02)
        assert json.loads(place.read_text()) == {"task": "auditing", "done": 2, "total": 4, "left": None}


def test_a_bar_within_another_says_nothing(place):
    with progress.bar() as shown:
        shown.add_task("outer", total=2)
        with progress.bar() as inner:
            inner.add_task("inner", total=9)
            inner.refresh()
        assert json.loads(place.read_text())["task"] == "outer"


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(progress.PROGRESS_FILE, str(tmp_path / "absent" / "progress.json"))
    with progress.bar() as shown:
        shown.add_task("auditing", total=4)
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_where_nobody_asks(tmp_path, monkeypatch):
    monkeypatch.delenv(progress.PROGRESS_FILE, raising=False)
    monkeypatch.chdir(tmp_path)
    with progress.bar() as shown:
        shown.add_task("auditing", total=4)
    assert not list(tmp_path.iterdir())
