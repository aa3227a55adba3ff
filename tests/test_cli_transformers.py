"""Transformers on the command line: from a folder to a report, and what is refused in one sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import datasets
import pytest
import torch
from huggingface_hub import constants

from assay import cli
from assay.models.hf_loading import silent
from assay.records import Record
from tests import pretrained
from tests.calling import call

FEW = ("--explainers", "attention,gradient,occlusion,random", "--audits", "agreement,erasure")


@pytest.fixture
def assay(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)  # read from the variable when it was imported
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(cli.console, "width", 100)

    return lambda *words: call(monkeypatch, capsys, *words)


def folder(path: Path, architecture: str = "bert", names: tuple[str, ...] = ("NEGATIVE", "POSITIVE"), **options) -> str:
    """A folder as people store their models."""
    made = pretrained.inner(architecture, len(names), dtype=torch.float32, **options)
    made.config.id2label = dict(enumerate(names))
    made.config.label2id = {name: number for number, name in enumerate(names)}
    with silent():
        made.save_pretrained(path)
        pretrained.tokenizer().save_pretrained(path)
    return str(path)


def table(path: Path, labels: tuple[str, ...] = ("negative", "positive"), rows: int = 8) -> str:
    words = ("dull", "fun")
    lines = [f'"this film is {words[row % 2]}, {"very " * (row % 3)}long",{labels[row % 2]}' for row in range(rows)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return str(path)


def test_a_stored_transformer_is_audited_on_all_texts_of_a_file(assay, tmp_path):
    model, mine = folder(tmp_path / "theirs"), table(tmp_path / "mine.csv")
    before = {path.name: path.read_bytes() for path in Path(model).iterdir()}
    code, out, told = assay("audit", "--model", model, "--data", mine, *FEW, "--out", "run")
    assert code == 0, told
    assert "occlusion" in out
    record = Record.read(Path("run"))
    assert record.summary["corpus"]["audited"] == 8
    assert record.summary["corpus"]["classes"] == ["NEGATIVE", "POSITIVE"]
    assert "BertForSequenceClassification" in record.summary["model"]["description"]
    assert record.examples["label"].to_pylist() == [0, 1] * 4
    assert {path.name: path.read_bytes() for path in Path(model).iterdir()} == before
    words = [
        record.examples["text"][0].as_py()[start:end]
        for start, end in zip(record.examples["starts"][0].as_py(), record.examples["ends"][0].as_py(), strict=True)
    ]
    assert words == ["this", "film", "is", "dull", ",", "long"]


def test_numbers_and_other_names_stand_for_classes(assay, tmp_path):
    model = folder(tmp_path / "theirs", names=("LABEL_0", "LABEL_1"))
    numbered = table(tmp_path / "numbered.csv", labels=("0", "1"))
    assert assay("audit", "--model", model, "--data", numbered, *FEW, "--out", "a")[0] == 0
    mine = table(tmp_path / "mine.csv")
    code, _, told = assay("audit", "--model", model, "--data", mine, *FEW, "--out", "b")
    assert (code, "'negative'" in told, "LABEL_0" in told, "--classes" in told) == (2, True, True, True)
    named = ("--classes", "negative,positive")
    assert assay("audit", "--model", model, "--data", mine, *FEW, *named, "--out", "c")[0] == 0
    assert Record.read(Path("a")).examples["label"].equals(Record.read(Path("c")).examples["label"])


def test_words_are_explained_and_pieces_where_asked_for(assay, tmp_path):
    model = folder(tmp_path / "theirs")
    text = "An unwatchable film"
    words = json.loads(assay("explain", text, "--model", model, "--explainers", "gradient", "--json")[1])
    pieces = json.loads(assay("explain", text, "--model", model, "--explainers", "gradient", "--json", "--pieces")[1])
    assert words["words"] == ["An", "unwatchable", "film"]
    assert len(pieces["words"]) > 3 and "".join(pieces["words"]) == "Anunwatchablefilm"
    assert words["probabilities"] == pytest.approx(pieces["probabilities"])


def test_a_pair_is_explained_with_its_question(assay, tmp_path):
    model = folder(tmp_path / "theirs")
    asked = ("explain", "this film is dull", "--model", model, "--explainers", "occlusion", "--json")
    alone, paired = json.loads(assay(*asked)[1]), json.loads(assay(*asked, "--query", "is it fun ?")[1])
    assert alone["words"] == paired["words"]
    assert alone["probabilities"] != paired["probabilities"]


def test_of_independent_labels_one_is_asked_for(assay, tmp_path):
    names = ("toxic", "rude", "odd")
    model = folder(tmp_path / "theirs", names=names, problem_type="multi_label_classification")
    code, _, told = assay("explain", "dull", "--model", model)
    assert (code, "--label" in told, "toxic, rude, odd" in told) == (2, True, True)
    code, out, _ = assay("explain", "dull", "--model", model, "--label", "rude", "--explainers", "gradient", "--json")
    assert (code, list(json.loads(out)["probabilities"])) == (0, ["not rude", "rude"])
    code, _, told = assay("explain", "dull", "--model", model, "--label", "rued")
    assert (code, "'rude'" in told) == (2, True)


def test_an_encoder_is_fine_tuned_and_audited(assay, tmp_path, monkeypatch):
    from assay.models import hf_loading as presets

    monkeypatch.setattr(presets, "located", lambda name: name)
    start, mine = folder(tmp_path / "start"), table(tmp_path / "mine.csv", rows=80)
    learn = ("--corpus", mine, "--epochs", "2", "--learning-rate", "0.01", "--batch-size", "8")
    for head in ("own", "attention"):
        code, out, told = assay("train", "--model", start, *learn, "--head", head, "--out", head)
        assert code == 0, told
        assert f"Model: {head}" in out
        card = json.loads((Path(head) / "assay.json").read_text())
        assert card["classes"] == ["negative", "positive"] and card["history"]["epochs"] == 2
        code, _, told = assay("audit", "--model", head, "--corpus", mine, *FEW, "--out", f"{head}-run")
        assert code == 0, told
        summary = Record.read(Path(f"{head}-run")).summary
        assert summary["corpus"]["audited"] < 40  # the test split alone: the model has seen the others
    assert assay("finetune", "--base", start, *learn, "--head", "own", "--out", "own")[0] == 0
    assert "no pretrained encoder" in assay("finetune", "--base", "han-rnn", *learn)[2]
    code, _, told = assay("train", "--model", start, *learn, "--head", "own", "--seed", "1", "--out", "own")
    assert (code, "other options" in told) == (2, True)


def broken(path: Path) -> dict[str, tuple[list[str], str]]:
    """What people give by mistake, and what the sentence about it must say."""
    mine = table(path / "mine.csv")
    pickled = Path(folder(path / "pickled"))
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    bare = Path(folder(path / "bare"))
    made = pretrained.attentive().inner
    shutil.rmtree(bare)
    with silent():
        made.float().save_pretrained(bare)
        pretrained.tokenizer().save_pretrained(bare)
    unpadded = Path(folder(path / "unpadded"))
    settings = json.loads((unpadded / "tokenizer_config.json").read_text())
    del settings["pad_token"]
    (unpadded / "tokenizer_config.json").write_text(json.dumps(settings))
    inner = json.loads((unpadded / "tokenizer.json").read_text())
    inner["padding"] = None  # it is stored where the tokenizer has padded before, and names the token
    (unpadded / "tokenizer.json").write_text(json.dumps(inner))
    number = folder(path / "number", names=("stars",))
    damaged = Path(folder(path / "damaged"))
    (damaged / "model.safetensors").write_bytes(b"no weights")
    strange = Path(folder(path / "strange"))
    (strange / "config.json").write_text(json.dumps({"model_type": "nothing-known"}))
    fine = folder(path / "fine")
    long = path / "long.csv"
    long.write_text("text,label\n" + f"{'very ' * 100} dull,negative\n{'very ' * 100} fun,positive\n" * 3)
    return {
        "no head": (["audit", "--model", str(bare), "--data", mine], "no trained classification head"),
        "pickle only": (["audit", "--model", str(pickled), "--data", mine], "pytorch_model.bin"),
        "no padding": (["audit", "--model", str(unpadded), "--data", mine], "padding token"),
        "too long": (["audit", "--model", fine, "--data", str(long)], "too long"),
        "too long to explain": (["explain", "very " * 100, "--model", fine], "--truncate"),
        "unknown label": (["audit", "--model", fine, "--data", table(path / "odd.csv", ("meh", "wow"))], "'meh'"),
        "regression": (["audit", "--model", number, "--data", mine], "regression"),
        "damaged": (["audit", "--model", str(damaged), "--data", mine], "could not be read"),
        "unknown architecture": (["explain", "dull", "--model", str(strange)], "could not be read"),
        "not published": (["explain", "dull", "--model", "hf:nobody/nothing"], "hub"),
        "no such model": (["explain", "dull", "--model", "han-rn"], "hf:NAME"),
        "other precision": (["explain", "dull", "--model", fine, "--dtype", "float8"], "float8"),
        "other classes": (["explain", "dull", "--model", fine, "--classes", "a,b,c"], "2 classes"),
        "a label of one choice": (["explain", "dull", "--model", fine, "--label", "x"], "independent labels"),
        "a head for a given model": (["explain", "dull", "--model", fine, "--head", "own"], "--head"),
        "options of networks": (["train", "--model", fine, "--corpus", mine, "--encoder", "lstm"], "--encoder"),
        "pieces of networks": (["train", "--corpus", mine, "--pieces"], "--subwords"),
        "no data set": (["audit", "--model", fine, "--data", "hf:"], "hf:"),
        "unpublished data": (["audit", "--model", fine, "--data", "hf:nobody/nothing"], "could not be read"),
    }


CASES = (
    *(
        "no head",
        "pickle only",
        "no padding",
        "too long",
        "too long to explain",
        "unknown label",
        "regression",
        "damaged",
    ),
    *("unknown architecture", "not published", "no such model", "other precision", "other classes"),
    *("a label of one choice", "a head for a given model", "options of networks", "pieces of networks"),
    *("no data set", "unpublished data"),
)


def test_every_mistake_gets_one_sentence_and_exit_code_2(assay, tmp_path):
    cases = broken(tmp_path)
    assert set(cases) == set(CASES)
    for case, (words, hint) in cases.items():
        code, out, told = assay(*words)
        assert (code, hint in told) == (2, True), (case, told)
        assert len(told.strip().splitlines()) == 1, (case, told)
        assert "Traceback" not in told + out
    assert not Path("runs").exists()


def test_long_texts_are_cut_where_asked_for(assay, tmp_path):
    model = folder(tmp_path / "theirs")
    asked = ("explain", "dull " * 100, "--model", model, "--explainers", "gradient", "--json", "--truncate")
    code, out, _ = assay(*asked)
    assert (code, len(json.loads(out)["words"])) == (0, 61)
