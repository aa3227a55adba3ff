"""Sanity: explanations of the model change with it, others do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from assay.audits.sanity import Sanity, cascade, mislabelled
from assay.explainers.baselines import Random
from assay.explainers.gradients import Gradient, input_x_gradient
from assay.models import recipes
from assay.models.network import Classifier
from assay.models.textmodel import graded
from tests import builders
from tests.audits import small_resources

EXPLAINERS = {"gradient": Gradient(), "random": Random(3)}
STEPS = (*Classifier.cascade, "labels")


@pytest.fixture(scope="module")
def case():
    return small_resources.case(small_resources.resources(EXPLAINERS))


@pytest.fixture(scope="module")
def answer(case):
    return Sanity().prepared(small_resources.resources(EXPLAINERS))(case)


def test_the_cascade_goes_down_and_keeps_what_it_has_drawn(case):
    drawn = {part: networks_differ(case.model, other) for part, other in cascade(case.model, 0).items()}
    assert drawn == {part: set(Classifier.cascade[: depth + 1]) for depth, part in enumerate(Classifier.cascade)}


def networks_differ(one, other):
    pairs = zip(one.named_parameters(), other.parameters(), strict=True)
    return {name.partition(".")[0] for (name, mine), theirs in pairs if not torch.equal(mine, theirs)}


def test_there_is_a_number_for_each_step_and_explainer(answer, case):
    expected = {f"similarity_{step}:{name}" for step in STEPS for name in EXPLAINERS}
    assert answer.measures.keys() == expected | {f"similarity:{name}" for name in EXPLAINERS}
    assert all(values.shape == (len(case.batch),) for values in answer.measures.values())


def test_an_explainer_that_ignores_the_model_does_not_notice(answer):
    for step in STEPS:
        assert (answer.measures[f"similarity_{step}:random"] == 1).all()
    assert (answer.measures["similarity:random"] == 1).all()


def test_a_gradient_does_and_the_more_so_the_more_is_random(answer):
    means = {step: np.nanmean(answer.measures[f"similarity_{step}:gradient"]) for step in STEPS}
    assert max(means.values()) < 0.9
    assert means["embedding"] < means["decoder"] - 0.3


def test_the_numbers_are_what_scipy_says_of_both_explanations(answer, case):
    other = cascade(case.model, 0)["alignment"]
    moved = Gradient()(other, case.batch, case.predicted).abs()
    for row, tau in enumerate(answer.measures["similarity_alignment:gradient"]):
        real = case.batch.mask[row]
        expected = stats.kendalltau(case.scores["gradient"][row][real].abs(), moved[row][real]).statistic
        assert tau == pytest.approx(expected)


def test_the_one_number_is_the_mean_over_all_models(answer):
    every = np.stack([answer.measures[f"similarity_{step}:gradient"] for step in STEPS])
    np.testing.assert_allclose(answer.measures["similarity:gradient"], every.mean(0))


def test_a_text_without_an_order_is_left_out_of_the_mean():
    network = builders.model()
    batch = builders.batch()  # one text is a single word
    given = replace(small_resources.case(small_resources.resources({})), model=network, batch=batch)
    given = replace(
        given, explainers={"gradient": Gradient()}, scores={"gradient": Gradient()(network, batch, batch.labels)}
    )
    values = Sanity()(given).measures["similarity:gradient"]
    assert np.isnan(values).tolist() == [False, True, False, False]


def test_the_sign_is_not_looked_at(case):
    flipped = {"plus": input_x_gradient, "minus": lambda *given: -input_x_gradient(*given)}
    scores = {name: each(case.model, case.batch, case.predicted) for name, each in flipped.items()}
    measures = Sanity()(replace(case, explainers=flipped, scores=scores)).measures
    assert np.array_equal(measures["similarity:plus"], measures["similarity:minus"])


def test_the_cascade_needs_no_bench_and_prepared_it_says_the_same(case, answer):
    alone = Sanity()(case).measures
    assert "similarity_labels:gradient" not in alone
    for step in Classifier.cascade:
        assert np.array_equal(alone[f"similarity_{step}:gradient"], answer.measures[f"similarity_{step}:gradient"])
    other = Sanity(seed=1)(case).measures
    assert not np.array_equal(alone["similarity_decoder:gradient"], other["similarity_decoder:gradient"])


def test_without_the_training_texts_only_the_cascade_is_run(case):
    prepared = Sanity().prepared(replace(small_resources.resources(EXPLAINERS), corpus=None))
    assert prepared(case).measures.keys() == Sanity()(case).measures.keys()


def test_shuffled_labels_are_the_same_labels_and_are_learnt_by_heart():
    given = small_resources.corpus()
    shuffled = mislabelled(given, 0)
    assert [example.text for example in shuffled.train] == [example.text for example in given.train]
    assert Counter(e.label for e in shuffled.train) == Counter(e.label for e in given.train)
    same = np.mean([a.label == b.label for a, b in zip(shuffled.train, given.train, strict=True)])
    assert 0.3 < same < 0.7
    assert shuffled == mislabelled(given, 0) != mislabelled(given, 1)
    assert set(shuffled.dev) <= set(shuffled.train)
    model = small_resources.resources({}).train(shuffled, "labels")
    rows, _ = recipes.tokenise(shuffled.train, model.tokeniser, 99)
    assert graded(model.network, rows)[0] > 0.75


def test_a_second_preparation_trains_nothing(tmp_path, case, monkeypatch):
    first = Sanity().prepared(small_resources.resources(EXPLAINERS, tmp_path))(case)
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained again"))
    second = Sanity().prepared(small_resources.resources(EXPLAINERS, tmp_path))(case)
    assert all(np.array_equal(first.measures[name], second.measures[name]) for name in first.measures)


def test_what_it_cannot_be_asked_of_is_said(case):
    assert Sanity().unfit(case) is None
    assert "not the explainers" in Sanity().unfit(replace(case, explainers={}))
    assert "drawn anew" in Sanity().unfit(replace(case, model=small_resources.Foreign()))
