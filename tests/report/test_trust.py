"""How far one heatmap can be trusted, beside every explanation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from assay.data.text import TextOptions, Tokeniser
from assay.grading.grade import TRUST, known_reasons, trusted, trusts
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.models.store import Opened
from assay.records import Record
from assay.report import markdown, notebook
from assay.report.audit import document
from assay.report.examples import browse, groups
from assay.run.explaining import TRUSTED, UNTRUSTED, explain
from tests.report.synthetic import thinned

WORDS = ("alpha", "one", "two", "three", "four", "five", "six", "seven", *(f"w{place}" for place in range(400)))


def test_the_trust_of_a_text_is_read_off_its_economy_and_that_of_the_explainer(record: Record) -> None:
    start, own, whole = known_reasons()["text"]["coefficients"]
    told = trusts(record)
    rows = {row["example"]: row for row in record.audit_rows("deciding").to_pylist()}
    assert set(told) == set(rows)
    assert {name for each in told.values() for name in each} == set(record.summary["explainers"])
    for example, row in rows.items():
        for name, value in told[example].items():
            found = record.finding("deciding", name, "economy")
            assert found is not None
            score = start + own * row[f"economy:{name}"] + whole * found.mean
            assert value == pytest.approx(1 / (1 + math.exp(-score)))


def test_an_explainer_without_a_number_in_a_text_leaves_the_others_theirs(make: Callable[..., Record]) -> None:
    record = make(count=24, audits=("deciding",))
    whole, some = trusts(record), trusts(thinned(record, "economy:gradient", every=4))
    for example, numbers in whole.items():
        kept = {name: value for name, value in numbers.items() if name != "gradient" or example % 4 == 0}
        assert some[example] == kept
    columns = [f"economy:{name}" for name in record.summary["explainers"]]
    assert set(trusts(thinned(record, *columns, every=4))) == {example for example in whole if example % 4 == 0}


def test_trust_stands_beside_every_explanation_that_has_one(record: Record) -> None:
    told = trusts(record)
    shown = [example for _, examples in groups(record) for example in examples]
    for example in shown:
        for strip in (*example.lines, *example.rest):
            if strip.name in told[example.number]:
                assert strip.remark == trusted(told[example.number][strip.name])
    browser = browse(record)
    assert browser is not None
    for each in browser["examples"]:
        assert each["trust"] == {name: trusted(value) for name, value in told[each["number"]].items()}
    assert "trust" in markdown.render(document(record, "md"))


def test_a_record_without_that_audit_has_none(make: Callable[..., Record]) -> None:
    record = make(count=24, audits=("agreement",))
    assert trusts(record) == {}
    assert "trust" not in markdown.render(document(record, "md"))


def opened() -> Opened:
    """A model whose answer is the share of one word."""
    tokeniser = Tokeniser.fit([" ".join(WORDS)], TextOptions(min_count=1))
    network = Classifier(Architecture(encoder="none", embedding=2, projection="uniform"), len(tokeniser.vocabulary), 2)
    with torch.no_grad():
        network.embedding.weight.zero_()
        network.embedding.weight[tokeniser.vocabulary.index("alpha"), 0] = 1.0
        network.decoder.weight.copy_(torch.tensor([[0.0, 0.0], [80.0, 0.0]]))
        network.decoder.bias.copy_(torch.tensor([2.0, -2.0]))
    return Opened(network.eval(), tokeniser, ("without", "with"), {})


TEXT = "one two three alpha five six seven"


def test_one_text_is_trusted_by_itself_with_words_of_the_vocabulary() -> None:
    found = explain(opened(), TEXT, ["leave_one_out", "attention", "random"])
    trust = {name: numbers[TRUSTED] for name, numbers in found.notes.items()}
    assert found.predicted == "with"
    assert trust["leave_one_out"] > 0.9
    assert trust["leave_one_out"] > max(trust["attention"], trust["random"])
    assert TRUST in str(found)
    assert f"trust {trust['leave_one_out']:.3g}" in str(found)
    assert "trust" in notebook.explanation(found)
    assert found.json()["notes"]["leave_one_out"]["trust"] == trust["leave_one_out"]


def test_nothing_is_said_of_a_text_that_hardly_decides_or_of_another_class() -> None:
    plain = explain(opened(), "one two three", ["leave_one_out"])
    assert TRUSTED not in plain.notes["leave_one_out"]
    assert UNTRUSTED in str(plain)
    other = explain(opened(), TEXT, ["leave_one_out"], target="without")
    assert TRUSTED not in other.notes["leave_one_out"]
    assert TRUST not in str(other) and UNTRUSTED not in str(other)


def test_a_model_that_knows_no_words_has_no_trust() -> None:
    tokeniser = Tokeniser.fit([""], TextOptions(min_count=1))
    network = Classifier(Architecture(encoder="none", embedding=2), len(tokeniser.vocabulary), 2)
    found = explain(Opened(network.eval(), tokeniser, ("without", "with"), {}), TEXT, ["leave_one_out"])
    assert found.notes == {"leave_one_out": {}}
    assert UNTRUSTED in str(found)


def test_trust_is_the_same_each_time() -> None:
    first, second = (explain(opened(), TEXT, ["random"], seed=3) for _ in range(2))
    assert first == replace(second)
