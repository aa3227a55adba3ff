"""`assay rationalise` as a person meets it: a folder, a table, and a sentence for each mistake."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from assay import cli
from assay.rationales.recipes import RECIPES
from assay.rationales.trainers import UNPLAYED
from tests.calling import call
from tests.rationales.folders import films, questions

SMALL = ("--encoder", "average", "--embedding", "6", "--hidden", "4", "--epochs", "2", "--batch-size", "8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of marked texts, and one of pairs."""
    folder = tmp_path_factory.mktemp("rationalise")
    rows = [
        (each.text, films().classes[each.label], split, json.dumps(each.evidence), "why?")
        for split in ("train", "dev", "test")
        for each in getattr(films(), split)
    ]
    pairs = [
        (each.text, str(each.label), split, json.dumps(each.evidence), each.query)
        for split in ("train", "dev", "test")
        for each in getattr(questions(), split)
    ]
    for name, written in (("texts.csv", rows), ("pairs.csv", pairs)):
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label", "split", "marks", "asked"), *written])
    return folder


@pytest.fixture
def assay(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    monkeypatch.setattr(cli.console, "width", 120)
    return lambda *words: call(monkeypatch, capsys, *words)


def asked(*words: str) -> tuple[str, ...]:
    columns = ("--corpus", "texts.csv", "--evidence-column", "marks", "--split-column", "split")
    recipe = () if "--recipe" in words else ("--recipe", "lei")
    return ("rationalise", *recipe, *columns, *SMALL, *words)


def test_a_folder_with_model_page_and_numbers_comes_out_and_other_verbs_take_it(assay, place: Path) -> None:
    code, out, aside = assay(*asked("--out", "made"))
    assert code == 0, aside
    assert out.startswith("The model reads ") and "token F1" in out and "complement accuracy" in out
    answer = json.loads((place / "made" / "rationales.json").read_text(encoding="utf-8"))
    assert answer["command"].startswith("assay rationalise --recipe lei")
    assert answer["command"].split()[-1] in (place / "made" / "rationales.html").read_text(encoding="utf-8")
    again = assay(*asked("--out", "made"))
    assert again[0] == 0 and "epoch" not in again[2]
    code, out, aside = assay(
        "explain", "this film is fun", "--model", "made/model", "--explainers", "rationale", "--json"
    )
    assert code == 0, aside
    assert len(json.loads(out)["scores"]["rationale"]) == 4
    given = ("--corpus", "texts.csv", "--split-column", "split", "--explainers", "rationale,random", "--out", "audited")
    code, out, aside = assay("audit", "--model", "made/model", *given, "--audits", "erasure")
    assert code == 0, aside
    assert "rationale" in (place / "audited" / "report.html").read_text(encoding="utf-8")
    code, _, aside = assay("report", "audited", "--format", "md")
    assert code == 0 and "rationale" in (place / "audited" / "report.md").read_text(encoding="utf-8"), aside


def test_a_folder_is_named_by_what_was_asked(assay, place: Path) -> None:
    code, out, aside = assay(*asked("--units", "span", "--width", "2", "--rate", "0.4", "--limit", "4"))
    assert code == 0, aside
    assert (place / "runs" / "texts-lei-average-span-rate0.4-width2-0" / "rationales.html").exists(), out


def test_every_recipe_is_listed_with_a_sentence(assay) -> None:
    code, out, _ = assay("rationalise", "--recipes")
    assert code == 0
    assert all(f"\n{name} " in f"\n{out}" for name in (*RECIPES, *UNPLAYED))
    assert all((made.__doc__ or "").strip() for made in (*RECIPES.values(), *UNPLAYED.values()))


PAIRED = ("--corpus", "pairs.csv", "--query-column", "asked", "--split-column", "split")


def test_words_of_pairs_are_aligned_and_other_verbs_take_the_model(assay, place: Path) -> None:
    words = ("rationalise", "--recipe", "transport", *PAIRED, "--evidence-column", "marks", *SMALL, "--pairs", "1")
    code, out, aside = assay(*words)
    assert code == 0, aside
    made = place / "runs" / "pairs-transport-average-pairs1-0"
    answer = json.loads((made / "rationales.json").read_text(encoding="utf-8"))
    assert {"accuracy", "size", "token_f1", "iou_f1", "auprc", "comprehensiveness", "sufficiency"} <= set(
        answer["measures"]
    )
    assert answer["recipe"]["name"] == "transport" and answer["selecting"]["transport"]["most"] == 1
    for text in answer["texts"]:
        assert [pair[0] for pair in text["aligned"]] == text["selected"] and len(text["aligned"]) <= 1
    page = (made / "rationales.html").read_text(encoding="utf-8")
    assert "transport" in page and "question or hypothesis" in page and "↔" in page
    again = assay(*words)
    assert again[0] == 0 and "epoch" not in again[2]
    assert "other options" in assay(*words[:-1], "2", "--out", str(made))[2]
    model = str(made / "model")
    asked = ("explain", "this film is fun", "--model", model, "--explainers", "rationale", "--json")
    code, out, aside = assay(*asked, "--query", "is it fun ?")
    assert code == 0 and len(json.loads(out)["scores"]["rationale"]) == 4, aside
    code, _, aside = assay(*asked)
    assert code == 2 and "This model reads pairs" in aside
    audited = ("--explainers", "rationale,random", "--audits", "erasure", "--out", "audited-pairs")
    code, _, aside = assay("audit", "--model", model, *PAIRED, *audited)
    assert code == 0, aside


def test_phrases_and_stored_phrases_are_shown_and_other_verbs_take_the_model(assay, place: Path) -> None:
    code, out, aside = assay(*asked("--recipe", "selfexplain", "--width", "2", "--concepts", "9", "--out", "own"))
    assert code == 0, aside
    assert out.startswith("The model decides ")
    answer = json.loads((place / "own" / "rationales.json").read_text(encoding="utf-8"))
    for each in answer["examples"]:
        account = each["account"]
        assert all(said["text"] in each["text"] for said in account["phrases"])
        assert all(any(said["text"] in text.text for text in films().train) for said in account["stored"])
    page = (place / "own" / "rationales.html").read_text(encoding="utf-8")
    assert "Training phrases nearest to it" in page
    given = ("--corpus", "texts.csv", "--split-column", "split", "--out", "audited-own", "--audits", "erasure")
    code, _, aside = assay("audit", "--model", "own/model", *given, "--explainers", "own_relevance,rationale,random")
    assert code == 0, aside
    assert "own_relevance" in (place / "audited-own" / "report.html").read_text(encoding="utf-8")


@pytest.mark.data
def test_the_two_lines_of_esnli_are_aligned(assay, place: Path) -> None:
    given = ("--corpus", "esnli", "--train-limit", "60", "--limit", "40", "--recipe", "transport", "--out", "esnli")
    code, _, aside = assay("rationalise", *given, *SMALL)
    assert code == 0, aside
    answer = json.loads((place / "esnli" / "rationales.json").read_text(encoding="utf-8"))
    assert answer["corpus"]["name"] == "esnli+parted" and answer["measures"]["query_f1"]["n"] > 10
    assert all("\n" not in each["text"] and each["query"] for each in answer["examples"])
    code, _, aside = assay(
        *("audit", "--model", "esnli/model", "--corpus", "esnli", "--parted", "--limit", "5", "--out", "audited-esnli"),
        *("--explainers", "rationale,random", "--audits", "plausibility"),
    )
    assert code == 0, aside


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--recipe", "leih"), "Unknown recipe 'leih'; did you mean 'lei'?"),
        (("--rate", "1.5"), "The share of words to select must be between 0 and 1, got 1.5."),
        (("--query-column", "asked"), "--joined"),
        (("--recipe", "transport"), "'texts' has texts without one; choose a corpus of pairs"),
        (("--recipe", "transport", "--rate", "0.2"), "--rate does not fit the recipe 'transport', which takes --pairs"),
        (("--recipe", "transport", "--pairs", "0"), "whole numbers from 1"),
        (("--recipe", "selfexplain", "--continuity", "1"), "--continuity does not fit the recipe 'selfexplain'"),
        (("--parted",), "each has two lines"),
        (("--parted", "--joined"), "either joined or parted"),
        (("--model", "minilm"), "--encoder is for networks that are trained from scratch; leave it out with minilm."),
        (("--reading", "nothing"), "Unknown way to read"),
        (("--device", "tpu"), "The device 'tpu' cannot be used here"),
        (("--out", "made", "--seed", "1"), "already holds a model trained with other options"),
    ],
)
def test_a_mistake_ends_in_one_sentence(assay, words: tuple[str, ...], said: str) -> None:
    if "made" in words:
        assert assay(*asked("--out", "made"))[0] == 0
    code, _, aside = assay(*asked(*words))
    assert code == 2 and said in aside and "Traceback" not in aside


@pytest.mark.data
def test_marks_of_people_set_the_rate_and_are_compared_with(assay, place: Path) -> None:
    given = ("--corpus", "hatexplain", "--recipe", "lei", "--train-limit", "60", "--limit", "40", "--out", "hate")
    code, out, aside = assay("rationalise", *given, *SMALL)
    assert code == 0, aside
    answer = json.loads((place / "hate" / "rationales.json").read_text(encoding="utf-8"))
    assert 0.2 < answer["selecting"]["rate"] < 0.5 and answer["corpus"]["measured"] == 40
    assert answer["measures"]["token_f1"]["n"] == answer["corpus"]["marked"] < 40
    assert "the words that people marked" in out
