"""Stability: what is put to a small change, and what the numbers say of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from assay import costs
from assay.audits.rivals import heard
from assay.audits.stability import Stability
from assay.explainers.baselines import Random
from assay.explainers.gradients import Gradient, input_x_gradient
from assay.intervene.perturbation import nudged
from assay.models import recipes
from tests.audits import small_resources

EXPLAINERS = {"gradient": Gradient(), "input_x_gradient": input_x_gradient, "random": Random(3)}


@pytest.fixture(scope="module")
def case():
    return small_resources.case(small_resources.resources(EXPLAINERS))


@pytest.fixture(scope="module")
def prepared():
    return Stability().prepared(small_resources.resources(EXPLAINERS))


@pytest.fixture(scope="module")
def answer(prepared, case):
    return prepared(case)


def test_without_any_change_everything_holds_still(case):
    measures = Stability(share=0.0)(case).measures
    assert (measures["moved:model"] < 1e-6).all()  # a backward pass rounds otherwise
    for name in EXPLAINERS:
        assert (measures[f"steadiness:{name}"] == 1).all()
        assert (measures[f"change:{name}"] == 0).all()


def test_the_more_embeddings_move_the_less_holds_still(case):
    little, much = (Stability(share=share)(case).measures for share in (0.01, 1.0))
    assert little["moved:model"].mean() < 0.02 < much["moved:model"].mean()
    assert 0.9 < little["steadiness:gradient"].mean() < 1
    assert much["steadiness:gradient"].mean() < 0.8
    assert 0 < little["change:gradient"].mean() < 0.1 < much["change:gradient"].mean()


@pytest.mark.parametrize(("names", "reads"), [(["input_x_gradient"], 1), (["gradient"], 2), (["random"], 1), ([], 1)])
def test_an_answer_that_an_explainer_asked_for_is_not_asked_for_again(case, names, reads):
    alone = replace(case, explainers={name: EXPLAINERS[name] for name in names})
    assert len(alone.predicted) == len(case.batch)  # read before it is counted
    other = nudged(case.model, 0.1, 0)
    with costs.measured() as cost:
        found = heard(other, alone.batch, alone.predicted, alone.explainers)
    assert cost.forward == reads * len(case.batch)  # `gradient` reads under an edit, which is another answer
    with torch.no_grad():
        expected = other(other.embed(case.batch), case.batch).probabilities
    np.testing.assert_allclose(found.probabilities, expected.numpy(), atol=1e-6)
    assert set(found.scores) == set(names) and not other._forward_hooks


def test_scores_that_ignore_the_model_never_move(answer):
    assert (answer.measures["steadiness:random"] == 1).all()
    assert (answer.measures["change:random"] == 0).all()
    assert set(answer.measures["seeds:random"][np.isfinite(answer.measures["seeds:random"])]) == {1.0}


def test_the_numbers_are_means_over_the_draws(answer, case):
    model, batch = case.model, case.batch
    before = case.scores["input_x_gradient"].double()
    taus, changes, moves = [], [], []
    for other in (nudged(model, 0.01, seed) for seed in (0, 1)):
        after = input_x_gradient(other, batch, case.predicted).double()
        taus.append([_tau(before[row], after[row], batch.mask[row]) for row in range(len(batch))])
        changes.append((((after - before) ** 2).sum(-1) / (before**2).sum(-1)) ** 0.5)
        answers = other(other.embed(batch), batch).probabilities.detach()
        moves.append((answers - case.probabilities).abs().sum(-1) / 2)
    assert answer.measures["steadiness:input_x_gradient"] == pytest.approx(np.mean(taus, axis=0))
    assert answer.measures["change:input_x_gradient"] == pytest.approx(torch.stack(changes).mean(0).numpy())
    assert answer.measures["moved:model"] == pytest.approx(torch.stack(moves).mean(0).numpy(), abs=1e-6)


def _tau(one, other, real):
    return stats.kendalltau(one[real].abs(), other[real].abs()).statistic


def test_models_of_other_seeds_are_compared_where_they_agree(case):
    """A sibling that always says the first class is compared on the texts of that class alone."""
    stubborn = nudged(case.model, 0.1, 0)
    with torch.no_grad():
        stubborn.decoder.bias[0] += 1e3
    measures = replace(Stability(), siblings=[stubborn])(case).measures
    same = case.predicted.numpy() == 0
    assert 0 < same.sum() < len(same)
    assert np.array_equal(np.isfinite(measures["seeds:random"]), same)
    both = replace(Stability(), siblings=[stubborn, case.model])(case).measures["seeds:random"]
    assert (both == 1).all()


def test_seeds_are_those_after_the_models_own(prepared, answer):
    expected = [recipes.train(small_resources.corpus(), _with_seed(seed)).network for seed in (1, 2)]
    for sibling, other in zip(prepared.siblings, expected, strict=True):
        assert torch.equal(sibling.decoder.weight, other.decoder.weight)
    assert np.nanmean(answer.measures["seeds:gradient"]) < np.nanmean(answer.measures["steadiness:gradient"])


def _with_seed(seed):
    return replace(small_resources.RECIPE, training=replace(small_resources.RECIPE.training, seed=seed))


def test_no_other_model_is_trained_where_none_is_wanted_or_none_can_be(case, monkeypatch):
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained"))
    for prepared in (
        Stability(seeds=0).prepared(small_resources.resources(EXPLAINERS)),
        Stability().prepared(replace(small_resources.resources(EXPLAINERS), corpus=None)),
    ):
        measures = prepared(case).measures
        assert measures.keys() == Stability()(case).measures.keys()
        assert not any(name.startswith("seeds:") for name in measures)


def test_a_second_preparation_trains_nothing(tmp_path, case, answer, monkeypatch):
    Stability().prepared(small_resources.resources(EXPLAINERS, tmp_path))
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained again"))
    second = Stability().prepared(small_resources.resources(EXPLAINERS, tmp_path))(case)
    for name, values in answer.measures.items():
        assert np.array_equal(values, second.measures[name], equal_nan=True)


def test_the_seed_decides_the_draws(case):
    one, again, other = (Stability(seed=seed)(case).measures["change:gradient"] for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_scores_of_zero_have_no_relative_change(case):
    nothing = {"nothing": lambda model, batch, target: torch.zeros(batch.ids.shape)}
    scores = {"nothing": torch.zeros(case.batch.ids.shape)}
    assert np.isnan(Stability()(replace(case, explainers=nothing, scores=scores)).measures["change:nothing"]).all()


def test_what_it_cannot_be_asked_of_is_said(case):
    assert Stability().unfit(case) is None
    assert "not the explainers" in Stability().unfit(replace(case, explainers={}))
    assert "drawn anew" in Stability().unfit(replace(case, model=small_resources.Foreign()))
