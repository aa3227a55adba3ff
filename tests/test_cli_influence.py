"""`assay influence` as a person meets it: which training texts, which wrong labels, and what each mistake says."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from assay import cli
from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.examples import Example
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.models.store import load
from assay.models.textmodel import predict
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


def test_landmarks_say_what_a_text_reminds_of(assay) -> None:
    found = asked(assay, ASKED, "--tokens", "0", "--method", "landmarks(kernel='words')")
    assert found["sentence"].startswith("I answer good because it reminds me of “")
    assert "which is also good" in found["sentence"] and found["method"]["notes"]["agreement"] == 1
    code, out, aside = assay(
        *("influence", ASKED, "--model", "model", "--corpus", "texts.csv", "--tokens", "0", "--swaps", "3"),
        *("--method", "landmarks(kernel='words')", "--out", "reminded"),
    )
    assert code == 0, aside
    assert "it reminds me of" in " ".join(out.split())


def test_a_word_of_the_other_class_is_tried_in_place_of_the_most_salient_one(assay) -> None:
    found = asked(assay, ASKED, "--tokens", "0", "--swaps", "4")["swap"]
    assert found["word"] in ASKED and found["by"] in found["source"]["text"] and found["source"]["label"] == "bad"
    assert found["text"] == ASKED.replace(found["word"], found["by"]) and found["after"] < found["before"]
    assert found["flipped"] == (found["predicted"] == "bad")


def test_neighbours_say_how_far_they_support_the_class(assay) -> None:
    notes = asked(assay, ASKED, "--tokens", "0", "--method", "neighbours(k=5, calibrated=True)")["method"]["notes"]
    assert 0 <= notes["conformity"] <= 1 and 0 <= notes["credibility"] <= 1 and 0 <= notes["confidence"] <= 1


@pytest.mark.parametrize("way", ["relabel", "remove"])
def test_a_model_is_fixed_and_stored(assay, place, way) -> None:
    words = ("mislabelled", "--model", "model", "--corpus", "texts.csv", "--top", "1", "--way", way)
    code, out, aside = assay(*words, "--fix", f"fixed-{way}", "--out", f"found-{way}")
    assert code == 0, aside
    assert "of these texts, the model is right about" in " ".join(out.split())
    assert "Trained again" in (place / f"found-{way}" / "influence.html").read_text(encoding="utf-8")
    mended = load(place / f"fixed-{way}")
    (row,), _ = tokenise([Example(WRONG, 0)], mended.tokeniser, 60)
    before, after = (predict(each.network, [row])[0] for each in (load(place / "model"), mended))
    good = mended.classes.index("good")
    assert after[good] > before[good] and mended.history["repaired"]["rows"] == 1
    code, _, aside = assay(*words, "--fix", f"fixed-{way}")
    assert code == 2 and "already holds a model" in aside and "Traceback" not in aside


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
        ((ASKED, "--swaps", "-1"), "no less than no token"),
        ((ASKED, "--method", "landmarks(kernel='trees')"), "Unknown kernel 'trees'"),
        ((ASKED, "--method", "landmarks(kernel='characters')"), "Rows of word ids have no characters"),
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
