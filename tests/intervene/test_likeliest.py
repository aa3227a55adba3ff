"""The likeliest attention: against another solver, all single items, and the bound that it comes with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from assay.intervene.pooled_attention import GAP, likeliest


def logits(items: int, classes: int, scale: float, seed: int = 0) -> np.ndarray:
    return scale * np.random.default_rng(seed).normal(size=(items, classes))


def with_scipy(values: np.ndarray, target: int) -> float:
    """The largest probability that sequential least squares finds."""
    found = minimize(
        lambda weights: -log_softmax(weights @ values)[target],
        np.full(len(values), 1 / len(values)),
        jac=lambda weights: values @ softmax(weights @ values) - values[:, target],
        bounds=[(0, 1)] * len(values),
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": lambda w: np.ones_like(w)},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    weights = np.clip(found.x, 0, None)
    return float(softmax(weights / weights.sum() @ values)[target])


SIZES = [(2, 3, 1.0), (6, 3, 2.0), (12, 4, 2.0), (30, 5, 1.0), (9, 8, 5.0), (5, 3, 40.0)]


@pytest.mark.parametrize(("items", "classes", "scale"), SIZES)
def test_it_is_as_good_as_another_solver_and_within_its_own_bound(items, classes, scale) -> None:
    values = logits(items, classes, scale)
    for target in range(classes):
        found = likeliest(values, target)
        assert found.weights.min() >= 0
        assert found.weights.sum() == pytest.approx(1)
        assert softmax(found.weights @ values)[target] == pytest.approx(found.probability, abs=1e-12)
        assert found.probability >= with_scipy(values, target) - 1e-7
        assert found.probability >= softmax(values, -1)[:, target].max() - 1e-12
        assert found.probability <= found.upper <= found.probability * np.exp(2 * GAP) + 1e-15


@pytest.mark.parametrize("seed", range(5))
def test_of_two_classes_one_item_is_best(seed) -> None:
    values = logits(9, 2, 3.0, seed)
    for target in (0, 1):
        found = likeliest(values, target)
        assert found.weights.argmax() == softmax(values, -1)[:, target].argmax()
        assert found.weights.max() == 1
        assert found.probability == found.upper == pytest.approx(with_scipy(values, target), abs=1e-6)


def test_a_mixture_can_beat_every_single_item() -> None:
    """Two items that are each torn between the class and another one agree on the class alone."""
    values = np.array([[4.0, 4.0, -4.0], [4.0, -4.0, 4.0]])
    found = likeliest(values, 0)
    np.testing.assert_allclose(found.weights, [0.5, 0.5], atol=1e-6)
    assert found.probability == pytest.approx(np.exp(4) / (np.exp(4) + 2))
    assert softmax(values, -1)[:, 0].max() < 0.51


def test_the_bound_holds_for_random_attention() -> None:
    values = logits(15, 6, 2.0)
    drawn = np.random.default_rng(1).dirichlet(np.full(15, 0.2), 4000)
    for target in range(6):
        assert softmax(drawn @ values, -1)[:, target].max() <= likeliest(values, target).upper


@pytest.mark.parametrize("values", [np.zeros((4, 3)), np.array([[0.0, -1e4, 3.0]]), logits(3, 3, 1e4)])
def test_extreme_logits_are_answered(values) -> None:
    for target in range(3):
        found = likeliest(values, target)
        assert np.isfinite([found.probability, found.upper, *found.weights]).all()
        assert found.upper >= found.probability >= softmax(values, -1)[:, target].max() - 1e-12
