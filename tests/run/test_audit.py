"""Whole audits: complete, deterministic, resumable, and careful with what is there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from assay.data.examples import Example
from assay.data.planted import PLANTED
from assay.data.text import TextOptions
from assay.errors import AssayError
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.records import Record
from assay.run import auditing
from assay.run import examination as portions
from assay.run.auditing import audited
from assay.run.examination import AuditPlan

PLAN = AuditPlan(limit=24)
SHORT = AuditPlan(("attention", "gradient", "random"), ("agreement", "adversary", "truth"), limit=24)


@pytest.fixture(scope="module")
def corpus():
    whole = PLANTED["planted:keyword"](0)
    return replace(whole, train=whole.train[:200], dev=whole.dev[:50])


@pytest.fixture(scope="module")
def model(corpus):
    small = Architecture(embedding=16, hidden=8, alignment_size=8)
    return train(corpus, Recipe(small, TextOptions(min_count=1), Training(epochs=6, learning_rate=0.02)))


@pytest.fixture(autouse=True)
def several_parts(monkeypatch):
    monkeypatch.setattr(portions, "TOKENS", 150)


def in_parts(model, corpus, plan):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(portions, "TOKENS", 150)
        return audited(model, corpus.test, plan)


@pytest.fixture(scope="module")
def record(model, corpus):
    """What the plan gives, in several parts."""
    return in_parts(model, corpus, PLAN)


@pytest.fixture(scope="module")
def short(model, corpus):
    """What the short plan gives, in several parts."""
    return in_parts(model, corpus, SHORT)


def same(one: Record, other: Record) -> bool:
    """Whether both hold the same; as text, since a number that is none does not equal itself."""
    tables = ((one.instances, other.instances), (one.examples, other.examples))
    return all(str(first.to_pydict()) == str(second.to_pydict()) for first, second in tables)


def test_the_record_holds_a_row_for_each_example_and_audit(model, corpus, record):
    rows = record.instances.select(["example", "audit"]).to_pylist()
    answered = {name for name, about in record.summary["audits"].items() if about["applies"]} | {"explainers"}
    assert {row["audit"] for row in rows} == answered
    assert len({(row["example"], row["audit"]) for row in rows}) == len(rows) == 24 * len(answered)
    assert len(record.examples) == record.summary["corpus"]["audited"] == 24
    for row in record.examples.to_pylist():
        assert row["text"] == corpus.test[row["example"]].text
        words = [row["text"][start:end] for start, end in zip(row["starts"], row["ends"], strict=True)]
        assert len(words) == len(row["score:gradient"]) == len(row["adversary"]) == len(row["truth"])
        start, end = corpus.test[row["example"]].evidence[0]
        assert [word for word, deciding in zip(words, row["truth"], strict=True) if deciding] == [
            row["text"][start:end]
        ]


def test_findings_are_the_means_of_the_rows(model, corpus, record):
    rows = record.audit_rows("agreement")
    tau = np.array(rows["tau:attention~gradient"].to_pylist(), dtype=float)
    found = record.finding("agreement", "attention~gradient", "tau")
    assert found.mean == pytest.approx(np.nanmean(tau))
    assert found.low < found.mean < found.high
    p = np.array(rows["p:attention~gradient"].to_pylist(), dtype=float)
    assert found.significant == pytest.approx((p[np.isfinite(p)] <= 0.05).mean())
    predicted = np.array(rows["predicted"].to_pylist())
    of_class = record.finding("agreement", "attention~gradient", "tau", model.classes[0])
    assert of_class.mean == pytest.approx(np.nanmean(tau[predicted == 0]))


def test_tau_is_what_scipy_says_of_the_stored_scores(model, corpus, record):
    taus = record.audit_rows("agreement")["tau:attention~leave_one_out"].to_pylist()
    for tau, row in zip(taus, record.examples.to_pylist(), strict=True):
        expected = stats.kendalltau(row["score:attention"], row["score:leave_one_out"]).statistic
        assert tau == pytest.approx(expected)


def test_the_same_plan_gives_the_same_record(model, corpus, record, short):
    assert same(record, audited(model, corpus.test, PLAN))
    assert not same(short, audited(model, corpus.test, replace(SHORT, seed=1)))


@pytest.mark.parametrize(("finished", "plan"), [(0, SHORT), (1, SHORT), (3, PLAN)])
def test_an_interrupted_audit_ends_in_the_same_record(
    model, corpus, record, short, tmp_path, monkeypatch, finished, plan
):
    expected = record if plan is PLAN else short
    original, calls = auditing.Examination.__call__, []

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) > finished:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(auditing.Examination, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        audited(model, corpus.test, plan, tmp_path)
    calls.clear()
    monkeypatch.setattr(auditing.Examination, "__call__", lambda *a: calls.append(1) or original(*a))
    resumed = audited(model, corpus.test, plan, tmp_path)
    assert same(expected, resumed)
    assert same(expected, Record.read(tmp_path))
    total = len(calls) + finished
    assert total > 3
    if finished == 1:
        calls.clear()
        audited(model, corpus.test, plan)
        assert len(calls) == total


def test_a_finished_audit_is_not_run_again(model, corpus, tmp_path, monkeypatch):
    first = audited(model, corpus.test, SHORT, tmp_path)
    monkeypatch.setattr(auditing.Examination, "__call__", lambda *_: pytest.fail("ran again"))
    assert same(first, audited(model, corpus.test, SHORT, tmp_path))


def test_a_folder_with_another_audit_is_left_alone(model, corpus, tmp_path):
    audited(model, corpus.test, SHORT, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(AssayError, match="other options, model or data"):
        audited(model, corpus.test, replace(SHORT, epsilon=0.05), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_limit_draws_by_the_seed_and_not_from_the_top(corpus):
    one, other = (AuditPlan(limit=20, seed=seed).sample(corpus.test) for seed in (0, 1))
    assert [place for place, _ in one] != [place for place, _ in other]
    assert max(place for place, _ in one) > 100
    assert all(corpus.test[place] is example for place, example in one)


def test_a_class_that_no_test_text_has_is_no_obstacle(model, corpus):
    one_class = [example for example in corpus.test if example.label == 0][:12]
    record = audited(model, one_class, AuditPlan())
    assert record.summary["model"]["test"]["auc"] is None
    assert record.summary["model"]["test"]["accuracy"] >= 0


def test_short_and_long_texts_are_audited_or_counted(model):
    texts = ["copper", "", "word " * 100_000, "the copper kettle was in the kitchen"]
    record = audited(model, [Example(text, 0) for text in texts], AuditPlan())
    assert record.summary["corpus"]["skipped"] == {"no words": 1, "more than 1,000 words": 1}
    assert record.examples["example"].to_pylist() == [0, 3]
    found = record.finding("agreement", "attention~gradient", "tau")
    assert (found.n, found.undefined) == (1, 1)
    assert record.summary["audits"]["truth"]["applies"] is False
    assert "does not plant" in record.summary["audits"]["truth"]["why"]


def test_nothing_to_audit_is_said(model):
    with pytest.raises(AssayError, match="None of the texts"):
        audited(model, [Example(" ", 0)], AuditPlan())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"explainers": ("atention",)}, "did you mean 'attention'"),
        ({"audits": ("permute",)}, "did you mean 'permutation'"),
        ({"explainers": ("attention", "attention")}, "once"),
        ({"limit": 0}, "at least 1"),
        ({"epsilon": 1.5}, "from 0 to below 1"),
    ],
)
def test_a_wrong_plan_is_refused_in_one_sentence(options, sentence):
    with pytest.raises(AssayError, match=sentence):
        AuditPlan(**options)
