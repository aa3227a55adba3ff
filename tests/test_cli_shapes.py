"""Ratings with a hierarchical network, pairs, and cloze questions, from a user's files through the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assay.audits import USUAL_AUDITS
from assay.models.recipes import PRESETS
from assay.records import Record
from tests.test_cli import SMALL, assay, small_models  # noqa: F401

EVERYONE = ("Ann", "Bob", "Cleo", "Dan")
PLACES = ("attic", "garden", "kitchen")


def small(name: str, monkeypatch) -> None:
    chosen = PRESETS[name]
    sizes = {"embedding": 8, "hidden": 8, "alignment_size": 4}
    lessons = replace(chosen.training, epochs=2, learning_rate=0.01)
    monkeypatch.setitem(
        PRESETS, name, replace(SMALL, architecture=replace(chosen.architecture, **sizes), training=lessons)
    )


def ratings(path: Path) -> Path:
    """Reviews of three sentences with one of ten ratings, which a word tells."""
    lines = [f'"It was so. The number {n % 10} came up! Row {n} ends here.",{n % 10 + 1}' for n in range(400)]
    path.write_text("\n".join(["text,rating", *lines]) + "\n")
    return path


def stories(path: Path) -> Path:
    """Who is where, and a question."""
    rows = []
    for n in range(240):
        where = [PLACES[(n + k * k) % 3] for k in range(4)]
        text = " ".join(f"{name} is in the {place} ." for name, place in zip(EVERYONE, where, strict=True))
        rows.append({"text": f"Story {n} . {text}", "question": f"Where is {EVERYONE[n % 4]} ?", "label": where[n % 4]})
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def cloze(path: Path) -> Path:
    """Three of nine entities in each text, one of which won."""
    rows = []
    for n in range(240):
        first, second, third = (f"@entity{(n + step) % 9}" for step in (0, 2, 5))
        text = f"In game {n} {first} met {second} while {third} looked on ."
        rows.append({"text": text, "question": "@placeholder looked on", "answer": third})
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


@pytest.mark.parametrize(
    "name",
    [
        "han-rnn",
        "flan-conv",
        "flan-none",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("han-conv", "han-none", "flan-rnn")),
    ],
)
def test_each_network_of_the_paper_is_trained_and_audited_by_its_name(name, assay, monkeypatch, tmp_path):  # noqa: F811
    small(name, monkeypatch)
    mine = str(ratings(tmp_path / "mine.csv"))
    chosen = ("--explainers", "attention,gradient,lrp,occlusion", "--limit", "6")
    asked = ("single_weight", "minimal_set", "adversary", "permutation")
    code, _, err = assay("audit", "--corpus", mine, "--model", name, *chosen, "--audits", ",".join(asked))
    assert code == 0, err
    record = Record.read(Path("runs") / f"mine-{name}-0")
    summary = record.summary
    assert len(summary["corpus"]["classes"]) == 10
    assert summary["model"]["items"] == ("sentences" if name.startswith("han") else "words")
    assert set(summary["explainers"]) == {"attention", "gradient", "lrp", "occlusion"}
    for audit in asked:
        assert summary["audits"][audit]["applies"]
    items = record.audit_rows("minimal_set")["items"].to_pylist()
    assert (set(items) == {3}) == name.startswith("han")
    assert (Path("runs") / f"mine-{name}-0" / "report.html").exists()


def test_pairs_are_read_without_being_asked(assay, tmp_path):  # noqa: F811
    code, out, err = assay("audit", "--corpus", str(stories(tmp_path / "rooms.jsonl")), "--out", "run", "--limit", "12")
    assert code == 0, err
    record = Record.read(Path("run"))
    assert record.summary["model"]["shape"] == "paired"
    assert set(record.summary["audits"]) == set(USUAL_AUDITS)
    assert all(question.startswith("Where is") for question in record.examples["query"].to_pylist())
    assert "Where is" in (Path("run") / "report.html").read_text()
    text = "Ann is in the attic . Bob is in the garden ."
    code, out, err = assay("explain", text, "--query", "Where is Bob ?", "--model", "run/model", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["query"] == "Where is Bob ?"
    assert set(told["probabilities"]) == set(PLACES)
    assert len(told["scores"]["attention"]) == len(told["words"]) == 12


def test_a_question_that_is_missing_or_not_wanted_is_told_in_a_sentence(assay, tmp_path):  # noqa: F811
    assert assay("train", "--corpus", str(stories(tmp_path / "rooms.jsonl")), "--out", "pairs")[0] == 0
    code, _, err = assay("explain", "Ann is in the attic .", "--model", "pairs")
    assert (code, "--query" in err) == (2, True)
    plain = tmp_path / "plain.csv"
    plain.write_text("text,label\n" + "".join(f"good {n},yes\nbad {n},no\n" for n in range(60)))
    assert assay("train", "--corpus", str(plain), "--out", "single")[0] == 0
    code, _, err = assay("explain", "good", "--query", "why ?", "--model", "single")
    assert (code, "reads one text" in err) == (2, True)
    code, _, err = assay("audit", "--corpus", str(tmp_path / "rooms.jsonl"), "--model", "han-none")
    assert (code, "--joined" in err) == (2, True)


def test_of_a_cloze_question_only_entities_of_the_text_are_predicted(assay, tmp_path):  # noqa: F811
    chosen = ("--audits", "agreement,adversary", "--out", "run", "--limit", "12")
    code, _, err = assay("audit", "--corpus", str(cloze(tmp_path / "won.jsonl")), *chosen)
    assert code == 0, err
    record = Record.read(Path("run"))
    classes = record.summary["corpus"]["classes"]
    assert len(classes) == 9
    for row in record.examples.to_pylist():
        assert classes[row["predicted"]] in row["text"]
        absent = [p for name, p in zip(classes, row["probabilities"], strict=True) if name not in row["text"]]
        assert absent == [0.0] * 6
