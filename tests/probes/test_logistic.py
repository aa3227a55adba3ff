"""Logistic regression agrees with that of scikit-learn: there is one minimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from assay.models.logistic import fit


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("strength", [0.5, 4.0])
def test_probabilities_are_those_of_scikit_learn(classes: int, strength: float) -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(300, 7)) * np.array([1, 2, 0.1, 1, 5, 1, 1]) + 3
    labels = ((features - 3) @ random.normal(size=(7, classes)) + random.gumbel(size=(300, classes))).argmax(1)
    found = fit(features, labels, classes, strength)
    scaled = (features - features.mean(0)) / features.std(0)
    other = LogisticRegression(C=1 / strength, tol=1e-10, max_iter=5000).fit(scaled, labels)
    assert np.allclose(found.scores(features).softmax(-1).numpy(), other.predict_proba(scaled), atol=1e-4)
    assert (found(features) == other.predict(scaled)).mean() > 0.99


def test_two_classes_are_those_of_scikit_learn_at_twice_the_strength() -> None:
    # one weight vector w there, two here of ±w/2: their squares sum to half
    random = np.random.default_rng(1)
    features = random.normal(size=(200, 4))
    labels = (features[:, 0] + random.logistic(size=200) > 0).astype(np.int64)
    scaled = (features - features.mean(0)) / features.std(0)
    other = LogisticRegression(C=1.0, tol=1e-10).fit(scaled, labels)
    found = fit(features, labels, 2, strength=2.0)
    assert np.allclose(found.scores(features).softmax(-1).numpy(), other.predict_proba(scaled), atol=1e-4)


def test_at_the_minimum_the_slope_is_zero() -> None:
    random = np.random.default_rng(2)
    features, labels = random.normal(size=(100, 3)), random.integers(0, 3, 100)
    found = fit(features, labels, 3)
    error = found.scores(features).softmax(-1) - torch.eye(3, dtype=torch.float64)[labels]
    scaled = (torch.from_numpy(features) - found.mean) / found.scale
    assert torch.allclose(scaled.T @ error + found.weight, torch.zeros(3, 3, dtype=torch.float64), atol=1e-3)
    assert torch.allclose(error.sum(0), torch.zeros(3, dtype=torch.float64), atol=1e-3)


def test_a_feature_that_never_changes_does_no_harm() -> None:
    features = np.stack([np.ones(10), np.arange(10.0)], axis=1)
    labels = (np.arange(10) > 4).astype(np.int64)
    assert (fit(features, labels, 2)(features) == labels).all()
