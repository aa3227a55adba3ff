"""The acceptance test of every instrument: a corpus whose deciding words are known, and a model that has learnt it."""

from __future__ import annotations

import numpy as np
import pytest

from assay.data.planted import PLANTED
from assay.data.text import TextOptions
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.run.auditing import audited
from assay.run.examination import AuditPlan


@pytest.fixture(scope="module")
def record():
    corpus = PLANTED["planted:keyword"](0)
    small = Architecture(embedding=32, hidden=16, alignment_size=16)
    model = train(corpus, Recipe(small, TextOptions(), Training(learning_rate=5e-3)))
    return audited(model, corpus.test, AuditPlan())


def found_first(record, explainer):
    """The share of texts in which the explainer's highest score is on a deciding word."""
    rows = record.examples.to_pylist()
    return np.mean([row["truth"][int(np.argmax(np.abs(row[f"score:{explainer}"])))] for row in rows])


def test_the_model_has_learnt_the_task(record):
    assert record.summary["model"]["test"]["accuracy"] > 0.98


def test_leave_one_out_finds_the_deciding_word_and_random_does_not(record):
    assert found_first(record, "leave_one_out") >= 0.95
    assert found_first(record, "random") < 0.25


def test_the_audit_says_the_same(record):
    share = record.finding("truth", "leave_one_out", "precision")
    assert share.mean == pytest.approx(found_first(record, "leave_one_out"), abs=0.01)
    chance = record.finding("truth", "random", "precision")
    assert chance.high < 0.3 < 0.95 <= share.low + 0.05
