from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from assay.metrics.plausibility import average_precision, precision_at_truth

Metric = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
BOTH = pytest.mark.parametrize("metric", [average_precision, precision_at_truth])


def cases(seed: int, rows: int, size: int, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    scores = generator.integers(-levels, levels, (rows, size)) / 3
    truth = generator.random((rows, size)) < 0.4
    mask = generator.random((rows, size)) < 0.8
    return scores, truth, mask


def curve_area(scores: np.ndarray, truth: np.ndarray) -> float:
    """Steps through the distinct thresholds, highest first."""
    area, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        chosen = truth[scores >= threshold]
        area += (chosen.sum() / truth.sum() - recall) * chosen.mean()
        recall = chosen.sum() / truth.sum()
    return area


def mean_precision_over_orders(scores: np.ndarray, truth: np.ndarray) -> float:
    """Breaks ties in every possible way."""
    size = int(truth.sum())
    found = []
    for order in permutations(range(len(scores))):
        shuffled = np.array(order)
        best = shuffled[np.argsort(-scores[shuffled], kind="stable")][:size]
        found.append(truth[best].mean())
    return float(np.mean(found))


@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_average_precision_is_the_area_under_the_stepwise_curve(levels: int) -> None:
    scores, truth, mask = cases(0, 200, 9, levels)
    expected = [curve_area(s[m], t[m]) if t[m].any() else np.nan for s, t, m in zip(scores, truth, mask, strict=True)]
    np.testing.assert_allclose(average_precision(scores, truth, mask), expected, atol=1e-12)


@pytest.mark.parametrize("levels", [1, 2, 1000])
def test_precision_at_truth_is_the_mean_over_all_ways_to_break_ties(levels: int) -> None:
    scores, truth, mask = cases(1, 40, 6, levels)
    expected = [
        mean_precision_over_orders(s[m], t[m]) if t[m].any() else np.nan
        for s, t, m in zip(scores, truth, mask, strict=True)
    ]
    np.testing.assert_allclose(precision_at_truth(scores, truth, mask), expected, atol=1e-12)


@BOTH
def test_a_constant_explainer_scores_the_share_of_true_tokens(metric: Metric) -> None:
    _, truth, mask = cases(2, 50, 12, 1)
    truth[:, 0] = mask[:, 0] = True
    share = (truth & mask).sum(-1) / mask.sum(-1)
    np.testing.assert_allclose(metric(np.full(truth.shape, 0.7), truth, mask), share, atol=1e-12)


@BOTH
def test_a_perfect_explainer_scores_one(metric: Metric) -> None:
    _, truth, mask = cases(3, 50, 12, 1)
    truth[:, 0] = mask[:, 0] = True
    np.testing.assert_allclose(metric(truth.astype(float), truth, mask), 1)


@BOTH
def test_padding_changes_nothing(metric: Metric) -> None:
    scores, truth, mask = cases(4, 80, 10, 3)
    clean = metric(scores, truth, mask)
    for dirt in (np.nan, np.inf, -np.inf, 1 / 3):
        np.testing.assert_array_equal(clean, metric(np.where(mask, scores, dirt), truth | ~mask, mask))


@BOTH
def test_infinite_scores_are_scores(metric: Metric) -> None:
    scores, truth, mask = cases(5, 80, 10, 2)
    infinite = np.where(scores == scores.max(), np.inf, np.where(scores == scores.min(), -np.inf, scores))
    np.testing.assert_array_equal(metric(scores, truth, mask), metric(infinite, truth, mask))


@BOTH
def test_rows_without_truth_or_with_a_missing_score_have_no_number(metric: Metric) -> None:
    scores = np.array([[1.0, 2, 3], [1, np.nan, 3], [1, 2, 3], [1, 2, 3]])
    truth = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]], dtype=bool)
    mask = np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
    np.testing.assert_array_equal(metric(scores, truth, mask), [np.nan, np.nan, np.nan, 1])


@BOTH
@pytest.mark.parametrize("shape", [(0, 4), (2, 0)])
def test_empty_batches_give_one_nan_a_row(metric: Metric, shape: tuple[int, int]) -> None:
    nothing = np.zeros(shape, dtype=bool)
    np.testing.assert_array_equal(metric(np.zeros(shape), nothing, nothing), np.full(shape[0], np.nan))
