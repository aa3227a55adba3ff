from __future__ import annotations

import math

import numpy as np
import pytest

from assay.metrics.performance import accuracy, auc, macro_f1


def predictions(seed: int, examples: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities on a coarse grid so that ties are common."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, examples)
    raw = generator.integers(1, 5, (examples, classes)) + 2.0 * (np.arange(classes) == labels[:, None])
    return labels, raw / raw.sum(-1, keepdims=True)


def pairwise_auc(positive: np.ndarray, negative: np.ndarray) -> float:
    gap = positive[:, None] - negative[None, :]
    return float(((gap > 0) + 0.5 * (gap == 0)).mean())


def test_accuracy_is_the_share_of_hits() -> None:
    assert accuracy(np.array([0, 1, 2, 1]), np.array([0, 2, 2, 1])) == 0.75
    assert math.isnan(accuracy(np.array([], dtype=np.int64), np.array([], dtype=np.int64)))


def test_macro_f1_is_the_mean_harmonic_mean_of_precision_and_recall() -> None:
    labels, probabilities = predictions(0, 200, 4)
    predicted = probabilities.argmax(-1)
    scores = []
    for label in range(4):
        precision = (labels[predicted == label] == label).mean()
        recall = (predicted[labels == label] == label).mean()
        scores.append(2 / (1 / precision + 1 / recall))
    assert macro_f1(labels, predicted, 4) == pytest.approx(np.mean(scores), rel=1e-12)


def test_macro_f1_counts_a_missed_class_as_zero_and_leaves_out_one_that_never_occurs() -> None:
    labels, predicted = np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0])
    # class 0: precision 1/2, recall 1; class 1: nothing found; class 2: neither labelled nor predicted
    assert macro_f1(labels, predicted, 3) == pytest.approx((2 / 3 + 0) / 2)
    assert math.isnan(macro_f1(labels[:0], predicted[:0], 3))


def test_auc_of_two_classes_is_the_share_of_pairs_in_order() -> None:
    labels, probabilities = predictions(1, 120, 2)
    expected = pairwise_auc(probabilities[labels == 1, 1], probabilities[labels == 0, 1])
    assert auc(labels, probabilities) == pytest.approx(expected, rel=1e-12)


def test_auc_of_many_classes_is_the_mean_over_one_against_the_rest() -> None:
    labels, probabilities = predictions(2, 90, 5)
    expected = [pairwise_auc(probabilities[labels == c, c], probabilities[labels != c, c]) for c in range(5)]
    assert auc(labels, probabilities) == pytest.approx(np.mean(expected), rel=1e-12)


def test_auc_leaves_out_classes_that_never_occur() -> None:
    labels, probabilities = predictions(3, 90, 4)
    labels[labels == 2] = 3
    expected = [pairwise_auc(probabilities[labels == c, c], probabilities[labels != c, c]) for c in (0, 1, 3)]
    assert auc(labels, probabilities) == pytest.approx(np.mean(expected), rel=1e-12)


def test_auc_of_two_classes_is_not_blurred_where_the_other_column_is_rounded_to_one() -> None:
    low = np.array([1e-9, 2e-9, 3e-9, 4e-9], dtype=np.float32)
    probabilities = np.stack([1 - low, low], axis=1)
    assert auc(np.array([0, 0, 1, 1]), probabilities) == 1


def test_constant_probabilities_have_an_auc_of_one_half() -> None:
    assert auc(np.array([0, 1, 2, 2]), np.full((4, 3), 1 / 3)) == 0.5


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1], []])
def test_auc_needs_two_classes(labels: list[int]) -> None:
    for classes in (2, 3):
        assert math.isnan(auc(np.array(labels, dtype=np.int64), np.ones((len(labels), classes)) / classes))
