from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay.metrics import bootstrap
from assay.metrics.bootstrap import means


def test_intervals_agree_with_scipys_bootstrap() -> None:
    values = np.random.default_rng(0).gamma(2, size=(150, 3))
    interval = means(values, resamples=20_000)
    other = stats.bootstrap((values,), np.mean, n_resamples=20_000, axis=0, method="percentile", rng=1)
    width = other.confidence_interval.high - other.confidence_interval.low
    assert (abs(interval.low - other.confidence_interval.low) < 0.03 * width).all()
    assert (abs(interval.high - other.confidence_interval.high) < 0.03 * width).all()


def test_intervals_of_two_values_follow_from_the_binomial_law() -> None:
    values = np.repeat([0.0, 1.0], [70, 30])[:, None]
    interval = means(values, resamples=50_000, level=0.9)
    law = stats.binom(100, 0.3)
    assert interval.low[0] == pytest.approx(law.ppf(0.05) / 100)
    assert interval.high[0] == pytest.approx(law.ppf(0.95) / 100)


def test_mean_and_deviation_leave_missing_values_out() -> None:
    generator = np.random.default_rng(1)
    values = generator.normal(1e6, 1, (80, 4))
    values[generator.random(values.shape) < 0.4] = np.nan
    interval = means(values)
    for column in range(4):
        kept = values[~np.isnan(values[:, column]), column]
        assert interval.n[column] == len(kept)
        assert interval.mean[column] == pytest.approx(kept.mean(), rel=1e-14)
        assert interval.std[column] == pytest.approx(kept.std(), rel=1e-9)


def test_a_column_with_missing_values_is_as_uncertain_as_its_values_alone() -> None:
    values = np.random.default_rng(2).normal(size=400)
    holes = np.full(1200, np.nan)
    holes[::3] = values
    alone, among = means(values[:, None], resamples=20_000), means(holes[:, None], resamples=20_000)
    assert (among.high - among.low)[0] == pytest.approx((alone.high - alone.low)[0], rel=0.05)


def test_columns_do_not_disturb_each_other() -> None:
    values = np.random.default_rng(3).normal(size=(60, 5))
    values[::2, 3] = np.nan
    together = means(values)
    for column in range(5):
        alone = means(values[:, [column]])
        np.testing.assert_allclose(together.low[column], alone.low[0], rtol=1e-12)
        np.testing.assert_allclose(together.high[column], alone.high[0], rtol=1e-12)


def test_columns_share_the_resampled_examples() -> None:
    values = np.random.default_rng(4).normal(size=(40, 1))
    interval = means(np.hstack([values, 3 - 2 * values]))
    np.testing.assert_allclose(interval.low[1], 3 - 2 * interval.high[0], rtol=1e-12)
    np.testing.assert_allclose(interval.high[1], 3 - 2 * interval.low[0], rtol=1e-12)


def test_the_seed_decides() -> None:
    values = np.random.default_rng(5).normal(size=(50, 2))
    first, again, other = means(values, seed=1), means(values, seed=1), means(values, seed=2)
    np.testing.assert_array_equal(first.low, again.low)
    np.testing.assert_array_equal(first.high, again.high)
    assert (first.low != other.low).all()


def test_chunks_do_not_change_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(6).normal(size=(30, 2))
    whole = means(values, resamples=500)
    monkeypatch.setattr(bootstrap, "CELLS", 30 * 7)
    parts = means(values, resamples=500)
    np.testing.assert_allclose(whole.low, parts.low, rtol=1e-12)
    np.testing.assert_allclose(whole.high, parts.high, rtol=1e-12)


def test_weights_draw_each_resample_as_large_as_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "CELLS", 9 * 4)
    weights = np.concatenate(list(bootstrap._weights(9, 0, 3001)))
    assert weights.shape == (3001, 9)
    assert (weights.sum(-1) == 9).all()
    # each count is binomial with mean 1 and variance 8 / 9
    np.testing.assert_allclose(weights.mean(0), 1, atol=0.08)
    np.testing.assert_allclose(weights.var(0), 8 / 9, atol=0.12)


def test_single_values_have_no_spread_and_empty_columns_no_mean() -> None:
    values = np.full((6, 3), np.nan)
    values[2, 0] = 0.1
    values[:, 2] = 0.3
    interval = means(values)
    assert interval.n.tolist() == [1, 0, 6]
    assert (interval.low[0], interval.mean[0], interval.high[0], interval.std[0]) == (0.1, 0.1, 0.1, 0)
    assert np.isnan([interval.low[1], interval.mean[1], interval.high[1], interval.std[1]]).all()
    np.testing.assert_allclose([interval.low[2], interval.high[2]], 0.3, rtol=1e-15)


def test_no_examples_at_all_give_nan() -> None:
    interval = means(np.empty((0, 2)))
    assert interval.n.tolist() == [0, 0]
    assert np.isnan([interval.mean, interval.low, interval.high, interval.std]).all()
