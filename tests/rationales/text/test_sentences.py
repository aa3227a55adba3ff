"""Recipes that explain in sentences: from a command to a page, and a sentence for each mistake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import assay as package
from assay import cli
from assay.data.annotated import explained
from assay.errors import AssayError
from assay.rationales import sentence_page
from assay.rationales.selection_stories import SENTENCES
from assay.rationales.text_explanations import MODES
from assay.report.save import save
from assay.run.rationalising import Rationalised, rationalise
from assay.run.sentences import corpus_of
from tests.calling import call

SMALL = {"hidden": 12, "embedding": 24, "batch_size": 16, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rationalised, Path]:
    folder = tmp_path_factory.mktemp("sentences")
    return rationalise(explained("planted"), "predict_then_explain", limit=60, out=folder, epochs=15, **SMALL), folder


def test_every_mode_has_a_story() -> None:
    assert list(SENTENCES) == list(MODES)


def test_planted_reasons_are_found_and_an_exchange_of_explanations_misleads(made) -> None:
    measures = made[0].measures
    assert measures["accuracy"] >= 0.95 and measures["own"] >= 0.95 and measures["others"] <= 0.5
    assert measures["mentioned"] > 0.3 and measures["random"] < 0.1
    answer = made[0].answer
    right = [each["label"] == each["predicted"] for each in answer["texts"]]
    assert len(right) == 60 and np.mean(right) == pytest.approx(measures["accuracy"])
    assert all(name in each["explanation"] for each in answer["examples"] for name in [each["label"]])


def test_the_page_shows_the_sentences_and_hostile_text_stays_text(made, tmp_path: Path) -> None:
    answer, folder = made[0].answer, made[1]
    html = (folder / "sentences.html").read_text(encoding="utf-8")
    assert answer["examples"][0]["explanation"] in html and "a reader of explanations alone" in html
    stored = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(answer))
    hostile = [each | {"explanation": "<script>alert(1)</script>"} for each in answer["examples"]]
    save(sentence_page.document(answer | {"examples": hostile}), tmp_path / "hostile.html")
    assert "<script>alert" not in (tmp_path / "hostile.html").read_text(encoding="utf-8")
    for name in ("page.md", "page.json"):
        assert made[0].report(tmp_path / name).stat().st_size > 500
    assert str(made[0]).startswith("The model answers ")


def test_a_model_that_guesses_is_said_to_guess(made) -> None:
    answer = made[0].answer
    poor = {name: each | {"low": 0.2, "mean": 0.3} for name, each in answer["measures"].items()}
    told = list(sentence_page.caveats(answer | {"measures": poor | {"others": poor["others"] | {"low": 0.9}}}))
    assert "not clearly better" in told[0] and "does not rest on what is explained" in told[1]


def test_a_stored_training_is_gone_on_with(made) -> None:
    again = rationalise(explained("planted"), "predict_then_explain", limit=60, out=made[1], epochs=15, **SMALL)
    assert again.answer["measures"] == made[0].answer["measures"]


def test_training_texts_are_drawn_by_the_seed() -> None:
    few, same = (corpus_of("planted", 7, 3) for _ in range(2))
    assert few == same and len(few.train) == 7 and set(few.train) <= set(explained("planted").train)
    assert corpus_of("planted", 7, 4) != few


def test_mistakes_are_told_in_a_sentence(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.console, "width", 120)
    name = "--recipe", "label_specific", "--corpus", "planted"
    for words, told in (
        ((*name, "--rate", "0.3"), "--rate does not fit the recipe 'label_specific'"),
        ((*name, "--model", "minilm"), "--model does not fit"),
        ((*name, "--joined"), "is read as it is"),
        ((*name, "--train-limit", "0"), "At least one text"),
        ((*name, "--limit", "1"), "At least two texts"),
        ((*name, "--hidden", "3"), "Sizes are whole numbers"),
        ((*name[:2], "--corpus", "snippets"), "Unknown corpus with explanations"),
    ):
        code, _, aside = call(monkeypatch, capsys, "rationalise", *words)
        assert code != 0 and told in aside and "Traceback" not in aside, words
    texts = package.corpus("planted:keyword")
    with pytest.raises(AssayError, match="sentences that explain"):
        rationalise(replace(texts, train=texts.train[:20]), "label_specific")
    with pytest.raises(AssayError, match="selects words"):
        rationalise(explained("planted"), "mcd")


def test_sentences_stand_in_the_list_of_recipes(monkeypatch, capsys) -> None:
    code, out, _ = call(monkeypatch, capsys, "rationalise", "--recipes")
    assert code == 0 and all(name in out for name in SENTENCES)
