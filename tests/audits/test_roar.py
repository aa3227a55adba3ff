"""ROAR: who knows the deciding words takes the task away, and chance does not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from assay.audits import roar as retraining
from assay.audits.roar import Retraining, Roar, Splits, ranking, without
from assay.data.batches import tokenise
from assay.data.planted import KEYWORDS
from assay.data.text import SPECIAL, UNKNOWN
from assay.explainers.baselines import Random
from assay.explainers.gradients import Gradient, input_x_gradient
from assay.models import fit as training
from assay.models import recipes
from assay.models import textmodel as predictions
from assay.models.store import Checkpoint
from assay.records import CHANCE
from tests.audits import small_resources

UNKNOWN_ID = SPECIAL.index(UNKNOWN)
SMALL = Roar(shares=(0.1, 0.3), train_limit=40)
ONCE = replace(SMALL, shares=(0.3,))


@dataclass(frozen=True)
class Oracle:
    """1 on the deciding words."""

    keywords: tuple[int, ...]

    def __call__(self, model, batch, target):
        return torch.isin(batch.ids, torch.tensor(self.keywords)).float()


def oracle() -> Oracle:
    vocabulary = small_resources.model().tokeniser.vocabulary
    return Oracle(tuple(vocabulary.index(word) for words in KEYWORDS for word in words if word in vocabulary))


@pytest.fixture(scope="module")
def resources():
    return small_resources.resources({"oracle": oracle(), "random": Random(0)})


@pytest.fixture(scope="module")
def answer(resources):
    return Roar(shares=(0.1, 0.3)).prepared(resources)(small_resources.case(resources))


def test_without_the_deciding_words_the_task_cannot_be_learnt(answer):
    means = {name: values.mean() for name, values in answer.measures.items()}
    assert means["accuracy@0:chance"] > 0.75
    for share in ("0.1", "0.3"):
        assert abs(means[f"accuracy@{share}:oracle"] - 0.5) < 0.15
        assert means[f"accuracy@{share}:chance"] > means[f"accuracy@{share}:oracle"] + 0.1
    assert means["fall_gain:oracle"] > 0.15
    assert abs(means["fall_gain:random"]) < 0.15


def test_chance_is_another_draw_than_that_of_the_explainer(answer):
    assert (answer.measures["fall_gain:random"] != 0).any()


def test_there_is_an_answer_for_each_share_and_ranking(answer):
    expected = {f"accuracy@{share}:{name}" for share in ("0.1", "0.3") for name in ("oracle", "random", CHANCE)}
    assert answer.measures.keys() == expected | {"accuracy@0:chance", "fall_gain:oracle", "fall_gain:random"}


def test_the_gain_is_the_mean_difference_from_chance_on_the_same_text(answer):
    measures = answer.measures
    falls = [measures[f"accuracy@{share}:chance"] - measures[f"accuracy@{share}:oracle"] for share in ("0.1", "0.3")]
    assert np.array_equal(measures["fall_gain:oracle"], (falls[0] + falls[1]) / 2)
    assert set(np.concatenate([measures["accuracy@0.1:oracle"], measures["accuracy@0:chance"]])) == {0.0, 1.0}


def test_the_answers_are_those_of_a_model_trained_on_what_is_left(resources):
    """One training, done by hand from strings of ids."""
    tokeniser = resources.model.tokeniser

    def left(rows):
        return [replace(row, ids=torch.where(oracle()(None, row, None) > 0, UNKNOWN_ID, row.ids)) for row in rows]

    train, dev = (
        tokenise(split, tokeniser, 99)[0] for split in (small_resources.corpus().train, small_resources.corpus().dev)
    )
    network = recipes.initialise(small_resources.RECIPE, tokeniser, 2)
    training.fit(network, left(train), left(dev), small_resources.RECIPE.training)
    expected = predictions.predict(network, left(resources.rows)).argmax(-1)
    assert max(len(row.ids) for row in (*train, *dev, *resources.rows)) < 50  # so that a hundredth is one word
    work = Retraining(resources, Splits.of(resources, 1000, 0), oracle(), Random(1), lambda part: None)
    assert work.answers(0.01) == expected.tolist()


def test_a_share_of_the_words_becomes_unknown_in_order():
    row = small_resources.resources({}).rows[0]
    order = torch.randperm(len(row.ids))
    for share in (0.1, 0.3, 0.5, 1.0):
        left = without(row, order, share)
        count = round(share * len(row.ids))
        assert (left.ids == UNKNOWN_ID).sum() == count
        assert (left.ids[order[:count]] == UNKNOWN_ID).all()
        assert torch.equal(left.ids[order[count:]], row.ids[order[count:]])
    assert (without(row, order, 0.001).ids == UNKNOWN_ID).sum() == 1
    assert torch.equal(without(row, order, 0.0).ids, row.ids)


def test_the_highest_score_goes_first_and_chance_orders_equals():
    scores = torch.tensor([[0.5, -2.0, 0.5, 3.0, 0.5, -torch.inf]])
    drawn = torch.tensor([[0.2, 0.9, 0.8, 0.1, 0.5, 0.0]])
    assert ranking(scores, drawn).tolist() == [[3, 2, 4, 0, 1, 5]]


def test_scores_that_are_all_equal_are_no_better_and_no_worse_than_chance():
    resources = small_resources.resources({"flat": lambda model, batch, target: batch.mask.float()})
    measures = ONCE.prepared(resources)(small_resources.case(resources)).measures
    assert (measures["fall_gain:flat"] == 0).all()


def test_the_sign_is_not_looked_at(resources):
    splits, given = Splits.of(resources, 20, 0), (input_x_gradient, lambda *a: -input_x_gradient(*a))
    one, other = (Retraining(resources, splits, each, Random(1), lambda part: None)._orders for each in given)
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_words_are_removed_from_all_three_splits(resources, monkeypatch):
    seen = []
    monkeypatch.setattr(retraining, "refit", lambda model, recipe, *rows: seen.extend(rows[:2]) or model)
    monkeypatch.setattr(retraining, "predict", lambda network, rows: seen.append(rows) or np.zeros((len(rows), 2)))
    splits = Splits.of(resources, 30, 0)
    Retraining(resources, splits, oracle(), Random(1), lambda part: None).answers(0.01)
    for left, whole in zip(seen, (splits.train, splits.dev, splits.audited), strict=True):
        assert [row.index for row in left] == [row.index for row in whole]
        assert not any(torch.isin(row.ids, torch.tensor(oracle().keywords)).any() for row in left)
        assert all((row.ids == UNKNOWN_ID).any() for row in left)


def test_texts_are_explained_for_the_class_that_the_model_predicts():
    seen = []

    def spy(model, batch, target):
        seen.append(torch.equal(target, model(model.embed(batch), batch).probabilities.argmax(-1)))
        return Gradient()(model, batch, target)

    ONCE.prepared(small_resources.resources({"spy": spy}))
    assert seen
    assert all(seen)


def test_the_limit_draws_by_the_seed(resources):
    one, again, other = (Splits.of(resources, 60, seed) for seed in (0, 0, 1))
    texts = [[tuple(row.ids.tolist()) for row in splits.train] for splits in (one, again, other)]
    assert texts[0] == texts[1] != texts[2]
    assert (len(one.train), len(one.dev), len(one.audited)) == (60, 40, 40)
    every, _ = tokenise(small_resources.corpus().train, resources.model.tokeniser, 99)
    assert set(texts[0]) <= {tuple(row.ids.tolist()) for row in every}


def test_a_second_preparation_neither_explains_nor_trains(tmp_path, monkeypatch):
    resources = small_resources.resources({"gradient": Gradient()}, tmp_path)
    first = SMALL.prepared(resources)(small_resources.case(resources))
    monkeypatch.setattr(retraining, "refit", lambda *_: pytest.fail("trained again"))
    monkeypatch.setattr(Retraining, "_ranked", lambda *_: pytest.fail("explained again"))
    second = SMALL.prepared(resources)(small_resources.case(resources))
    assert all(np.array_equal(first.measures[name], second.measures[name]) for name in first.measures)
    names = {path.stem for path in (tmp_path / "retrained").rglob("*.json")}
    assert names == {"roar-chance-0", "roar-chance-0.1", "roar-chance-0.3", "roar-gradient-0.1", "roar-gradient-0.3"}


@pytest.mark.parametrize("epochs", [1, 5, 8])
def test_an_interrupted_preparation_goes_on_to_the_same_numbers(tmp_path, monkeypatch, epochs):
    original, saved = Checkpoint.save, []

    def interrupted(self, *arguments):
        original(self, *arguments)
        saved.append(1)
        if len(saved) == epochs:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", lambda *a: original(*a) or saved.append(1))
    whole = ONCE.prepared(small_resources.resources({"gradient": Gradient()}, tmp_path / "whole"))
    total = len(saved)
    saved.clear()
    monkeypatch.setattr(Checkpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ONCE.prepared(small_resources.resources({"gradient": Gradient()}, tmp_path))
    resumed = ONCE.prepared(small_resources.resources({"gradient": Gradient()}, tmp_path))
    assert all(np.array_equal(answers, resumed.answers[key]) for key, answers in whole.answers.items())
    assert len(saved) == total > epochs  # no epoch was trained twice


def test_other_options_do_not_take_over_what_is_there(tmp_path):
    resources, other = small_resources.resources({}, tmp_path), replace(ONCE, seed=1)
    ONCE.prepared(resources)
    fewer = replace(resources, rows=resources.rows[1:])
    for audit, about in ((other, resources), (ONCE, fewer)):
        found, anew = audit.prepared(about).answers, audit.prepared(replace(about, folder=None)).answers
        assert all(np.array_equal(found[key], answers) for key, answers in anew.items())


def test_what_it_cannot_be_asked_of_is_said(resources):
    case = small_resources.case(resources)
    assert "not at hand" in Roar().unfit(case)
    unknown = replace(resources, model=replace(resources.model, history=resources.model.history | {"recipe": None}))
    assert "not known how" in Roar().prepared(unknown).unfit(case)
    ready = ONCE.prepared(small_resources.resources({}))
    assert ready.unfit(case) is None
    other = replace(case.batch, ids=torch.where(case.batch.mask, 7, 0))
    assert "other texts" in ready.unfit(replace(case, batch=other))
    assert "not the explainers" in ready.unfit(replace(case, explainers={}))
    assert "trained anew" in ready.unfit(replace(case, model=small_resources.Foreign()))
