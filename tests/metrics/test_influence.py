"""Scores of influence methods, against scipy, definitions and cases that are known."""

from __future__ import annotations

import numpy as np
from scipy import stats

from assay.metrics import performance as influence

RANDOM = np.random.default_rng(0)


def test_correlations_are_those_of_scipy() -> None:
    x, y = RANDOM.normal(size=(4, 9)), RANDOM.normal(size=(4, 9))
    x[0, :3] = x[0, 3]  # ties
    expected = [stats.spearmanr(one, other).statistic for one, other in zip(x, y, strict=True)]
    np.testing.assert_allclose(influence.spearman(x, y), expected)
    np.testing.assert_allclose(influence.pearson(x, y)[1], stats.pearsonr(x[1], y[1]).statistic)
    assert np.isnan(influence.pearson(np.ones((1, 5)), y[:1, :5])).all()


def test_a_linear_world_is_predicted_perfectly_and_its_opposite_is_not() -> None:
    scores = RANDOM.normal(size=(6, 30))
    removed = RANDOM.random((20, 30)) < 0.5
    targets = 3 + np.array([[scores[query, own].sum() for query in range(6)] for own in removed])
    np.testing.assert_allclose(influence.lds(scores, removed, targets), 1)
    np.testing.assert_allclose(influence.lds(-scores, removed, targets), -1)
    perfect = influence.lds_interval(scores, removed, targets)
    np.testing.assert_allclose([perfect.mean, perfect.low, perfect.high], 1)


def test_the_interval_holds_the_mean_and_narrows_with_queries_and_subsets() -> None:
    def interval(queries: int, subsets: int) -> influence.Bounded:
        random = np.random.default_rng(1)
        scores, removed = random.normal(size=(queries, 40)), random.random((subsets, 40)) < 0.5
        targets = removed @ scores.T + 3 * random.normal(size=(subsets, queries))
        return influence.lds_interval(scores, removed, targets)

    few, many = interval(5, 10), interval(30, 60)
    assert few.low < few.mean < few.high and many.low < many.mean < many.high
    assert many.high - many.low < 0.5 * (few.high - few.low)
    assert 0.55 < many.mean < 0.8  # √(10 / (10 + 9)) of a linear correlation, somewhat less of ranks


def test_undefined_correlations_are_left_out_of_the_mean() -> None:
    scores = np.stack([np.zeros(5), np.arange(5.0)])
    removed = np.eye(5, dtype=bool)
    targets = np.stack([np.arange(5.0), np.arange(5.0)], axis=1)
    found = influence.lds_interval(scores, removed, targets)
    assert found.mean == 1


def test_the_ceiling_is_the_mean_over_pairs_of_seeds() -> None:
    targets = RANDOM.normal(size=(3, 12, 4))
    pairs = [influence.spearman(targets[a].T, targets[b].T).mean() for a, b in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(influence.ceiling(targets).mean, np.mean(pairs))


def test_single_removals_and_slopes() -> None:
    scores = RANDOM.normal(size=(3, 8))
    np.testing.assert_allclose(influence.leave_one_out(scores, 2 * scores.T), 1)
    expected = RANDOM.normal(size=7)
    np.testing.assert_allclose(influence.slope(expected, 0.3 * expected), 0.3)
    assert np.isnan(influence.slope(np.zeros(3), np.ones(3)))
    np.testing.assert_allclose(influence.removal_gain(np.ones((2, 3)), np.full((5, 2, 3), 0.25)), 0.75)
