"""`assay probe` as a person meets it: a tiny transformer, a tiny treebank, and what each mistake says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import torch

from assay import cli
from assay.caching import FinishedParts, finite
from assay.models.hf_loading import silent
from assay.probes.drawings import read
from assay.run import probing
from tests import pretrained
from tests.calling import call

ARCS = (("the", "DET", 3, "det"), ("{}", "ADJ", 3, "amod"), ("film", "NOUN", 4, "nsubj"), ("is", "VERB", 0, "root"))
ADJECTIVES = ("good", "bad", "long", "dull", "fun")


@pytest.fixture
def assay(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setattr(cli.console, "width", 100)

    return lambda *words: call(monkeypatch, capsys, *words)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A folder with a tiny random classifier, as the library stores it."""
    made = pretrained.inner("bert", 2, dtype=torch.float32)
    made.config.id2label, made.config.label2id = {0: "bad", 1: "good"}, {"bad": 0, "good": 1}
    with silent():
        made.save_pretrained(tmp_path / "theirs")
        pretrained.tokenizer().save_pretrained(tmp_path / "theirs")
    return str(tmp_path / "theirs")


@pytest.fixture
def treebank(tmp_path: Path, monkeypatch) -> Path:
    """Forty sentences of one shape for dev and for test, in a folder of local copies."""
    folder = tmp_path / "copies"
    (folder / "ud_english_ewt").mkdir(parents=True)
    for split in ("dev", "test"):
        with gzip.open(folder / "ud_english_ewt" / f"en_ewt-ud-{split}.conllu.gz", "wt", encoding="utf-8") as written:
            for number in range(40):
                written.write("\n".join(_lines(ADJECTIVES[number % 5])) + "\n\n")
    monkeypatch.setenv("ASSAY_DATA", str(folder))
    return folder


def _lines(adjective: str) -> list[str]:
    return [
        "\t".join((str(number), form.format(adjective), "_", tag, "_", "_", str(governor), relation, "_", "_"))
        for number, (form, tag, governor, relation) in enumerate(ARCS, 1)
    ]


def texts(path: Path, rows: int = 30) -> str:
    lines = [f"this film is {ADJECTIVES[row % 5]} {row},{('bad', 'good')[row % 2]}" for row in range(rows)]
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return str(path)


def test_a_probe_leaves_a_page_and_numbers_and_says_what_is_left_out(assay, model, treebank):
    code, out, told = assay("probe", "--model", model, "--out", "run")
    assert code == 0, told
    assert "of 3 relations" in " ".join(out.split())
    assert all(name in out for name in ("nsubj", "amod", "det", "offset", "control", "head"))
    assert "Not probed: coreference." in out
    assert "Not probed: negation." in out
    assert "Not probed: head importance. Head importance needs texts with labels; name them with --corpus." in out
    assert "Page: run/probe.html" in out
    held = read(Path("run/probe.json"))
    assert set(held["sections"]) == {"speech", "relations", "pairs"}
    assert (held["layers"], held["heads"]) == (2, 4)
    assert held["model"]["parameters"] > 0
    assert held["command"].startswith("assay probe --model")
    assert {"assay", "torch", "transformers"} <= set(held["versions"])
    page = Path("run/probe.html").read_text(encoding="utf-8")
    assert "Relations and their best heads" in page
    assert "Heads drawn" not in page  # four words are too few to draw


def test_importance_is_found_with_a_corpus(assay, model, tmp_path):
    code, out, told = assay("probe", "--model", model, "--corpus", texts(tmp_path / "mine.csv"), "--out", "run")
    assert code == 0, told
    section = read(Path("run/probe.json"))["sections"]["importance"]
    assert len(section["importance"]) == 2
    assert [point["pruned"] for point in section["curve"]][-1] == 8
    assert section["n"] > 0 and section["n_dev"] > 0
    assert "Not probed: parts of speech, dependency relations, and pairs of words." in out
    assert "Which heads does the classifier need?" in Path("run/probe.html").read_text(encoding="utf-8")


def test_concepts_are_given_by_files_and_the_highest_level_moves(assay, model, tmp_path):
    (tmp_path / "praise.txt").write_text("a good film\n\nit is fun\ngood fun\n")
    mine = texts(tmp_path / "mine.csv", 90)
    words = ("probe", "--model", model, "--corpus", mine, "--sections", "concepts", "--concept", "praise.txt")
    code, _, told = assay(*words, "--out", "run")
    assert code == 0, told
    section = read(Path("run/probe.json"))["sections"]["concepts"]
    assert section["level"] == "layer 1" and len(section["rows"]) == 2
    assert {(row["concept"], row["examples"]) for row in section["rows"]} == {("praise", 3)}
    assert "Does a class depend on a concept?" in Path("run/probe.html").read_text(encoding="utf-8")
    for more, fault in (
        (("--level", "layer 7"), "Unknown level 'layer 7'"),
        (("--concept", "nowhere.txt"), "nowhere.txt does not exist; check the path."),
        (("--concept", "praise.txt"), "Two concepts are called 'praise'; give one of the files another name."),
    ):
        code, _, told = assay(*words, *more, "--out", "other")
        assert code == 2 and fault in " ".join(told.split()), told


def test_an_interrupted_probe_goes_on_where_it_stopped(assay, model, treebank, tmp_path, monkeypatch):
    mine = texts(tmp_path / "mine.csv")

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(probing, "pruned", stop)
        code, _, _ = assay("probe", "--model", model, "--corpus", mine, "--out", "run")
    assert code == 130
    assert not Path("run/probe.json").exists()
    assert [path.name for path in Path("run/parts").iterdir()] == ["treebank.json"]
    monkeypatch.setattr(probing, "probe", stop)  # nothing of the treebank is read again
    code, _, told = assay("probe", "--model", model, "--corpus", mine, "--out", "run")
    assert code == 0, told
    assert set(read(Path("run/probe.json"))["sections"]) == {"speech", "relations", "pairs", "importance"}


def test_the_same_command_gives_the_same_numbers(assay, model, treebank):
    for folder in ("one", "two"):
        code, _, told = assay("probe", "--model", model, "--sections", "relations,speech", "--out", folder)
        assert code == 0, told
    first, second = (read(Path(folder) / "probe.json") for folder in ("one", "two"))
    assert first["sections"] == second["sections"]
    assert set(first["sections"]) == {"relations", "speech"}


def test_more_sections_are_added_in_the_same_folder_but_not_another_limit(assay, model, treebank, tmp_path):
    assert assay("probe", "--model", model, "--sections", "speech", "--out", "run")[0] == 0
    mine = texts(tmp_path / "mine.csv")
    code, _, told = assay(
        "probe", "--model", model, "--sections", "speech,importance", "--corpus", mine, "--out", "run"
    )
    assert code == 0, told
    assert set(read(Path("run/probe.json"))["sections"]) == {"speech", "importance"}
    code, _, told = assay("probe", "--model", model, "--limit", "35", "--out", "run")
    assert code == 2
    assert "choose another --out" in told


def test_without_any_data_it_is_one_clear_error(assay, model):
    code, _, told = assay("probe", "--model", model)
    assert code == 2
    assert told.startswith("Nothing can be probed here.")
    assert "ASSAY_DATA" in told and "--corpus" in told
    assert "Traceback" not in told
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--model", "han-rnn"), "han-rnn is no transformer"),
        (("--model", "nowhere"), "nowhere is no transformer"),
        (("--model", "MODEL", "--sections", "relation"), "did you mean 'relations'?"),
        (("--model", "MODEL", "--limit", "0"), "at least one sentence, not 0"),
        (("--model", "MODEL", "--device", "abacus"), "cannot be used here"),
        (("--model", "MODEL", "--corpus", "nothing.csv"), "nothing.csv"),
    ],
)
def test_each_mistake_is_one_sentence(assay, model, treebank, words, sentence):
    code, _, told = assay("probe", *(model if word == "MODEL" else word for word in words))
    assert code == 2
    assert sentence in " ".join(told.split())
    assert "Traceback" not in told


def test_an_encoder_without_a_classifier_has_no_importance_but_all_else(assay, treebank, tmp_path):
    made = pretrained.inner("bert", 2, dtype=torch.float32)
    with silent():
        made.bert.save_pretrained(tmp_path / "bare")
        pretrained.tokenizer().save_pretrained(tmp_path / "bare")
    mine = texts(tmp_path / "mine.csv")
    code, out, told = assay("probe", "--model", str(tmp_path / "bare"), "--corpus", mine, "--out", "run")
    assert code == 0, told
    assert "no trained classification head" in " ".join(out.split())
    only = ("--sections", "importance", "--corpus", mine)
    code, _, told = assay("probe", "--model", str(tmp_path / "bare"), *only, "--out", "other")
    assert code == 2
    assert "no trained classification head" in " ".join(told.split())


def test_attention_that_cannot_be_edited_is_read_but_not_pruned(assay, treebank, tmp_path):
    made = pretrained.inner("mpnet", 2, dtype=torch.float32)
    made.config.id2label, made.config.label2id = {0: "bad", 1: "good"}, {"bad": 0, "good": 1}
    with silent():
        made.save_pretrained(tmp_path / "closed")
        pretrained.tokenizer().save_pretrained(tmp_path / "closed")
    mine = texts(tmp_path / "mine.csv")
    code, out, told = assay("probe", "--model", str(tmp_path / "closed"), "--corpus", mine, "--out", "run")
    assert code == 0, told
    assert "cannot be edited" in " ".join(out.split())
    assert "relations" in read(Path("run/probe.json"))["sections"]


def test_parts_are_made_anew_where_something_else_is_asked(tmp_path):
    finished = FinishedParts(tmp_path)
    assert finished.answer("part", ["a"], lambda: {"value": 1})["answer"] == {"value": 1}
    assert finished.answer("part", ("a",), lambda: {"value": 2})["answer"] == {"value": 1}
    assert finished.answer("part", ["b"], lambda: {"value": float("nan")})["answer"] == {"value": None}
    assert json.loads((tmp_path / "parts" / "part.json").read_text())["answer"] == {"value": None}


def test_what_is_no_number_becomes_nothing():
    assert finite({"a": [1.5, float("inf"), (float("nan"), "x")], "b": None}) == {
        "a": [1.5, None, [None, "x"]],
        "b": None,
    }
