"""A single text has means and no intervals, and every form says so."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from assay.records import Record
from assay.report.audit import write
from assay.report.save import FORMS
from tests.report.synthetic import remade


@pytest.fixture(scope="module")
def single(contest: Record, tmp_path_factory: pytest.TempPathFactory) -> Record:
    """A record whose findings have no intervals, written and read."""
    folder = tmp_path_factory.mktemp("single")
    rows = [row | {"low": None, "high": None, "n": 1} for row in contest.summary["findings"]]
    remade(contest, summary=contest.summary | {"findings": rows}).write(folder)
    return Record.read(folder)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_dash_for_an_interval_that_is_not_there(form: str, single: Record, tmp_path: Path) -> None:
    assert all(math.isnan(found.low) and math.isnan(found.high) for found in single.findings)
    place = tmp_path / f"report.{form}"
    write(single, place, form)
    if form == "pdf":
        return
    text = place.read_text(encoding="utf-8")
    assert not re.search(r"\bnan\b|NaN", text)
    if form == "json":
        assert json.loads(text)["leaderboard"]["rows"][0]["cells"][0]["low"] is None
    else:
        assert re.search(r"interval(\">| )–", text)
