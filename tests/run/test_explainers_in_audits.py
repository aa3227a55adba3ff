"""What a record says of the explainers: their costs, what they say of themselves, which the model cannot serve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from assay.data.planted import PLANTED
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.models.config import Architecture
from assay.models.recipes import Recipe, initialise
from assay.models.store import Trained
from assay.run.auditing import audited
from assay.run.examination import AuditPlan
from assay.run.explaining import explain
from assay.types import Attribution


@dataclass(frozen=True)
class Lengths:
    """One for each token."""

    size: float = 1.0

    def attribute(self, model, batch, target):
        model(model.embed(batch), batch)
        scores = batch.mask.float() * self.size
        return Attribution(scores, {"words": batch.lengths.float()}, scores / 2)

    def __call__(self, model, batch, target):
        return self.attribute(model, batch, target).scores


@dataclass(frozen=True)
class Picky:
    """No model will do."""

    def unfit(self, model):
        return "no model is good enough"

    def __call__(self, model, batch, target):
        raise AssertionError


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setitem(EXPLAINERS, "lengths", Lengths())
    monkeypatch.setitem(EXPLAINERS, "picky", Picky())


@pytest.fixture(scope="module")
def corpus():
    return PLANTED["planted:keyword"](0)


@pytest.fixture(scope="module")
def model(corpus):
    options = TextOptions(min_count=1)
    tokeniser = Tokeniser.fit((example.text for example in corpus.train), options)
    recipe = Recipe(Architecture(embedding=8, hidden=8, alignment_size=4), options)
    return Trained(initialise(recipe, tokeniser, 2).eval(), tokeniser, corpus.classes, {})


@pytest.fixture
def record(model, corpus, known):
    explainers = ("lengths", "lengths(size=3)", "picky", "gradient", "attention")
    return audited(model, corpus.test[:20], AuditPlan(explainers=explainers, audits=("agreement",)))


def test_passes_are_those_of_one_text(record):
    cost = record.summary["explainer_cost"]
    assert cost["gradient"] == {"forward": 1.0, "backward": 1.0}
    assert cost["attention"] == {"forward": 1.0, "backward": 0.0}
    assert cost["lengths"] == {"forward": 1.0, "backward": 0.0}


def test_what_an_explainer_says_of_itself_is_kept(record):
    lengths = [len(row["starts"]) for row in record.examples.to_pylist()]
    assert record.finding("explainers", "lengths", "words").mean == pytest.approx(np.mean(lengths))
    assert record.audit_rows("explainers")["words:lengths"].to_pylist() == lengths
    assert all(row["error:lengths(size=3)"] == [1.5] * len(row["starts"]) for row in record.examples.to_pylist())


def test_an_explainer_with_options_stands_beside_the_one_without(record):
    assert all(set(row["score:lengths(size=3)"]) == {3.0} for row in record.examples.to_pylist())
    assert all(set(row["score:lengths"]) == {1.0} for row in record.examples.to_pylist())


def test_the_change_that_counts_as_none_is_the_adversarys_alone():
    plan = AuditPlan(explainers=("lrp", "random", "random(seed=9)"), audits=("adversary",), epsilon=0.3, seed=4)
    assert plan.chosen_explainers()["lrp"] == EXPLAINERS["lrp"]
    assert (plan.chosen_explainers()["random"].seed, plan.chosen_explainers()["random(seed=9)"].seed) == (4, 9)
    assert plan.chosen_audits()["adversary"].epsilon == 0.3


def test_what_the_model_cannot_serve_is_left_out_with_the_reason(record):
    assert record.summary["left_out"] == {"picky": "no model is good enough"}
    assert "picky" not in record.summary["explainers"]
    assert "score:picky" not in record.examples.column_names


def test_without_any_explainer_left_the_audit_says_why(model, corpus, known):
    with pytest.raises(AssayError, match="no model is good enough"):
        audited(model, corpus.test[:3], AuditPlan(explainers=("picky",)))


def test_a_text_is_explained_for_the_class_that_is_asked_for(model, corpus, known):
    text = corpus.test[0].text
    for place, name in enumerate(model.classes):
        shown = explain(model, text, ["input_x_gradient", "lengths", "picky"], target=name)
        rows = torch.tensor([place])
        batch = _batch(model, text)
        expected = EXPLAINERS["input_x_gradient"](model.network, batch, rows)[0].tolist()
        assert shown.scores["input_x_gradient"] == pytest.approx(expected)
        assert shown.target == name
        assert ("The scores are for" in str(shown)) == (name != shown.predicted)
        assert "picky is left out: no model is good enough." in str(shown)
        assert f"lengths: words {len(shown.words)}" in str(shown)
    with pytest.raises(AssayError, match="bathroom"):
        explain(model, text, ["attention"], target="bathroom")


def _batch(model, text):
    from assay.data.batches import collate, tokenise
    from assay.data.examples import Example

    return collate(tokenise([Example(text, 0)], model.tokeniser, 1000)[0])
