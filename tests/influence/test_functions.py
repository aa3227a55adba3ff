"""Influence functions over all parameters: what must hold of any model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence.functions import InfluenceFunctions
from assay.influence.setting import Influence, Introspective, Method, Setting
from assay.influence.similarity import query_gradients, train_products
from assay.influence.solvers import Arnoldi, Lissa
from assay.models import budget
from tests import builders
from tests.influence import small

EXPLICIT = InfluenceFunctions("explicit", damping=0.1)


def about_losses(setting: Setting) -> Setting:
    """Asks about the losses of the training rows themselves."""
    labels = np.array([row.label for row in setting.train])
    return replace(setting, queries=setting.train, classes=labels, target="loss", weights=np.ones(len(labels)))


@pytest.mark.parametrize(("encoder", "solver"), [("lstm", "explicit"), ("average", "cg"), ("average", "arnoldi")])
def test_scores_are_those_of_the_inverse_over_all_parameters(encoder: str, solver: str) -> None:
    setting = small.setting(builders.model(encoder=encoder, hidden=4), count=8)
    method = InfluenceFunctions(solver, damping=0.1)
    assert isinstance(method, Method) and isinstance(method, Introspective) and method.unfit(setting) is None
    matrix = small.fisher(setting)
    matrix = matrix + 0.1 * torch.eye(len(matrix), dtype=torch.float64)
    expected = (small.asked(setting) @ torch.linalg.solve(matrix, small.learnt(setting).T)).numpy()
    expected *= setting.weights / 8
    found = method(setting)
    tolerance = 1e-3 if solver == "cg" else 1e-8
    assert np.abs(found.scores - expected).max() <= tolerance * np.abs(expected).max()
    assert found.covered == 1.0 and found.errors is None and found.notes["damping"] == pytest.approx(0.1)


@pytest.mark.parametrize("classes", [2, 4])
def test_leverage_leaves_the_example_out_of_the_curvature(classes: int) -> None:
    setting = small.setting(builders.model(encoder="average", classes=classes), count=8)
    rows = small.directions(setting).view(8, classes, -1)
    matrix = small.fisher(setting) + 0.1 * torch.eye(rows.shape[-1], dtype=torch.float64)
    asked, gradients = small.asked(setting), small.learnt(setting)
    expected = np.zeros((len(asked), 8))
    own = np.zeros(8)
    for index, gradient in enumerate(gradients):
        change = torch.linalg.solve(matrix - rows[index].T @ rows[index], gradient) * setting.weights[index] / 8
        expected[:, index], own[index] = (asked @ change).numpy(), float(gradient @ change)
    method = replace(EXPLICIT, leverage=True)
    np.testing.assert_allclose(method(setting).scores, expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(method.own(setting), own, rtol=1e-6, atol=1e-8)


def test_losses_influence_each_other_alike_and_themselves_upward() -> None:
    setting = about_losses(small.setting(builders.model(encoder="lstm", hidden=2), count=8))
    scores = EXPLICIT(setting).scores
    np.testing.assert_allclose(scores, scores.T, rtol=1e-9, atol=1e-13)
    assert (scores.diagonal() >= 0).all()
    np.testing.assert_allclose(EXPLICIT.own(setting), scores.diagonal(), rtol=1e-9, atol=1e-13)


def test_with_much_damping_only_the_product_of_gradients_is_left() -> None:
    setting = small.setting(builders.model(encoder="transformer"), count=5)
    plain = train_products(setting, query_gradients(setting)) * setting.weights / 5
    found = InfluenceFunctions("cg", damping=1e9)(setting).scores * 1e9
    assert np.abs(found - plain).max() <= 1e-6 * np.abs(plain).max()


def test_the_order_and_the_batches_of_examples_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = small.setting(builders.model(encoder="lstm", hidden=2), count=8)
    expected = EXPLICIT(setting).scores
    order = np.random.default_rng(0).permutation(8)
    turned = replace(setting, train=[setting.train[index] for index in order], weights=setting.weights[order])
    np.testing.assert_allclose(EXPLICIT(turned).scores, expected[:, order], rtol=1e-9, atol=1e-13)
    monkeypatch.setitem(budget.ROOM, "activations", (7, 7))  # no text is padded to the longest
    fresh = replace(setting)
    assert len(list(fresh.batches(fresh.train))) > 3 > len(list(fresh.batches(fresh.train, 10_000)))
    np.testing.assert_allclose(EXPLICIT(fresh).scores, expected, rtol=1e-9, atol=1e-13)


def test_an_example_that_stands_twice_has_one_score() -> None:
    setting = small.setting(builders.model(encoder="gru"), count=6)
    rows = [*setting.train, replace(setting.train[2], index=99)]
    twice = replace(setting, train=rows, weights=np.append(setting.weights, setting.weights[2]))
    scores = EXPLICIT(twice).scores
    np.testing.assert_allclose(scores[:, 2], scores[:, 6], rtol=1e-12)


def test_parameters_add_up() -> None:
    setting = small.setting(builders.model(encoder="gru", hidden=3), count=4)
    whole = InfluenceFunctions("cg", damping=1e9)(setting).scores * 1e9
    gradients = query_gradients(setting)
    parts = [train_products(setting, {name: each}) * setting.weights / 4 for name, each in gradients.items()]
    assert all(np.abs(part).max() > 0 for part in parts)  # embeddings and recurrences, too
    np.testing.assert_allclose(np.sum(parts, axis=0), whole, rtol=1e-5, atol=1e-9)


def test_a_series_has_standard_errors() -> None:
    setting = small.setting(builders.model(encoder="average"), count=8)
    found: Influence = InfluenceFunctions(Lissa(batch=4, repeats=4), damping=5.0)(setting)
    expected = InfluenceFunctions("explicit", damping=5.0)(setting).scores
    assert found.errors is not None and found.errors.shape == found.scores.shape
    assert np.median(np.abs(found.scores - expected) / found.errors) < 2
    assert np.corrcoef(found.scores.ravel(), expected.ravel())[0, 1] > 0.95


def test_what_is_too_large_or_unknown_is_refused() -> None:
    setting = small.setting(builders.model(encoder="average"))
    assert "explicit or arnoldi" in (InfluenceFunctions("cg", leverage=True).unfit(setting) or "")
    assert InfluenceFunctions(Arnoldi(), leverage=True).unfit(setting) is None
    large = small.setting(builders.model(encoder="average", embedding=300))
    assert "10,000 at most" in (InfluenceFunctions("explicit").unfit(large) or "")
    with pytest.raises(AssayError, match="solver"):
        InfluenceFunctions("guess")
    with pytest.raises(AssayError, match="curvature"):
        InfluenceFunctions(curvature="flat")
