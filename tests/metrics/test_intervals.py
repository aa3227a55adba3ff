"""Intervals of means: against their definition, Student's t, a studentised bootstrap, and what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from assay.metrics.intervals import NOTHING, means


def hall(values: np.ndarray, mean: float) -> float:
    """What Hall's (1992) g makes of Student's t at this mean, written out."""
    n, skewness = len(values), stats.skew(values)
    t = (values.mean() - mean) / stats.sem(values)
    return t + skewness * (t**2 / 3 + 1 / 6) / np.sqrt(n) + skewness**2 * t**3 / (27 * n)


@pytest.mark.parametrize("seed", range(4))
def test_the_ends_are_where_halls_cubic_is_a_quantile_of_students_t(seed: int) -> None:
    values = np.random.default_rng(seed).gamma(0.7, size=15 + 20 * seed)
    found, reach = means(values[:, None]), stats.t.ppf(0.975, len(values) - 1)
    for end, side in ((found.low[0], 1), (found.high[0], -1)):
        root = optimize.brentq(lambda mean: hall(values, mean) - side * reach, -20, 20, xtol=1e-13)  # noqa: B023
        assert end == pytest.approx(root, abs=1e-7)
    assert found.p[0] == pytest.approx(2 * stats.t.sf(abs(hall(values, 0)), len(values) - 1))


def test_without_skewness_it_is_students_interval() -> None:
    half = np.random.default_rng(0).normal(0.2, 1, 12)
    values = np.concatenate([half, 0.5 - half])
    found, expected = means(values[:, None], level=0.9), stats.ttest_1samp(values, 0)
    ends = expected.confidence_interval(0.9)
    assert (found.low[0], found.high[0], found.p[0]) == pytest.approx((ends.low, ends.high, expected.pvalue))


@pytest.mark.parametrize("size", [60, 200])
def test_ends_of_skewed_values_are_those_of_a_studentised_bootstrap(size: int) -> None:
    random = np.random.default_rng(size)
    values = random.exponential(size=size)
    drawn = values[random.integers(size, size=(20_000, size))]
    t = (drawn.mean(1) - values.mean()) / stats.sem(drawn, axis=1)
    low, high = values.mean() - np.quantile(t, [0.975, 0.025]) * stats.sem(values)
    found, student = means(values[:, None]), stats.ttest_1samp(values, 0).confidence_interval()
    width = high - low
    assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=0.08 * width)
    assert abs(student.high - high) > 2 * abs(found.high[0] - high)


@pytest.mark.parametrize(("draw", "mean"), [("normal", 0.0), ("exponential", 1.0)])
@pytest.mark.parametrize("size", [20, 100])
def test_intervals_hold_the_mean_in_95_of_100_samples(draw: str, mean: float, size: int) -> None:
    samples = getattr(np.random.default_rng(size), draw)(size=(size, 20_000))
    found = means(samples)
    assert np.mean((found.low <= mean) & (mean <= found.high)) == pytest.approx(0.95, abs=0.01)
    assert np.mean(means(samples - mean).p <= 0.05) == pytest.approx(0.05, abs=0.01)


numbers = st.floats(-10, 10).map(lambda value: round(value, 3))


@given(st.lists(numbers, min_size=1, max_size=30), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_p_value_never_contradicts_the_interval(values: list[float], level: float) -> None:
    found = means(np.array(values)[:, None], level)
    low, high, p = found.low[0], found.high[0], found.p[0]
    outside = low > 0 or high < 0
    assert outside == (p < 1 - level) or p == pytest.approx(1 - level, abs=1e-9)
    assert np.isnan(low) == np.isnan(high) == (len(values) == 1)
    assert len(values) == 1 or low <= found.mean[0] <= high


@given(st.lists(numbers, min_size=2, max_size=30), st.floats(0.5, 0.98))
def test_a_higher_level_has_a_longer_interval(values: list[float], level: float) -> None:
    short, long = means(np.array(values)[:, None], level), means(np.array(values)[:, None], level + 0.01)
    assert long.low[0] <= short.low[0] + 1e-9
    assert long.high[0] >= short.high[0] - 1e-9


def test_rounding_is_no_difference() -> None:
    noise = np.random.default_rng(1).normal(NOTHING / 2, 1e-9, 200)
    for column in (noise, np.zeros(20), np.full(20, NOTHING / 2)):
        found = means(column[:, None])
        assert found.p[0] == 1
        assert found.low[0] <= 0 <= found.high[0]
    assert means((noise + 2 * NOTHING)[:, None]).p[0] < 1e-6


def test_mean_and_deviation_leave_missing_values_out() -> None:
    generator = np.random.default_rng(1)
    values = generator.normal(1e6, 1, (80, 4))
    values[generator.random(values.shape) < 0.4] = np.nan
    interval = means(values)
    for column in range(4):
        kept = values[~np.isnan(values[:, column]), column]
        alone = means(kept[:, None])
        assert interval.n[column] == len(kept)
        assert interval.mean[column] == pytest.approx(kept.mean(), rel=1e-14)
        assert interval.std[column] == pytest.approx(kept.std(), rel=1e-9)
        ends = interval.low[column] - 1e6, interval.high[column] - 1e6
        assert ends == pytest.approx((alone.low[0] - 1e6, alone.high[0] - 1e6), rel=1e-6)


def test_shift_and_scale_carry_over() -> None:
    values = np.random.default_rng(4).gamma(1, size=(40, 1))
    interval = means(np.hstack([values, 3 - 2 * values]))
    np.testing.assert_allclose(interval.low[1], 3 - 2 * interval.high[0], rtol=1e-12)
    np.testing.assert_allclose(interval.high[1], 3 - 2 * interval.low[0], rtol=1e-12)


def test_single_values_have_no_interval_equal_ones_no_spread_and_empty_columns_no_mean() -> None:
    values = np.full((6, 3), np.nan)
    values[2, 0] = 0.1
    values[:, 2] = 0.3
    interval = means(values)
    assert interval.n.tolist() == [1, 0, 6]
    assert (interval.mean[0], interval.std[0], interval.p[0]) == (0.1, 0, 1)
    assert np.isnan([interval.low[0], interval.high[0]]).all()
    assert np.isnan([interval.low[1], interval.mean[1], interval.high[1], interval.std[1], interval.p[1]]).all()
    np.testing.assert_allclose([interval.low[2], interval.high[2]], 0.3, rtol=1e-15)
    assert interval.p[2] == 0


def test_no_examples_at_all_give_nan() -> None:
    interval = means(np.empty((0, 2)))
    assert interval.n.tolist() == [0, 0]
    assert np.isnan([interval.mean, interval.low, interval.high, interval.std, interval.p]).all()
