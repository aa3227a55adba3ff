"""`assay influence` as a person meets it: which training texts, which wrong labels, and what each mistake says."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from assay import cli
from assay.data.corpora import corpus
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from tests.calling import call

TEXTS = {"good": ("a fine film", "a lovely film", "fine acting"), "bad": ("a dull film", "a poor film", "dull acting")}
WRONG = "a lovely lovely film"
ASKED = "a lovely plot"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of texts, one of them with a wrong label, and a model that learnt from it."""
    folder = tmp_path_factory.mktemp("influence")
    rows = [
        (text, label, split) for split in ("train", "dev", "test") for label, own in TEXTS.items() for text in own * 3
    ]
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "split"), (WRONG, "bad", "train"), *rows])
    recipe = Recipe(
        Architecture(encoder="average", embedding=6, hidden=4, alignment_size=4),
        training=Training(epochs=25, patience=25, batch_size=4, learning_rate=1e-2),
    )
    train(corpus(str(folder / "texts.csv")), recipe, folder / "model")
    return folder


@pytest.fixture
def assay(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setattr(cli.console, "width", 120)
    return lambda *words: call(monkeypatch, capsys, *words)


def asked(assay, *words: str) -> dict:
    code, out, aside = assay("influence", *words, "--model", "model", "--corpus", "texts.csv", "--json")
    assert code == 0, aside
    return json.loads(out)


def test_a_decision_leans_on_texts_with_its_words_and_a_wrong_label_speaks_against_it(assay) -> None:
    found = asked(assay, ASKED, "--top", "3")
    assert found["predicted"] == found["asked"] == "good"
    assert "lovely" in found["supporting"][0]["text"] and found["supporting"][0]["label"] == "good"
    assert found["opposing"][0]["text"] == WRONG
    assert all(each["score"] < 0 for each in found["supporting"]) and all(
        each["score"] > 0 for each in found["opposing"]
    )
    assert found["method"]["name"] == "dual" and found["method"]["covered"] == 1
    (token,) = found["tokens"]["tokens"]
    assert ASKED.split()[token["place"]] == "lovely"


def test_what_supports_a_decision_by_its_margin_supports_it_by_its_loss(assay) -> None:
    margin, loss = (asked(assay, ASKED, "--target", target, "--tokens", "0") for target in ("margin", "loss"))
    assert [each["text"] for each in margin["supporting"]] == [each["text"] for each in loss["supporting"]]
    assert all(each["score"] > 0 for each in loss["supporting"])


def test_another_class_turns_the_answer_around(assay) -> None:
    own, other = (asked(assay, ASKED, "--class", name, "--tokens", "0") for name in ("good", "bad"))
    assert own["supporting"][0]["text"] == other["opposing"][0]["text"]


def test_the_wrong_label_is_the_most_suspicious(assay) -> None:
    for method in ("auto", "dual", "margin"):
        found = asked(assay, "--mislabelled", "--method", method, "--top", "4")
        assert found["suspects"][0]["text"] == WRONG
        assert len(found["suspects"]) == 4


def test_a_page_and_the_numbers_are_left_behind(assay, place) -> None:
    code, out, aside = assay("influence", ASKED, "--model", "model", "--corpus", "texts.csv", "--out", "found")
    assert code == 0, aside
    assert "speaks for it" in out and WRONG in out
    page = (place / "found" / "influence.html").read_text(encoding="utf-8")
    assert ASKED in page and WRONG in page and "<script" not in page
    assert json.loads((place / "found" / "influence.json").read_text(encoding="utf-8"))["text"] == ASKED


def test_predictions_are_checked_by_training_again(assay) -> None:
    lds = asked(assay, ASKED, "--tokens", "0", "--check", "lds", "--retrainings", "6")["checks"]["lds"]
    assert {each["method"] for each in lds["methods"]} == {"dual", "gradient_dot"}
    assert lds["methods"][0]["lds"] > 0.5
    rows = asked(assay, ASKED, "--tokens", "0", "--check", "removal", "--retrainings", "6")["checks"]["removal"]["rows"]
    measured = {each["method"]: each["measured"] for each in rows}
    assert measured["dual"] < measured["chance"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Give a text"),
        ((ASKED, "--mislabelled"), "Give a text"),
        (("--mislabelled", "--check", "lds"), "leave --check out"),
        (("--mislabelled", "--top", "0"), "at least one"),
        ((ASKED, "--method", "magic"), "Unknown method 'magic'"),
        ((ASKED, "--class", "ugly"), "Unknown class 'ugly'"),
        ((ASKED, "--top", "0"), "at least one"),
        ((ASKED, "--train-limit", "5"), "The model learnt from"),
        ((ASKED, "--check", "lds", "--retrainings", "1"), "at least two trainings"),
        (("--mislabelled", "--method", "gradient_cosine"), "cannot say how a text bears on itself"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(assay, words, sentence) -> None:
    code, _, aside = assay("influence", *words, "--model", "model", "--corpus", "texts.csv", "--out", "nowhere")
    assert code == 2
    assert sentence in aside and "Traceback" not in aside


def test_methods_are_listed(assay) -> None:
    code, out, _ = assay("methods")
    assert code == 0
    assert "dual" in out and "unrolled" in out
