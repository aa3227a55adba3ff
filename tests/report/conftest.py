"""One record and one page for all tests that only look."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.records import Record
from assay.report.page import render

SYNTHETIC = runpy.run_path(str(Path(__file__).with_name("synthetic.py")))


@pytest.fixture(scope="session")
def make() -> Callable[..., Record]:
    """Makes a synthetic record; see synthetic.py for what can be asked for."""
    made: Callable[..., Record] = SYNTHETIC["synthetic_record"]
    return made


@pytest.fixture(scope="session")
def changed() -> Callable[..., Record]:
    """Changes one finding of a record."""
    change: Callable[..., Record] = SYNTHETIC["changed"]
    return change


@pytest.fixture(scope="session")
def record(make: Callable[..., Record]) -> Record:
    return make()


@pytest.fixture(scope="session")
def planted(make: Callable[..., Record]) -> Record:
    """A record with known evidence."""
    return make(count=120, audits=("agreement", "permutation", "adversary", "truth"))


@pytest.fixture(scope="session")
def page(record: Record) -> str:
    return render(record)
