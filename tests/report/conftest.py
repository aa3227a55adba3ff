"""One record and one page for all tests that only look."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from altair.utils import schemapi

from assay.records import Record
from assay.report.audit import render
from tests.drawn import drawn_anew, drawn_once
from tests.report import synthetic

__all__ = ["drawn_anew", "drawn_once"]


@pytest.fixture(autouse=True)
def _checked_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are checked against the schema where it is they that are tested."""
    if request.module.__name__.rpartition(".")[2] not in ("test_plots", "test_compared_figures"):
        monkeypatch.setattr(schemapi, "DEBUG_MODE", False)


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
def contest(make: Callable[..., Record]) -> Record:
    """A record of few explainers and every audit that planted evidence allows."""
    return make(count=80, audits=synthetic.FAITHFUL)


@pytest.fixture(scope="session")
def human(make: Callable[..., Record]) -> Record:
    """A record with evidence that people marked."""
    return make(count=60, audits=("agreement", "erasure", "plausibility"))


@pytest.fixture(scope="session")
def crowd(make: Callable[..., Record]) -> Record:
    """A record of thirty explainers."""
    return make(count=30, explainers=synthetic.MANY, audits=synthetic.FAITHFUL)


@pytest.fixture(scope="session")
def erased(make: Callable[..., Record]) -> Record:
    """A record of the audits that erase attention."""
    return make(count=120, audits=("deciding", "permutation", "adversary", "single_weight", "minimal_set"))


@pytest.fixture(scope="session")
def worded() -> Callable[..., Record]:
    """Says what the attention of a record's model is over."""
    return synthetic.worded


@pytest.fixture(scope="session")
def page(record: Record) -> str:
    return render(record)
