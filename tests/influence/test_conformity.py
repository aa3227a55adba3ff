"""Conformity to each class, credibility, and the decision that is calibrated by neighbours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.stats import kstest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from assay.errors import AssayError
from assay.influence.neighbours import (
    NEVER,
    Conformity,
    LayerNeighbours,
    confidence,
    credibility,
    decided,
    p_values,
    threshold,
)
from assay.influence.representations import representations
from assay.influence.training_run import TrainingRun
from tests.influence import signs

LAYERS = ("embedding", "states")


@pytest.fixture(scope="module")
def training_run() -> TrainingRun:
    return signs.training_run(signs.rows(80))


@pytest.fixture(scope="module")
def witnesses(training_run: TrainingRun) -> LayerNeighbours:
    return Conformity(LAYERS, k=7).fit(training_run.network.eval(), training_run.rows[:60])


def test_conformity_is_a_distribution_over_classes(training_run: TrainingRun, witnesses: LayerNeighbours) -> None:
    for found in (witnesses(training_run.rows[60:]), witnesses.own()):
        assert found.shape[1] == 2 and found.min() >= 0 and found.max() <= 1
        np.testing.assert_allclose(found.sum(1), 1)


def test_all_examples_together_give_the_prior_of_the_classes(training_run: TrainingRun) -> None:
    every = Conformity(LAYERS, k=60).fit(training_run.network, training_run.rows[:60])
    prior = np.bincount(every.labels, minlength=2) / 60
    np.testing.assert_allclose(every(training_run.rows[60:]), np.broadcast_to(prior, (20, 2)))


@pytest.mark.parametrize("temperature", [None, 0.3])
def test_conformity_is_the_vote_of_another_library(training_run: TrainingRun, temperature: float | None) -> None:
    found = Conformity(LAYERS, 7, temperature=temperature).fit(training_run.network, training_run.rows[:60])
    expected = []
    for layer in LAYERS:
        stored, asked = (representations(training_run.network, rows, [layer])[layer].astype(float)
                         for rows in (training_run.rows[:60], training_run.rows[60:]))  # fmt: skip
        scaler, size = StandardScaler().fit(stored), np.sqrt(2 * stored.shape[1])
        weights = "uniform" if temperature is None else lambda apart, size=size: np.exp(-apart / size / temperature)
        other = KNeighborsClassifier(7, weights=weights, algorithm="brute")
        other.fit(scaler.transform(stored), found.labels)
        expected.append(other.predict_proba(scaler.transform(asked)))
    np.testing.assert_allclose(found(training_run.rows[60:]), np.mean(expected, axis=0), rtol=1e-4)
    with pytest.raises(AssayError, match="above 0"):
        Conformity(temperature=0.0).fit(training_run.network, training_run.rows)(training_run.rows[:2])


def test_no_example_is_its_own_neighbour(training_run: TrainingRun) -> None:
    rows = [replace(training_run.rows[0], label=1), *(replace(row, label=0) for row in training_run.rows[1:30])]
    found = Conformity(LAYERS, k=1).fit(training_run.network, rows).own()
    assert found[0, 1] == 0  # it would be 1 with itself


def test_conformity_falls_with_every_neighbour_that_gets_another_label(
    training_run: TrainingRun, witnesses: LayerNeighbours
) -> None:
    asked = training_run.rows[60:]
    indices = {name: each.nearest(representations(training_run.network, asked, [name])[name], 7).indices[0]
              for name, each in witnesses.vectors.items()}  # fmt: skip
    labels = np.zeros_like(witnesses.labels)
    before = replace(witnesses, labels=labels)(asked)[0, 0]
    assert before == 1
    for index in dict.fromkeys(np.concatenate(list(indices.values())).tolist()):
        labels = labels.copy()
        labels[index] = 1
        after = replace(witnesses, labels=labels)(asked)[0, 0]
        lost = sum(index in there for there in indices.values()) / 14
        assert after == pytest.approx(before - lost) and lost > 0
        before = after
    assert before == pytest.approx(0)


def test_credibility_is_uniform_on_the_calibration_set() -> None:
    random = np.random.default_rng(0)
    right = random.binomial(20, 0.8, 1500) / 20  # conformity of texts to their own labels
    p = p_values(right[:, None], right, seed=7)[:, 0]
    assert kstest(p, "uniform").pvalue > 0.2
    whole = p_values(right[:, None], right)[:, 0]
    assert kstest(whole, "uniform").pvalue < 1e-6  # ties that count in full are not uniform, but careful:
    assert all((whole <= level).mean() <= level + 1e-12 for level in np.linspace(0.01, 1, 50))


def test_p_values_of_unseen_texts_are_uniform_and_those_of_strange_ones_low() -> None:
    random = np.random.default_rng(1)
    calibration, unseen, strange = (random.binomial(20, rate, 2000) / 20 for rate in (0.8, 0.8, 0.4))
    assert kstest(p_values(unseen[:, None], calibration, seed=2)[:, 0], "uniform").pvalue > 0.05
    assert p_values(strange[:, None], calibration, seed=2).mean() < 0.05


def test_p_values_count_examples_that_conform_no_better() -> None:
    conformity = np.array([[0.1, 0.3, 0.6]])
    p = p_values(conformity, np.array([0.1, 0.3, 0.3, 0.9]))
    np.testing.assert_allclose(p, [[0.25, 0.75, 0.75]])
    np.testing.assert_allclose([credibility(p), confidence(p)], [[0.75], [0.25]])


ROWS = some.lists(some.tuples(some.integers(1, 9), some.booleans(), some.booleans()), min_size=1, max_size=12)


@settings(max_examples=60)
@given(ROWS)
def test_the_threshold_is_the_best_of_all(rows: list[tuple[int, bool, bool]]) -> None:
    sure = 0.5 + np.array([row[0] for row in rows]) / 20
    labels = np.array([0 if row[1] else 1 for row in rows])  # the model says 0
    probabilities = np.stack([sure, 1 - sure], 1)
    near = np.array([[0.9, 0.1] if row[2] else [0.1, 0.9] for row in rows])

    def right(value: float) -> float:
        return float((decided(probabilities, near, value)[0] == labels).mean())

    found = threshold(probabilities, near, labels)
    every = [NEVER, *(0.5 + np.arange(1, 12) / 20 - 0.01)]
    best = max(map(right, every))
    assert right(found) == best
    assert right(NEVER) < best or found == NEVER
    assert sum(decided(probabilities, near, found)[1]) == min(
        sum(decided(probabilities, near, value)[1]) for value in every if right(value) == best
    )
