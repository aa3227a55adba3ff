"""The study of rationales on a small corpus: each cell is made once, and the page shows it beside published figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.rationales.recipes import RECIPES
from studies.rationales import cells
from studies.rationales.__main__ import gathered, make_all
from studies.rationales.cells import CORPORA, MODELS, SETTINGS, Cell, kept
from studies.rationales.tables import COLUMNS, page
from tests.rationales.folders import phrases

TINY = {"encoder": "average", "embedding": 6, "hidden": 4, "epochs": 1, "batch_size": 8}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "texts", lambda name, seed, limit: phrases())
    monkeypatch.setattr(cells, "SETTINGS", {("planted:phrase", "bilstm"): TINY})


def test_every_corpus_has_a_setting_for_every_model() -> None:
    assert set(SETTINGS) == {(corpus, model) for corpus in CORPORA for model in MODELS}


def test_a_cell_is_made_once_and_a_failed_one_again_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = Cell("planted:phrase", "bilstm", "lei")
    found = kept(cell, tmp_path, "cpu")
    assert found["measures"]["accuracy"]["n"] == 12
    stamp = (tmp_path / f"{cell.name}.json").stat().st_mtime_ns
    assert kept(cell, tmp_path, "cpu") == found and (tmp_path / f"{cell.name}.json").stat().st_mtime_ns == stamp
    (tmp_path / f"{cell.name}.json").write_text(json.dumps({"failed": "no"}), encoding="utf-8")
    assert kept(cell, tmp_path, "cpu") == {"failed": "no"}
    assert "measures" in kept(cell, tmp_path, "cpu", again=True)


def test_the_page_has_a_row_for_each_recipe_and_says_what_failed(tmp_path: Path) -> None:
    make_all([Cell("planted:phrase", "bilstm", name) for name in ("lei", "fresh")], tmp_path, "cpu")
    (tmp_path / "planted-phrase-bilstm-rnp.json").write_text(json.dumps({"failed": "no room"}), encoding="utf-8")
    results = gathered(tmp_path)
    assert list(results) == [("planted:phrase", "bilstm")]
    text = page(results)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 3 and all(row.count("|") == len(COLUMNS) + 2 for row in rows)
    assert "- rnp could not be made: no room" in text
    published = page({("movies", "bilstm"): results["planted:phrase", "bilstm"]})
    assert "*Paranjape et al. (2020)" in published


def test_all_recipes_are_asked_for() -> None:
    assert all(Cell("planted:phrase", "bilstm", name).asked("cpu").recipe == name for name in RECIPES)
