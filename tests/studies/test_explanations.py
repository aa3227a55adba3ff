"""The study of explanations in words on a small invented corpus: every part is made once, and the page shows it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.data.annotated import planted_explanations as planted
from studies.explanations.__main__ import result
from studies.explanations.cells import ROWS, SCALES, Cell
from studies.explanations.tables import page
from studies.results import Result


@pytest.mark.slow
def test_every_mode_and_people_are_in_the_results_and_what_is_known_is_only_read(tmp_path: Path) -> None:
    corpus = planted(60)
    corpus = replace(corpus, unexplained=tuple(item.example for item in corpus.train[:20]))
    cell = Cell(SCALES["trial"].of(corpus), tmp_path / "runs", scale="trial")
    path = tmp_path / "esnli.json"
    found = result(cell, path)
    assert set(found) == {"about", *ROWS} and json.loads(path.read_text(encoding="utf-8")) == found
    beside = result(Cell(cell.corpus, tmp_path / "beside", scale="trial"), tmp_path / "beside.json", jobs=2)
    assert all(_timeless(beside[name]) == _timeless(found[name]) for name in ROWS)
    read = result(Cell(corpus, tmp_path / "nowhere", scale="trial"), path)
    assert read == found and not (tmp_path / "nowhere").exists()
    text = page({"esnli": found})
    assert "### e-SNLI" in text and "label specific, example beside" in text and "20 examples to train on" in text


def _timeless(row: Result) -> Result:
    return {name: value for name, value in row.items() if name != "seconds"}
