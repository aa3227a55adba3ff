"""Corpora with human evidence, read from small invented files in the format of the real ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.data import published as evidence
from assay.data.corpora import CORPORA, corpus
from assay.data.examples import Corpus, Example
from assay.errors import AssayError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return tmp_path


def write(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def write_objects(path: Path, *rows: dict[str, Any]) -> None:
    write(path, [json.dumps(row) for row in rows])


def marked(example: Example) -> list[str]:
    assert example.evidence is not None
    return [example.text[start:end] for start, end in example.evidence]


def post(split: str, label: str, text: str, *masks: str) -> dict[str, Any]:
    rationales = [[int(mark) for mark in mask] for mask in masks]
    return {"post_id": "x", "split": split, "label": label, "tokens": text.split(), "rationales": rationales}


def read_posts(folder: Path, *rows: dict[str, Any]) -> Corpus:
    write_objects(folder / evidence.HATEXPLAIN, *rows)
    return corpus("hatexplain")


def test_posts_keep_their_split_and_undecided_ones_are_counted(folder: Path) -> None:
    loaded = read_posts(
        folder,
        post("train", "normal", "a b"),
        post("val", "offensive", "c d", "10", "10"),
        post("test", "hatespeech", "e f", "01", "01"),
        post("", "undecided", "g h"),
        post("", "undecided", "i j"),
    )
    splits = (loaded.train, loaded.dev, loaded.test)
    assert [[(e.text, loaded.classes[e.label]) for e in split] for split in splits] == [
        [("a b", "normal")],
        [("c d", "offensive")],
        [("e f", "hatespeech")],
    ]
    assert loaded.skipped == {"annotators undecided": 2}
    assert not any(example.planted for split in splits for example in split)


@pytest.mark.parametrize(
    ("masks", "words"),
    [
        (("1100", "0110"), ["rude", "old", "word"]),  # one of two is half
        (("1100", "0110", "0001"), ["old"]),  # one of three is less
        (("1000", "0100", "0010"), []),
        (("1001", "11011"), ["rude", "here"]),  # a mask of another length is left out, and so is its vote
    ],
)
def test_a_word_is_evidence_when_half_of_the_annotators_marked_it(
    folder: Path, masks: tuple[str, ...], words: list[str]
) -> None:
    loaded = read_posts(folder, post("test", "offensive", "rude old word here", *masks))
    assert marked(loaded.test[0]) == words


def test_normal_posts_have_no_evidence_rather_than_empty_evidence(folder: Path) -> None:
    (example,) = read_posts(folder, post("test", "normal", "good day")).test
    assert example.evidence is None


def span(start: int, end: int) -> dict[str, Any]:
    return {"docid": "r1", "start_token": start, "end_token": end, "start_sentence": -1, "end_sentence": -1, "text": ""}


def test_every_marked_phrase_of_a_review_is_evidence_once(folder: Path) -> None:
    document = "it is a fine film ,\nreally fine .\n"
    documents = [{"docid": name, "document": document} for name in ("r1", "r2", "r3")]
    write_objects(folder / evidence.MOVIES[0], *documents)
    groups = [[span(6, 8)], [span(3, 5), span(0, 1)], [span(3, 5)]]
    for file, name, label in zip(evidence.MOVIES[1:], ("r1", "r2", "r3"), ("POS", "NEG", "POS"), strict=True):
        write_objects(folder / file, {"annotation_id": name, "classification": label, "evidences": groups})
    loaded = corpus("movies")
    (train,), (dev,), (test,) = loaded.train, loaded.dev, loaded.test
    assert [loaded.classes[example.label] for example in (train, dev, test)] == ["positive", "negative", "positive"]
    assert train.text == "it is a fine film , really fine ."
    assert marked(train) == ["it", "fine film", "really fine"]


def pair(name: str, label: str, *annotations: tuple[list[int], list[int]]) -> dict[str, Any]:
    votes = [{"explanation": "", "premise_highlight": a, "hypothesis_highlight": b} for a, b in annotations]
    words = {"premise_tokens": ["A", "cat", "naps."], "hypothesis_tokens": ["An", "animal", "naps."]}
    return {"split": "dev", "pairID": name, "gold_label": label, **words, "annotations": votes}


def write_pairs(folder: Path, *highlighted: dict[str, Any]) -> None:
    train = ["p1\tneutral\tn\tA man.\tA sad man.", "p2\t-\tn\tA boy.\tA girl.", "p3\tentailment\te\tA cat.\tA pet."]
    write(folder / evidence.SNLI_TRAINING[0], ["pairID\tgold_label\tannotator_labels\tpremise\thypothesis", *train])
    dev = ["d1\tcontradiction\tA dog .\tA cat .", "d2\tentailment\tA cat naps .\tAn animal naps ."]
    write(folder / evidence.SNLI_TRAINING[1], ["pairID\tgold_label\tpremise\thypothesis", *dev])
    write_objects(folder / evidence.HIGHLIGHTS, *highlighted)


def test_highlighted_pairs_are_the_test_and_stand_nowhere_else(folder: Path) -> None:
    write_pairs(folder, pair("d2", "entailment", ([1], [1])), pair("p3", "entailment", ([1], [1])))
    loaded = corpus("esnli")
    texts = [[(e.text, loaded.classes[e.label]) for e in split] for split in (loaded.train, loaded.dev, loaded.test)]
    assert texts == [
        [("A man.\nA sad man.", "neutral")],
        [("A dog .\nA cat .", "contradiction")],
        [("A cat naps.\nAn animal naps.", "entailment")] * 2,
    ]
    assert [example.evidence is None for example in (*loaded.train, *loaded.dev)] == [True, True]


def test_highlights_of_both_sentences_count_by_half_of_the_annotators(folder: Path) -> None:
    three = pair("d2", "entailment", ([1, 0, 0], [1]), ([1, 2], [0]), ([2], []))
    write_pairs(folder, three, pair("p3", "entailment", ([0], [2])))
    first, second = corpus("esnli").test
    assert marked(first) == ["cat", "naps."]  # a word that one person marked twice has one vote
    assert marked(second) == ["A", "naps."] and second.evidence is not None
    assert second.evidence[1] == (len("A cat naps.\nAn animal "), len("A cat naps.\nAn animal naps."))


def test_training_pairs_are_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "TAUGHT", 1)
    write_pairs(folder, pair("d2", "entailment", ([1], [1])))
    assert [example.text for example in corpus("esnli").train] == ["A man.\nA sad man."]


def read_reports(folder: Path, *rows: tuple[str, str, str, str]) -> dict[str, Example]:
    head = "pmid\tlabel\ttext\teffects\tdrugs"
    others = [f"2\t{row % 2}\tcase {row}\t{'case' * (row % 2)}\t" for row in range(50)]
    lines = [f"1\t{label}\t{text}\t{effects}\t{drugs}" for label, text, effects, drugs in rows]
    write(folder / evidence.ADE, [head, *lines, *others])
    loaded = corpus("ade")
    assert loaded == corpus("ade", seed=5)
    return {example.text: example for split in (loaded.train, loaded.dev, loaded.test) for example in split}


def test_effects_and_drugs_are_evidence_wherever_they_occur(folder: Path) -> None:
    text = "Rash (mild rash) after X-12, rashly given with prezinc or zinc."
    loaded = read_reports(folder, ("1", text, "rash || mild rash", " X-12|| zinc "), ("0", "No rash.", "", ""))
    assert marked(loaded[text]) == ["mild rash", "rash", "X-12", "zinc"]
    assert loaded[text].label == 1 and not loaded[text].planted
    assert (loaded["No rash."].label, loaded["No rash."].evidence) == (0, None)
    assert len(loaded) == 52


@pytest.mark.data
def test_all_real_effects_and_drugs_are_found() -> None:
    loaded = corpus("ade")
    assert loaded.classes == CORPORA["ade"].classes == ("unrelated", "adverse")
    for example in (*loaded.train, *loaded.dev, *loaded.test):
        assert (example.evidence is None) == (example.label == 0)
        assert all(example.text[start:end].strip() == example.text[start:end] for start, end in example.evidence or ())
        assert example.evidence is None or len(example.evidence) > 1


@pytest.mark.parametrize("name", ["hatexplain", "movies", "ade", "esnli"])
def test_without_a_local_copy_the_error_names_the_file(name: str, folder: Path) -> None:
    with pytest.raises(AssayError, match=rf"'{name}' has no public source here; .* {CORPORA[name].files[0]}"):
        corpus(name)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes", "with_evidence"),
    [
        ("hatexplain", (15383, 1922, 1924), 1141),
        ("movies", (1600, 200, 199), 199),
        ("ade", (16804, 2145, 2018), 381),
        ("esnli", (30000, 9266, 1202), 1200),
    ],
)
def test_real_corpora_have_the_published_counts(name: str, sizes: tuple[int, ...], with_evidence: int) -> None:
    loaded = corpus(name)
    assert (len(loaded.train), len(loaded.dev), len(loaded.test)) == sizes
    assert sum(bool(example.evidence) for example in loaded.test) == with_evidence
