"""Sparsity: which models are made, and what is said of each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from assay.audits.cases import Case
from assay.audits.dispersion import Dispersion
from assay.audits.sparsity import Sparsity
from assay.errors import AssayError
from assay.models import recipes
from assay.models.recipes import train
from tests import builders
from tests.audits import small_resources

FEW = Sparsity(strengths=(-2.0, 0.0, 0.5))
NAMES = ("softmax", "sparsegen(-2)", "sparsemax", "sparsegen(0.5)")


@pytest.fixture(scope="module")
def prepared():
    return FEW.prepared(small_resources.resources({}))


@pytest.fixture(scope="module")
def case():
    return small_resources.case(small_resources.resources({}))


@pytest.fixture(scope="module")
def answer(prepared, case):
    return prepared(case)


def test_there_is_one_model_for_each_projection_and_the_audited_one_serves(prepared):
    assert tuple(prepared.rivals) == NAMES
    assert prepared.rivals["softmax"] is small_resources.model().network
    assert [each.architecture.projection for each in prepared.rivals.values()] == list(NAMES)


def test_the_models_are_made_as_the_audited_one_but_for_the_projection(prepared):
    architecture = replace(small_resources.RECIPE.architecture, projection="sparsegen(0.5)")
    alone = train(small_resources.corpus(), replace(small_resources.RECIPE, architecture=architecture)).network
    for one, other in zip(alone.parameters(), prepared.rivals["sparsegen(0.5)"].parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_all_numbers_are_those_of_each_model_for_its_own_prediction(prepared, case, answer):
    for name, model in prepared.rivals.items():
        own = Case(model, case.batch, {})
        spread = Dispersion()(own).measures
        output = model(model.embed(case.batch), case.batch)
        support = [
            (weights[real] > 0).double().mean()
            for weights, real in zip(output.attention[-1], case.batch.mask, strict=True)
        ]
        expected = {
            "right": (output.logits.argmax(-1) == case.batch.labels).double().numpy(),
            "support": torch.stack(support).numpy(),
            "entropy_attention": spread["entropy:attention"],
            "entropy_gradient": spread["entropy:gradient"],
            "entropy_loo": spread["entropy:leave_one_out"],
            "entropy_states": spread["entropy:states"],
            "tau_input": spread["tau:attention~gradient"],
            "tau_state": spread["tau:attention~state_gradient"],
        }
        for measure, values in expected.items():
            np.testing.assert_allclose(answer.measures[f"{measure}:{name}"], values, atol=1e-6, err_msg=measure)


def test_softmax_gives_every_word_some_weight_and_sparser_ones_do_not(answer):
    support = [answer.measures[f"support:{name}"].mean() for name in NAMES]
    assert support[0] == 1
    assert min(support[2:]) < 1


def test_trends_are_rank_correlations_with_the_strength(answer):
    for trend, measure in {
        "trend_entropy": "entropy_gradient",
        "trend_input": "tau_input",
        "trend_state": "tau_state",
    }.items():
        values = np.stack([answer.measures[f"{measure}:{name}"] for name in NAMES[1:]], axis=1)
        for row, found in zip(values, answer.measures[trend], strict=True):
            there = np.isfinite(row)
            expected = (
                stats.kendalltau(np.array([-2, 0, 0.5])[there], row[there]).statistic if there.sum() > 1 else np.nan
            )
            assert found == pytest.approx(expected, nan_ok=True)


def test_only_what_was_named_is_measured(answer):
    entropies = [f"entropy_{name}" for name in ("attention", "gradient", "loo", "states")]
    measures = ["right", "support", *entropies, "tau_input", "tau_state"]
    expected = {f"{measure}:{name}" for measure in measures for name in NAMES}
    assert answer.measures.keys() == expected | {"trend_entropy", "trend_input", "trend_state"}


def test_a_second_preparation_trains_nothing(tmp_path, monkeypatch):
    few = Sparsity(strengths=(0.0,))
    few.prepared(small_resources.resources({}, tmp_path))
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained again"))
    assert tuple(few.prepared(small_resources.resources({}, tmp_path)).rivals) == ("softmax", "sparsemax")


def test_alphas_name_entmax_with_softmax_and_sparsemax_at_its_ends():
    assert Sparsity(alphas=(1.0, 1.5, 2.0)).graded == {"softmax": 1.0, "entmax(1.5)": 1.5, "sparsemax": 2.0}


@pytest.mark.parametrize("inner", [False, True])
def test_the_layers_of_a_transformer_are_projected_where_that_is_wanted(inner):
    architecture = builders.model(encoder="transformer").architecture
    projected = Sparsity(inner=inner).projections(architecture)["sparsemax"]
    assert (projected.projection, projected.inner) == ("sparsemax", "sparsemax" if inner else "softmax")


def test_it_says_what_it_lacks(case):
    assert "not at hand" in FEW.unfit(case)
    assert "not at hand" in FEW.prepared(replace(small_resources.resources({}), corpus=None)).unfit(case)
    assert "transformer" in replace(FEW, inner=True).prepared(small_resources.resources({})).unfit(case)
    assert "trained anew" in FEW.unfit(replace(case, model=small_resources.Foreign()))


def test_what_was_prepared_is_fit(prepared, case):
    assert prepared.unfit(case) is None


@pytest.mark.parametrize(
    "options",
    [
        {"strengths": ()},
        {"strengths": (0.0, 1.0)},
        {"strengths": (math.nan,)},
        {"strengths": (-math.inf, 0.0)},
        {"strengths": (0.5, 0.5)},
        {"strengths": (0.0, -0.0)},
        {"alphas": (0.5,)},
        {"alphas": (math.nan,)},
        {"alphas": (1.5, math.inf)},
    ],
)
def test_strengths_that_cannot_be_are_refused_with_one_sentence(options):
    with pytest.raises(AssayError) as refused:
        Sparsity(**options)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
