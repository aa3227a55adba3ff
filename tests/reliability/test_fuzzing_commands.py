"""The command line, given words at random: it succeeds or says one sentence, and keeps what was there."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import assay
from assay import cli
from assay.cli.app import app
from assay.data.corpora import corpus
from assay.data.examples import thinned
from assay.data.planted import PLANTED
from assay.data.published import CORPORA
from assay.models import recipes
from assay.models.config import Architecture, Training
from assay.models.recipes import PRESETS
from assay.records import SUMMARY, Record
from assay.serve import server
from tests.reliability.inputs import USUAL, changed, toml
from tests.reliability.studying import contents
from tests.reliability.test_fuzzing import COUNTS, FEW, fuzz

SMALL = recipes.Recipe(Architecture(embedding=4, hidden=4, alignment_size=4), training=Training(epochs=1))
VERBS = ["audit", "train", "explain", "attend", "influence", "rationalise", "report", "figures", "probe", "study"]
VERBS += ["finetune", "mislabelled", "corpus", "load"]
VERBS += ["corpora", "explainers", "audits", "methods", "nonsense", "serve", ""]
WITH_OPTIONS = VERBS[:14]
FRESH = {"--corpus": "mine.csv", "--out": "new", "--epochs": "1"}
USUALLY: dict[str, dict[str, str]] = {
    "audit": FRESH | {"--explainers": "attention", "--audits": "erasure"},
    "train": FRESH,
    "explain": {"--model": "model", "--explainers": "attention"},
    "attend": {"--model": "model"},
    "influence": {"--model": "model", "--out": "new"},
    "rationalise": FRESH,
    "report": {},
    "figures": {"--out": "new"},
    "study": {"--out": "new", "--dry-run": ""},
}
LAST = dict.fromkeys(USUALLY, ("",)) | dict.fromkeys(("explain", "attend", "influence"), ("the good film",))
LAST |= dict.fromkeys(("report", "figures"), ("run",)) | {"study": ("plan.toml",)}
OTHERS = ["--nonsense", "--help", "--version", "--no-frozen", "--", "-x", "--=", "--corpus="]
SENSIBLE = [
    "mine.csv",
    "model",
    "run",
    "plan.toml",
    "text",
    "label",
    "planted:keyword",
    "attention",
    "truth",
    "lstm",
    "cnn",
]
SENSIBLE += [
    "json",
    "html",
    "softmax",
    "sparsemax",
    "all",
    "usual",
    "erasure",
    "cpu",
    "0.5",
    "1",
    "2",
    "new",
    "mcd",
    "hedge",
]
NONSENSE = [
    "",
    "-1",
    "0",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "💥",
    "..",
    ".",
    "/dev/null",
    "a,b,,",
    "lime(samples=",
]
NONSENSE += [
    "lime(samples=-1)",
    "lime(",
    "()",
    "9" * 5000,
    "--",
    "-",
    "hf:nobody/nothing",
    "hf:",
    "cuda:99",
    "meta",
    "x=y",
]
NONSENSE += [
    "planted:nope",
    "precious.txt",
    "mine.csv/below",
    "run/summary.json",
    "100000000000000000000",
    "0=1,0=2",
    "sparsegen(9)",
]
NUMBERS = ["-1", "0", "1", "0.3", "1e-30", "1e30"]
WORDS = (
    st.sampled_from(SENSIBLE) | st.sampled_from(NONSENSE) | st.text(max_size=6).filter(lambda text: "\x00" not in text)
)


@cache
def options(verb: str) -> dict[str, str]:
    """The options that a verb has, and the types of their values."""
    found = app[verb].assemble_argument_collection() if verb in WITH_OPTIONS else []
    return {name: str(each.hint) for each in found for name in each.names if name.startswith("--")}


def values(kind: str) -> st.SearchStrategy[str]:
    """Values of the type, at the edges and beyond, or anything."""
    if "int" in kind:
        return st.sampled_from(["-1", "0", "1", "2", "3", "7", "100000000000000000000"]) | WORDS
    if "float" in kind:
        return st.sampled_from(["-1", "0", "1", "0.3", "1e-30", "1e30", "nan", "inf"]) | WORDS
    return WORDS


@st.composite
def tokens(draw: st.DrawFn) -> list[str]:
    """A verb, options with or without values, and words that stand alone."""
    words = [draw(st.sampled_from(VERBS))]
    known = [*options(words[0]), *OTHERS]
    for _ in range(draw(st.integers(0, 4))):
        option = draw(st.sampled_from(known))
        match draw(st.integers(0, 3)):
            case 0:
                words.append(option)
            case 1:
                words.append(f"{option}={draw(WORDS)}")
            case 2:
                words.append(draw(WORDS))
            case _:
                words += [option, draw(WORDS)]
    return words


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """A command that would succeed, with one to three of its options set, mostly to values of their types."""
    verb = draw(st.sampled_from(list(USUALLY)))
    known = options(verb)
    given = dict(USUALLY[verb])
    for option in draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=3, unique=True)):
        given[option] = "" if "bool" in known[option] else draw(values(known[option]))
    words = [word for word in LAST[verb] if word]
    return [verb, *(f"{option}={value}" if value else option for option, value in given.items()), *words]


@pytest.fixture(scope="module")
def room(tmp_path_factory) -> Path:
    """A folder with a corpus, a model, an audit, a plan, and something dear."""
    place = tmp_path_factory.mktemp("room")
    rows = [f"text number {row % 7} is {('dull', 'fine')[row % 2]},{('no', 'yes')[row % 2]}" for row in range(40)]
    (place / "mine.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    (place / "plan.toml").write_text("\n".join(f"{name} = {toml(value)}" for name, value in USUAL.items()))
    (place / "precious.txt").write_text("years of work")
    trained = recipes.train(thinned(corpus("planted:keyword"), 32, 0), SMALL, place / "model")
    assay.audit(trained, "planted:keyword", ["attention"], ["truth"], limit=4).record.write(place / "run")
    return place


@pytest.fixture
def quick(monkeypatch) -> None:
    """Small models, no network, and a web app that is not started."""
    monkeypatch.setattr(server, "serve", lambda *folders, **given: None)
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    kept = thinned(corpus("planted:keyword"), 32, 0)
    few = replace(kept, name="few", dev=kept.dev[:8], test=kept.test[:4])
    for name in PLANTED:
        monkeypatch.setitem(PLANTED, name, lambda seed: few)
    for name, entry in CORPORA.items():
        monkeypatch.setitem(CORPORA, name, replace(entry, load=lambda: few))
    for name in PRESETS:
        monkeypatch.setitem(PRESETS, name, SMALL)


@pytest.mark.parametrize("count", COUNTS)
def test_any_command_succeeds_or_says_one_sentence_and_keeps_what_was_there(
    room, quick, tmp_path, monkeypatch, capfd, count
):
    def check(words: list[str]) -> None:
        place = Path(shutil.copytree(room, tmp_path / "room"))
        try:
            monkeypatch.chdir(place)
            answered(words, place, monkeypatch, capfd)
        finally:
            monkeypatch.chdir(tmp_path)
            shutil.rmtree(place)

    fuzz(commands() | tokens(), check, 2 * count)


def answered(words: list[str], place: Path, monkeypatch, capfd) -> str:
    """What a command says aside, when it says no more than it should, and did no harm."""
    before = contents(place)
    monkeypatch.setattr(sys, "argv", ["assay", *words])
    code = 0
    try:
        cli.main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    said = capfd.readouterr().err.strip()
    assert code in (0, 2), said
    assert "Traceback" not in said
    if code == 2:
        assert said
    assert before.items() <= contents(place).items()
    return said


@pytest.mark.parametrize("count", COUNTS)
def test_any_summary_is_reported_or_refused(room, quick, tmp_path, monkeypatch, capfd, count):
    place = Path(shutil.copytree(room, tmp_path / "room"))
    monkeypatch.chdir(place)
    whole = json.loads((room / "run" / SUMMARY).read_text())
    forms = st.sampled_from(["md", "json"] if count == FEW else ["md", "json", "html"])

    def check(given: tuple[Any, str]) -> None:
        (place / "run" / SUMMARY).write_text(json.dumps(given[0]))
        answered(["report", "run", "--format", given[1], "--out", f"../report.{given[1]}"], place, monkeypatch, capfd)

    fuzz(st.tuples(changed(whole), forms), check, count)


def test_a_report_does_not_take_the_place_of_another_file(room, quick, tmp_path, monkeypatch, capfd):
    place = Path(shutil.copytree(room, tmp_path / "room"))
    monkeypatch.chdir(place)
    answered(["report", "run", "--out", "mine.csv"], place, monkeypatch, capfd)
    answered(["report", "run", "--format", "md", "--out", "precious.txt"], place, monkeypatch, capfd)


@pytest.mark.parametrize("size", [10**12, 10**20])
def test_a_network_that_is_too_large_is_refused_in_a_sentence(room, tmp_path, monkeypatch, capfd, size):
    place = Path(shutil.copytree(room, tmp_path / "room"))
    monkeypatch.chdir(place)
    said = answered(["train", "--corpus", "mine.csv", "--embedding", str(size)], place, monkeypatch, capfd)
    assert said.startswith("There is no room for a network of these sizes")


def test_a_folder_may_be_called_like_an_address(room, quick, tmp_path, monkeypatch, capfd):
    place = Path(shutil.copytree(room, tmp_path / "room"))
    monkeypatch.chdir(place)
    Record.read(place / "run").write(Path("hf:mine"))
    assert Record.read(Path("hf:mine")).instances == Record.read(place / "run").instances


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "--corpus", "mine.csv", "--seed", "100000000000000000000"], "The seed must be from 0"),
        (["explain", "--model", "model", "--device", "meta", "fine"], "The device 'meta' cannot be used here"),
        (["audit", "--plan", "null.toml"], "holds a character"),
    ],
)
def test_what_once_ended_in_a_traceback_is_a_sentence(room, quick, tmp_path, monkeypatch, capfd, words, said):
    place = Path(shutil.copytree(room, tmp_path / "room"))
    (place / "null.toml").write_text('out = "a\\u0000b"\n')
    monkeypatch.chdir(place)
    assert said in answered(words, place, monkeypatch, capfd)


@pytest.mark.slow
@pytest.mark.parametrize("verb", USUALLY)
def test_each_option_with_each_odd_value_succeeds_or_is_refused(room, quick, tmp_path, monkeypatch, capfd, verb):
    faults = []
    for option, kind in options(verb).items():
        for value in [""] if "bool" in kind else [*NUMBERS, *NONSENSE]:
            if value == "100000000000000000000" and option in ("--epochs", "--retrainings"):
                continue  # it is done, and takes forever
            words = {**USUALLY[verb], option: value}
            command = [verb, *(f"{name}={each}" if each else name for name, each in words.items()), *LAST[verb]]
            place = Path(shutil.copytree(room, tmp_path / "room"))
            monkeypatch.chdir(place)
            try:
                answered([word for word in command if word], place, monkeypatch, capfd)
            except Exception as fault:
                faults.append((option, value[:30], repr(fault)[:200]))
            finally:
                monkeypatch.chdir(tmp_path)
                shutil.rmtree(place)
    assert not faults
