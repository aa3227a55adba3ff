"""`assay rationalise` as a person meets it: a folder, a table, and a sentence for each mistake."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from assay import cli
from assay.rationales.recipes import RECIPES
from tests.calling import call
from tests.rationales.folders import films

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
    with (folder / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "split", "marks", "asked"), *rows])
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
    assert all(f"\n{name} " in f"\n{out}" for name in RECIPES)
    assert all((made.__doc__ or "").strip() for made in RECIPES.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--recipe", "leih"), "Unknown recipe 'leih'; did you mean 'lei'?"),
        (("--rate", "1.5"), "The share of words to select is a number between 0 and 1, not 1.5."),
        (("--query-column", "asked"), "--joined"),
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
