"""The study of influence on a small corpus: every part is made once, and the page shows no more than a few words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.data.corpora import corpus
from assay.data.examples import Example, thinned
from assay.influence.dual import DualGaussNewton
from assay.influence.solvers import Lissa
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from studies.influence.__main__ import result
from studies.influence.cells import Cell, noisy
from studies.influence.methods import METHODS, NAMES, method
from studies.influence.tables import cut, page

TINY = Recipe(
    Architecture(encoder="average", embedding=8, hidden=4, alignment_size=4), training=Training(epochs=2, batch_size=16)
)


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    texts = thinned(corpus("planted:keyword"), 40, 0)
    texts = replace(texts, test=texts.test[:30])
    folder = tmp_path_factory.mktemp("influence")
    return Cell("bilstm", texts, folder, recipe=TINY, series=Lissa(batch=8, repeats=1, terms=3))


def test_a_share_of_labels_is_flipped(cell: Cell) -> None:
    given, chosen = noisy(cell.corpus, 0.1, 0)
    changed = {
        place for place, (one, other) in enumerate(zip(cell.corpus.train, given.train, strict=True)) if one != other
    }
    assert changed == chosen and len(chosen) == 4 and given.dev == cell.corpus.dev
    assert {cell.training_run.rows[place].index for place in cell.wrong.nonzero()[0]} == cell.planted[1]


def test_every_part_is_made_once_and_told_on_the_page(cell: Cell, tmp_path: Path) -> None:
    path, names = tmp_path / "bilstm.json", ("loss", "neighbours", "dual")
    found = result(cell, path, names)
    assert set(found["signals"]) == set(names) and all("auc" in each for each in found["signals"].values())
    assert len(found["shown"]["dual"]["texts"]) == 10 and set(found["fastif"]["candidates"]) == {"0.025", "0.1", "0.25"}
    kept = path.read_text()
    assert not any(example.text in kept for example in (*cell.corpus.train, *cell.corpus.test))
    assert result(replace(cell, folder=Path("nowhere")), path, names) == found == json.loads(kept)
    text = page({"bilstm": found}, cell.corpus)
    assert "Made by `python -m studies.influence`" in text and "| dual |" in text and text.count("against it") == 10
    longest = max(len(part.split("”")[0].removesuffix(" …").split()) for part in text.split("“")[1:])
    assert longest <= 12
    found["signals"]["dual"] = found["fastif"] = {"failed": "No: why."}
    assert page({"bilstm": found}, cell.corpus).count("No: why.") == 2
    assert cut(Example("one two", 0)) == "one two"


def test_what_fails_is_told_and_made_again_when_wanted(
    cell: Cell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bilstm.json"
    path.write_text(json.dumps({"model": {}, "fastif": {"failed": "too slow"}, "shown": {"dual": {"failed": "no"}}}))
    monkeypatch.setattr(DualGaussNewton, "own", lambda self, setting: 1 / 0)
    assert "ZeroDivisionError" in result(cell, path, ("dual",))["signals"]["dual"]["failed"]
    monkeypatch.undo()
    assert "failed" in result(cell, path, ("dual",))["signals"]["dual"]
    monkeypatch.setattr(Cell, "fast", lambda self, largest: {"largest": len(largest)})
    found = result(cell, path, ("dual",), again=True)
    assert "auc" in found["signals"]["dual"] and found["fastif"]["largest"] == 10


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_there(name: str) -> None:
    assert name in NAMES and callable(method(name).own)
