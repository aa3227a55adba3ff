"""The command line as a person meets it: what works, and what each mistake says."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from assay import cli
from assay.audits import AUDITS
from assay.data.text import TextOptions
from assay.explainers import EXPLAINERS
from assay.models import store
from assay.models.config import Architecture, Training
from assay.models.recipes import PRESETS, Recipe
from assay.records import Record
from tests.calling import call

SMALL = Recipe(Architecture(embedding=8, hidden=8, alignment_size=4), TextOptions(min_count=1), Training(epochs=2))


@pytest.fixture(autouse=True)
def small_models(monkeypatch, tmp_path):
    monkeypatch.setitem(PRESETS, "default", SMALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.console, "width", 100)


def table(path: Path, rows: int = 60, label=("no", "yes")) -> Path:
    """A csv file in which one word tells the class."""
    words = ["dull", "fine"]
    lines = [f"text number {i % 17} is {words[i % 2]} and has row {i},{label[i % 2]}" for i in range(rows)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


@pytest.fixture
def assay(monkeypatch, capsys):
    return lambda *words: call(monkeypatch, capsys, *words)


def test_an_audit_leaves_everything_that_it_promises(assay, tmp_path):
    code, out, _ = assay("audit", "--corpus", str(table(tmp_path / "mine.csv")), "--out", "run")
    assert code == 0
    assert {path.name for path in Path("run").iterdir()} == {
        "report.html",
        "summary.json",
        "instances.parquet",
        "examples.parquet",
        "plan.json",
        "model",
    }
    assert "leave_one_out" in out
    summary = Record.read(Path("run")).summary
    assert summary["command"].startswith("assay audit --corpus")
    assert summary["versions"]["torch"]
    assert store.load(Path("run/model")).classes == ("no", "yes")


def test_a_model_can_be_trained_explained_and_audited_in_turn(assay, tmp_path, monkeypatch):
    mine = str(table(tmp_path / "mine.csv"))
    assert assay("train", "--corpus", mine, "--encoder", "gru", "--out", "m")[0] == 0
    code, out, _ = assay("explain", "This is dull", "--model", "m", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["words"] == ["This", "is", "dull"]
    assert set(told["scores"]) >= {"attention", "leave_one_out"}
    assert all(len(scores) == 3 for scores in told["scores"].values())
    code, out, _ = assay("explain", "This is dull", "--model", "m", "--explainers", "attention")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["This", "is", "dull"]
    monkeypatch.setattr(type(cli.console), "is_terminal", True)
    code, out, _ = assay("explain", "This is dull", "--model", "m", "--explainers", "attention")
    assert code == 0
    assert "This is dull" in out
    words = ("--explainers", "attention,leave_one_out", "--audits", "agreement", "--limit", "4")
    assert assay("audit", "--model", "m", "--corpus", mine, *words, "--out", "a")[0] == 0
    assert len(Record.read(Path("a")).examples) == 4
    assert assay("report", "a")[0] == 0


def test_a_model_that_counts_classes_otherwise_is_matched_by_name(assay, tmp_path):
    assay("train", "--corpus", str(table(tmp_path / "mine.csv")), "--out", "m")
    only_yes = tmp_path / "late.csv"
    lines = [f"this is fine {i},yes" for i in range(20)] + [f"so dull {i},no" for i in range(20)]
    only_yes.write_text("text,label\n" + "\n".join(lines))
    assert assay("audit", "--model", "m", "--corpus", str(only_yes), "--out", "a")[0] == 0
    strange = table(tmp_path / "strange.csv", label=("no", "perhaps"))
    code, _, told = assay("audit", "--model", "m", "--corpus", str(strange), "--out", "b")
    assert code == 2
    assert "'perhaps'" in told


def test_all_texts_of_a_file_can_be_put_to_a_model(assay, tmp_path):
    mine = str(table(tmp_path / "mine.csv"))
    assay("train", "--corpus", mine, "--out", "m")
    words = ("--model", "m", "--corpus", mine, "--explainers", "attention,leave_one_out")
    for split, rows in (("all", 60), ("test", None)):
        assert assay("audit", *words, "--split", split, "--out", split)[0] == 0
        found = len(Record.read(Path(split)).examples)
        assert found == rows if rows else 0 < found < 20
    assert assay("audit", *words, "--split", "some", "--out", "x")[0] == 2


def test_the_corpora_are_listed(assay):
    code, out, _ = assay("corpora")
    assert code == 0
    for name in ("snippets", "sst", "imdb", "newsgroups", "agnews", "planted:keyword", "planted:entail"):
        assert name in out


@pytest.mark.parametrize(("verb", "names"), [("explainers", EXPLAINERS), ("audits", AUDITS)])
def test_everything_that_can_be_chosen_is_listed(assay, verb, names):
    code, out, _ = assay(verb)
    assert code == 0
    assert all(name in out for name in names)


def broken(tmp_path: Path) -> dict[str, tuple[list[str], str]]:
    """Commands that cannot work, and a word of what each must say."""
    mine = table(tmp_path / "mine.csv")
    latin = tmp_path / "latin.csv"
    latin.write_bytes("text,label\ncaf\xe9,yes\n".encode("latin-1"))
    mixed = table(tmp_path / "mixed.csv", label=("3", "yes"))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "folder").mkdir()
    return {
        "unknown corpus": (["audit", "--corpus", "snipets"], "did you mean 'snippets'"),
        "unknown encoder": (["train", "--corpus", str(mine), "--encoder", "lstmm"], "did you mean 'lstm'"),
        "unknown alignment": (["train", "--corpus", str(mine), "--alignment", "dott"], "did you mean 'dot'"),
        "unknown explainer": (["audit", "--corpus", str(mine), "--explainers", "gradiant"], "did you mean"),
        "unknown explainer option": (["audit", "--corpus", str(mine), "--explainers", "random(sede=1)"], "'seed'"),
        "unknown audit": (["audit", "--corpus", str(mine), "--audits", "agrement"], "did you mean 'agreement'"),
        "unknown preset": (["train", "--corpus", str(mine), "--preset", "jain"], "did you mean 'jain-wallace'"),
        "unknown option": (["audit", "--corpsu", "x"], "--corpsu"),
        "not a number": (["audit", "--limit", "many"], "many"),
        "no such file": (["audit", "--corpus", "nowhere.csv"], "nowhere.csv"),
        "no such column": (["audit", "--corpus", str(mine), "--label-column", "stars"], "'stars'"),
        "other bytes": (["audit", "--corpus", str(latin)], "UTF-8"),
        "mixed labels": (["audit", "--corpus", str(mixed)], "mixed.csv"),
        "empty file": (["audit", "--corpus", str(tmp_path / "empty.csv")], "empty.csv"),
        "no model": (["explain", "text", "--model", str(tmp_path)], "not a model folder"),
        "no model folder": (["explain", "text", "--model", str(tmp_path / "nowhere")], "no model folder"),
        "no audit": (["report", str(tmp_path / "folder")], "no finished audit"),
        "no seed": (["audit", "--corpus", str(mine), "--seed", "-1"], "from 0"),
        "no folder": (["audit", "--corpus", str(mine), "--out", str(mine)], "mine.csv"),
        "no epochs": (["train", "--corpus", str(mine), "--epochs", "0"], "at least 1"),
        "no device": (["train", "--corpus", str(mine), "--device", "abacus"], "abacus"),
    }


CASES = [
    *("unknown corpus", "unknown encoder", "unknown alignment", "unknown explainer"),
    *("unknown explainer option", "unknown audit", "unknown preset"),
    *("unknown option", "not a number", "no such file", "no such column", "other bytes", "mixed labels", "empty file"),
    *("no model", "no model folder", "no audit", "no seed", "no folder", "no epochs", "no device"),
]


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_gets_one_sentence_and_exit_code_2(assay, tmp_path, case):
    words, hint = broken(tmp_path)[case]
    code, out, told = assay(*words)
    assert code == 2
    assert hint in told
    assert len(told.strip().splitlines()) == 1
    assert "Traceback" not in told + out


def test_an_option_of_another_verb_is_told_where_it_belongs(assay):
    code, _, told = assay("audit", "--encoder", "gru")
    assert code == 2
    assert told.startswith(
        "--encoder is an option of 'assay train' and 'assay rationalise', not of 'assay audit'; train"
    )
    Path("plan.toml").write_text("encoder = 'gru'\n")
    code, _, told = assay("audit", "--plan", "plan.toml")
    assert (code, "--encoder (from" in told, "'assay train'" in told) == (2, True, True)
    assert "is trained already" in assay("audit", "--model", "m", "--epochs", "2")[2]
    assert "'assay audit'" in assay("explain", "x", "--model", "m", "--audits", "truth")[2]


def test_options_of_old_still_work(assay):
    for words in (("--pieces",), ("--place", "1"), ("--place=1",), ("--attention-head", "0")):
        code, _, told = assay("attend", "a film", "--model", "nowhere", *words)
        assert (code, "nowhere" in told or "transformers" in told) == (2, True)


def test_a_corpus_and_a_model_are_shown(assay, tmp_path, model):
    code, out, _ = assay("corpus", str(tmp_path / "mine.csv"))
    assert (code, "2 classes (no, yes)" in out) == (0, True)
    code, out, _ = assay("load", str(model))
    assert (code, "Classes: no, yes." in out, "Trained on mine." in out) == (0, True, True)


@pytest.fixture
def model(assay, tmp_path):
    assay("train", "--corpus", str(table(tmp_path / "mine.csv")), "--out", "m")
    return Path("m")


@pytest.mark.parametrize(
    ("text", "hint"),
    [("", "no words"), (" \n", "no words"), ("word " * 100_000, "1,000 words"), ("caf\udce9", "UTF-8")],
)
def test_a_text_that_cannot_be_explained_is_refused(assay, model, text, hint):
    code, _, told = assay("explain", text, "--model", str(model))
    assert (code, hint in told) == (2, True)


def test_a_text_of_one_word_is_explained(assay, model):
    code, out, _ = assay("explain", "dull", "--model", str(model), "--json")
    assert code == 0
    assert json.loads(out)["scores"]["attention"] == [1.0]


def test_a_class_that_the_model_does_not_know_is_refused(assay, model):
    code, _, told = assay("explain", "dull", "--model", str(model), "--target", "purple")
    assert (code, "purple" in told) == (2, True)


def test_a_truncated_model_is_named_and_nothing_is_written(assay, model, tmp_path):
    weights = model / store.WEIGHTS
    weights.write_bytes(weights.read_bytes()[:200])
    code, _, told = assay("audit", "--model", "m", "--corpus", str(tmp_path / "mine.csv"), "--out", "a")
    assert (code, "damaged" in told) == (2, True)
    assert not Path("a").exists()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of the small model over the table, to be copied."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "default", SMALL)
        patch.chdir(folder)
        patch.setattr("sys.argv", ["assay", "audit", "--corpus", str(table(folder / "mine.csv")), "--out", "run"])
        with contextlib.suppress(SystemExit):
            cli.main()
    return folder / "run"


@pytest.mark.parametrize(
    ("file", "verb"), [("plan.json", "audit"), ("summary.json", "audit"), ("summary.json", "report")]
)
@pytest.mark.parametrize("content", ["{", "{}"])
def test_a_damaged_run_is_named(assay, tmp_path, made, file, verb, content):
    mine = str(table(tmp_path / "mine.csv"))
    shutil.copytree(made, "run")
    (Path("run") / file).write_text(content)
    words = ["report", "run"] if verb == "report" else ["audit", "--corpus", mine, "--out", "run"]
    code, _, told = assay(*words)
    assert code == 2
    assert "run" in told
    assert len(told.strip().splitlines()) == 1


def test_another_run_in_the_same_folder_is_refused_and_nothing_is_lost(assay, tmp_path):
    mine = str(table(tmp_path / "mine.csv"))
    assay("audit", "--corpus", mine, "--out", "run")
    before = {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}
    for change in (["--epochs", "1"], ["--seed", "1"], ["--epsilon", "0.1"]):
        code, _, told = assay("audit", "--corpus", mine, "--out", "run", *change)
        assert (code, "other options" in told) == (2, True)
    assert {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()} == before


@pytest.fixture
def tiny_disk(tmp_path):
    """A disk of 100 kB, where the system lets us make one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_named_and_what_was_there_stays(assay, model, tiny_disk, tmp_path):
    (tiny_disk / "notes.txt").write_text("mine")
    wide = Recipe(Architecture(embedding=300), TextOptions(min_count=1), Training(epochs=1))
    PRESETS["default"] = wide
    corpus = str(tmp_path / "mine.csv")
    for words in (["train"], ["audit"], ["audit", "--model", str(model), "--limit", "50"]):
        (tiny_disk / "filler").write_bytes(b"x" * (90_000 if "--model" in words else 10))
        code, _, told = assay(*words, "--corpus", corpus, "--out", str(tiny_disk / "out"))
        assert (code, "disk is full" in told) == (2, True)
        assert not (tiny_disk / "out" / "summary.json").exists()
    assert (tiny_disk / "notes.txt").read_text() == "mine"
    assert store.load(model).classes == ("no", "yes")


def start(out: str, corpus: Path) -> subprocess.Popen[bytes]:
    words = ["-m", "assay.cli", "audit", "--corpus", str(corpus), "--epochs", "3", "--out", out]
    return subprocess.Popen([sys.executable, *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_a_killed_command_run_again_gives_the_same_weights_and_records(tmp_path):
    corpus = table(tmp_path / "mine.csv", rows=400)
    assert start("whole", corpus).wait() == 0
    process = start("cut", corpus)
    checkpoint = Path("cut/model/checkpoint.safetensors")
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert checkpoint.exists() and not Path("cut/summary.json").exists()
    assert start("cut", corpus).wait() == 0
    one, other = (load_file(Path(name) / "model" / store.WEIGHTS) for name in ("whole", "cut"))
    assert all((one[name] == other[name]).all() for name in one)
    whole, cut = (Record.read(Path(name)) for name in ("whole", "cut"))
    for name in ("instances", "examples"):  # as text, since a number that is none does not equal itself
        assert str(getattr(whole, name).to_pydict()) == str(getattr(cut, name).to_pydict())
    assert whole.summary["findings"] == cut.summary["findings"]


def test_help_needs_no_torch():
    script = (
        "import sys; sys.argv=['assay','--help']\nfrom assay import cli\ntry: cli.main()\nexcept SystemExit: pass\n"
    )
    script += "assert 'torch' not in sys.modules"
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env=environment)
