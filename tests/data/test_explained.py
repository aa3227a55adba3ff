"""Corpora with explanations, from invented local copies and from the real ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from assay.data.annotated import CHOICES, KINDS, explained
from assay.data.published import RELATIONS
from assay.errors import AssayError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


def write_pairs(folder: Path) -> None:
    head = "pairID\tgold_label\tpremise\thypothesis\texplanation_1\texplanation_2\texplanation_3\n"
    rows = [
        f"{row}\t{(*RELATIONS, '-')[row % 4]}\tCook {row // 4} sings .\tHe is {row} .\twhy {row}\t\tso\n"
        for row in range(80)
    ]
    write(folder / "esnli/explanations_dev.tsv.gz", head + "".join(rows))
    write(folder / "esnli/explanations_test.tsv.gz", head + "9\tneutral\tRain .\tHail .\tone\ttwo\tthree\n")
    write(folder / "snli/train.tsv.gz", "gold_label\tpremise\thypothesis\nneutral\tA dog.\tA cat.\n-\tA.\tB.\n")


def test_pairs_are_split_by_premise_and_empty_explanations_are_left_out(folder: Path) -> None:
    write_pairs(folder)
    corpus = explained("esnli")
    assert corpus.classes == RELATIONS and corpus.parts == ("premise", "hypothesis")
    assert len(corpus.train) + len(corpus.dev) == 60 and len(corpus.test) == len(corpus.unexplained) == 1
    premises = [{each.example.text for each in split} for split in (corpus.train, corpus.dev)]
    assert premises[1] and not premises[0] & premises[1]
    number = corpus.train[0].explanations[0].split()[1]
    assert corpus.train[0].explanations == (f"why {number}", "so")
    assert corpus.train[0].example.query == f"He is {number} ."
    assert corpus.test[0].explanations == ("one", "two", "three")


def test_choices_are_in_order_and_questions_without_an_explanation_are_left_out(folder: Path) -> None:
    choices = [
        {"label": letter, "text": text} for letter, text in (("B", "house"), ("A", "antique shop"), ("C", "sea"))
    ]
    for split in ("train", "dev"):
        questions = [
            {"id": f"{row}", "answerKey": "B", "question": {"stem": f"Where {row}?", "choices": choices}}
            for row in range(30)
        ]
        reasons = [{"id": f"{row}", "explanation": {"open-ended": f"so {row}", "selected": "x"}} for row in range(29)]
        write(folder / f"cos_e/v1.0_{split}_rand_split.jsonl.gz", "\n".join(map(json.dumps, questions)))
        write(folder / f"cos_e/v1.0_cose_{split}_v1.0.jsonl.gz", "\n".join(map(json.dumps, reasons)))
    corpus = explained("cose")
    assert len(corpus.train) + len(corpus.dev) == len(corpus.test) == 29
    first = corpus.test[0]
    assert (first.example.text, first.example.label, first.explanations) == ("Where 0?", 1, ("so 0",))
    assert first.choices == ("antique shop", "house", "sea")
    assert first.example.query == "first antique shop second house third sea"
    assert corpus.classes == CHOICES


def test_the_planted_reason_names_the_deciding_word_and_its_kind() -> None:
    corpus = explained("planted")
    for item in (*corpus.train, *corpus.dev, *corpus.test):
        _, name, *_, kind = item.explanations[0].split()
        assert name in item.example.text.split() and KINDS.index(kind) == item.example.label


def test_missing_copies_and_wrong_names_are_told(folder: Path) -> None:
    with pytest.raises(AssayError, match="set ASSAY_DATA to a folder that holds esnli/explanations_dev"):
        explained("esnli")
    with pytest.raises(AssayError, match="Unknown corpus with explanations 'csoe'; did you mean 'cose'"):
        explained("csoe")


@pytest.mark.data
def test_the_real_corpora_have_the_sizes_that_were_published() -> None:
    pairs, questions = explained("esnli"), explained("cose")
    assert len(pairs.train) + len(pairs.dev) == 9842 and len(pairs.test) == 9824
    assert all(len(item.explanations) == 3 for item in pairs.test)
    assert len(questions.train) + len(questions.dev) == 7610 and len(questions.test) == 950
