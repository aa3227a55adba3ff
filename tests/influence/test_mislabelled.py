"""Wrong labels: planted, ranked by any signal, and graded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from assay.errors import AssayError
from assay.influence.mislabelled import SIGNALS, graded, margin, plain_loss, suspicion
from assay.influence.neighbours import Neighbours
from assay.influence.setting import Introspective, Setting
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import predict
from tests.influence import signs


@pytest.fixture(scope="module")
def training_run() -> TrainingRun:
    return signs.training_run(signs.rows(240))


@pytest.fixture(scope="module")
def some(training_run: TrainingRun) -> Setting:
    return Setting.of(training_run.learn(), training_run.rows[:20], training_run.rows[:1])


def test_every_signal_finds_planted_errors(training_run: TrainingRun) -> None:
    wrong = np.zeros(len(training_run.rows), bool)
    wrong[np.random.default_rng(0).permutation(len(wrong))[: len(wrong) // 10]] = True
    flips = zip(training_run.rows, wrong, strict=True)
    rows = [replace(row, label=1 - row.label) if planted else row for row, planted in flips]
    noisy = replace(training_run, rows=rows)
    setting = Setting.of(noisy.learn(), rows, rows[:1], training_run=noisy)
    found = {name: suspicion(setting, name, signal) for name, signal in SIGNALS.items()}
    assert isinstance(Neighbours(), Introspective)
    for name, values in found.items():
        assert graded(values, wrong).auc > 0.9, name
    assert graded(found["loss"], wrong).precision > 0.5


def test_loss_and_margin_are_those_of_the_probabilities(some: Setting) -> None:
    probabilities = predict(some.network, some.train)
    own = np.array([row.label for row in some.train])
    np.testing.assert_allclose(plain_loss(some), -np.log(probabilities[np.arange(20), own]))
    np.testing.assert_allclose(margin(some), 1 - 2 * probabilities[np.arange(20), own], atol=1e-6)


@pytest.mark.parametrize("digits", [0, 9])
def test_the_grade_is_that_of_another_library_and_its_interval_holds_it(digits: int) -> None:
    random = np.random.default_rng(0)
    wrong = random.random(400) < 0.1
    suspicion = (random.normal(size=400) + 1.5 * wrong).round(digits)  # of whole numbers many are tied
    grade = graded(suspicion, wrong)
    assert grade.auc == pytest.approx(roc_auc_score(wrong, suspicion))
    assert grade.auc_low < grade.auc < grade.auc_high
    assert grade.precision_low <= grade.precision <= grade.precision_high
    areas, precisions = [], []
    indices = np.flatnonzero(wrong), np.flatnonzero(~wrong)
    for _ in range(150):
        drawn = np.concatenate([random.choice(each, len(each)) for each in indices])
        areas.append(roc_auc_score(wrong[drawn], suspicion[drawn]))
        precisions.append(wrong[drawn][np.argsort(-suspicion[drawn] - 1e-9 * drawn[::-1])[: grade.k]].mean())
    np.testing.assert_allclose([grade.auc_low, grade.auc_high], np.quantile(areas, [0.025, 0.975]), atol=0.03)
    if digits:
        np.testing.assert_allclose(
            [grade.precision_low, grade.precision_high], np.quantile(precisions, [0.025, 0.975]), atol=0.05
        )


def test_a_perfect_and_a_turned_signal_are_told_apart() -> None:
    wrong = np.arange(50) < 5
    perfect = graded(wrong * 1.0, wrong)
    assert (perfect.auc, perfect.auc_low, perfect.precision, perfect.k) == (1, 1, 1, 5)
    turned = graded(~wrong * 1.0, wrong)
    assert (turned.auc, turned.auc_high, turned.precision) == (0, 0, 0)
    assert graded(np.zeros(50), wrong).auc == 0.5


def test_what_is_no_number_is_refused(some: Setting) -> None:
    with pytest.raises(AssayError, match="'odd'"):
        suspicion(some, "odd", lambda setting: np.full(20, np.nan))
