"""From a corpus to a model that selects and to what it is worth; the model is one like any other afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import assay
from assay.errors import AssayError
from assay.intervene.edits import Act
from assay.run.rationalising import Rationalised, chosen
from assay.run.workbench import Workbench
from tests.rationales.folders import encoder, films, phrases

TINY = {"encoder": "average", "embedding": 6, "hidden": 4, "epochs": 2, "batch_size": 8}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rationales")


@pytest.fixture(scope="module")
def made(folder: Path) -> Rationalised:
    return assay.rationalise(phrases(), "lei", out=folder, **TINY)


def test_numbers_page_and_model_lie_in_the_folder(made: Rationalised, folder: Path) -> None:
    stored = json.loads((folder / "rationales.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(made.answer))
    assert (folder / "rationales.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert made.measures["size"] == pytest.approx(
        np.mean([len(each["selected"]) / words(each, made) for each in made.answer["texts"]])
    )
    assert str(made).startswith("The model reads ")


def words(text: dict, made: Rationalised) -> int:
    return len(made.model.tokeniser([phrases().test[text["text"]].text])[0].ids)


def test_the_same_call_returns_the_same_numbers(made: Rationalised, folder: Path) -> None:
    again = assay.rationalise(phrases(), "lei", out=folder, **TINY)
    for name in ("measures", "pooled", "texts", "examples", "selecting"):
        assert again.answer[name] == made.answer[name]
    with pytest.raises(AssayError, match="other options"):
        assay.rationalise(phrases(), "lei", out=folder, **TINY | {"epochs": 3})


def test_texts_to_look_at_are_right_and_wrong_ones_with_what_was_read(made: Rationalised) -> None:
    examples = made.answer["examples"]
    assert len(examples) == len({each["number"] for each in examples})
    for each in examples:
        read = [
            [start, end] for start, end, kept in zip(each["starts"], each["ends"], each["kept"], strict=True) if kept
        ]
        assert read == each["selected"]
        assert each["text"] == phrases().test[each["number"]].text


def test_a_limit_draws_some_test_texts() -> None:
    few = assay.rationalise(phrases(), "lei", limit=5, **TINY)
    assert few.answer["corpus"]["measured"] == 5 and few.answer["measures"]["accuracy"]["n"] == 5
    with pytest.raises(AssayError, match="At least one"):
        assay.rationalise(phrases(), "lei", limit=0, **TINY)


def test_a_corpus_without_marks_has_no_measure_of_them() -> None:
    plain = replace(
        films(),
        **{
            split: tuple(replace(each, evidence=None) for each in getattr(films(), split))
            for split in ("train", "dev", "test")
        },
    )
    answer = assay.rationalise(plain, "lei", **TINY).answer
    assert not {"token_f1", "iou_f1", "auprc"} & set(answer["measures"])
    assert answer["selecting"]["rate"] == 0.2 and answer["corpus"]["marked"] == 0


def test_a_pretrained_encoder_plays_as_well(tmp_path: Path) -> None:
    name = encoder(tmp_path / "encoder")
    found = assay.rationalise(films(), "lei", model=name, epochs=1, batch_size=8, out=tmp_path / "run")
    assert found.answer["selecting"]["reading"] == "mask"
    assert "BertModel" in found.answer["model"]["description"]
    explained = assay.explain(tmp_path / "run" / "model", "this film is unwatchable", ["rationale"])
    assert len(explained.scores["rationale"]) == 4


def test_options_that_fit_nobody_are_named() -> None:
    with pytest.raises(AssayError, match="Unknown option 'epoch'; did you mean 'epochs'"):
        chosen("lei", epoch=3)
    with pytest.raises(AssayError, match="--hidden is for networks"):
        chosen("lei", "minilm", hidden=3)
    with pytest.raises(AssayError, match="Unknown unit 'word'"):
        chosen("lei", units="word")


def test_an_audit_tests_the_rationale_like_any_explanation(made: Rationalised, folder: Path) -> None:
    explainers = ["rationale", "random", "leave_one_out", "attention"]
    result = assay.audit(folder / "model", phrases(), explainers, ["erasure", "agreement", "sanity"])
    summary = result.record.summary
    assert set(summary["explainers"]) == {"rationale", "random", "leave_one_out"}
    assert "attention" in summary["left_out"]
    table = result.record.examples
    index = table["example"].to_pylist().index(made.answer["examples"][0]["number"])
    example = made.answer["examples"][0]
    expected = [(kept + chance) / 2 for kept, chance in zip(example["kept"], example["chance"], strict=True)]
    assert table["score:rationale"][index].as_py() == pytest.approx(expected, abs=1e-4)
    found = {finding.subject for finding in result.record.findings if finding.measure == "comprehensiveness"}
    assert "rationale" in found
    result.report(folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "rationale" in page and "selection of tokens for" in page


def test_every_weight_of_a_redrawn_model_is_another(made: Rationalised) -> None:
    network = made.model.network
    fresh = network.redrawn(5)
    other = dict(fresh.named_parameters())
    same = [name for name, mine in network.named_parameters() if mine.ndim > 1 and torch.equal(mine, other[name])]
    assert same == [] and fresh.rules == network.rules
    again = network.redrawn(5)
    assert all(torch.equal(each, other[name]) for name, each in again.named_parameters())


def test_the_app_shows_the_rationale_first(made: Rationalised) -> None:
    bench = Workbench(made.model, "model")
    assert bench.about["usual"][0] == "rationale" and bench.about["attention"] == "none"
    assert "rationale" in bench.explain("the dancer left a kettle")["scores"]
    with pytest.raises(AssayError, match="neither a linear decoder"):
        bench.attend("the dancer left a kettle", None, Act("uniform"))
