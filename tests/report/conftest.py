"""One record and one page for all tests that only look."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from assay.records import Record
from assay.report.page import render
from tests.report import synthetic


@pytest.fixture(scope="session")
def make() -> Callable[..., Record]:
    """Makes a synthetic record; see synthetic.py for what can be asked for."""
    return synthetic.synthetic_record


@pytest.fixture(scope="session")
def changed() -> Callable[..., Record]:
    """Changes one finding of a record."""
    return synthetic.changed


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
