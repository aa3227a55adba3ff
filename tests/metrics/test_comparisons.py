"""Means and differences with their doubts: against scipy, closed forms and brute force."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from assay.metrics.comparisons import ROUNDING, alone, apart, by_example, holm, paired, student


@pytest.mark.parametrize("size", [2, 7, 40])
def test_pairs_are_judged_as_scipy_does(size: int) -> None:
    draw = np.random.default_rng(size)
    first, second = draw.normal(0.3, 1, size), draw.normal(0, 1, size)
    found, expected = paired(first, second), stats.ttest_rel(first, second)
    assert found is not None
    ends = expected.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, ends.low, ends.high))
    assert found.gap == pytest.approx(first.mean() - second.mean())
    assert found.sizes == (size, size)


@pytest.mark.parametrize("sizes", [(2, 3), (9, 30), (50, 20)])
def test_two_samples_are_judged_as_scipy_does(sizes: tuple[int, int]) -> None:
    draw = np.random.default_rng(sizes[0])
    first, second = draw.normal(0, 1, sizes[0]), draw.exponential(2, sizes[1])
    found, expected = apart(first, second), stats.ttest_ind(first, second, equal_var=False)
    assert found is not None
    ends = expected.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, ends.low, ends.high))
    assert found.sizes == sizes


def test_one_against_many_is_a_regression_on_which_side_it_stands() -> None:
    many = np.array([0.41, 0.47, 0.39, 0.44])
    found, line = alone(0.6, many), stats.linregress([0, 0, 0, 0, 1], [*many, 0.6])
    assert found is not None
    assert (found.gap, found.p) == pytest.approx((line.slope, line.pvalue))
    reach = stats.t.ppf(0.975, 3) * line.stderr
    assert (found.low, found.high) == pytest.approx((line.slope - reach, line.slope + reach))


def test_intervals_of_two_samples_are_near_those_of_a_bootstrap() -> None:
    draw = np.random.default_rng(3)
    first, second = draw.beta(2, 2, 300), draw.beta(4, 2, 300)
    samples = apart(first, second[:150])
    assert samples is not None
    expected = stats.bootstrap(
        (first, second[:150]),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        n_resamples=2000,
        rng=np.random.default_rng(0),
        method="percentile",
    ).confidence_interval
    assert (samples.low, samples.high) == pytest.approx((expected.low, expected.high), abs=0.008)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.02]) == [0.02]
    assert holm([]) == []


def test_missing_numbers_are_left_out_and_too_few_give_nothing() -> None:
    first, second = np.array([1.0, 2.0, np.nan, 4.0]), np.array([0.5, np.nan, 3.0, 1.0])
    found = paired(first, second)
    assert found is not None
    assert (found.gap, found.sizes) == (pytest.approx(1.75), (2, 2))
    assert paired(first[:2], second[:2]) is None
    assert apart(first[:1], second) is None
    assert alone(1.0, np.array([2.0])) is None


def test_without_any_spread_only_a_gap_beyond_rounding_counts() -> None:
    ones = np.ones(5)
    for judge in (paired, apart):
        same, rounded, moved = judge(ones, ones), judge(ones + ROUNDING / 2, ones), judge(ones + 0.1, ones)
        assert same is not None and rounded is not None and moved is not None
        assert (same.p, rounded.p, moved.p) == (1.0, 1.0, 0.0)
        assert moved.low == moved.high == pytest.approx(0.1)
        assert rounded.low <= 0 <= rounded.high


@pytest.mark.parametrize("size", [2, 3, 12])
def test_a_mean_over_seeds_has_the_interval_of_scipy(size: int) -> None:
    values = np.random.default_rng(size).normal(0.7, 0.1, size)
    ends = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert student(values) == pytest.approx((values.mean(), ends.low, ends.high))


def test_an_interval_over_two_seeds_by_hand() -> None:
    # the standard error of 0.4 and 0.6 is 0.1, and with one degree of freedom t reaches tan(0.475 pi) of it
    reach = 0.1 * math.tan(0.475 * math.pi)
    assert student(np.array([0.4, 0.6])) == pytest.approx((0.5, 0.5 - reach, 0.5 + reach))


def test_intervals_over_seeds_hold_the_truth_as_often_as_they_say() -> None:
    draw = np.random.default_rng(11)
    found = [student(values) for values in draw.normal(0.3, 2.0, (2000, 4))]
    share = np.mean([low <= 0.3 <= high for _, low, high in found])
    assert share == pytest.approx(0.95, abs=0.02)


def test_one_seed_has_no_interval_and_none_no_mean() -> None:
    mean, low, high = student(np.array([0.25]))
    assert mean == 0.25 and math.isnan(low) and math.isnan(high)
    assert all(map(math.isnan, student(np.array([]))))


def test_an_example_that_several_models_read_counts_once() -> None:
    draw = np.random.default_rng(5)
    first, second = draw.normal(0.2, 1, 30), draw.normal(0.1, 1, 30)
    found = by_example(np.tile(np.arange(30), 2), np.concatenate([first, second]))
    expected = stats.ttest_1samp((first + second) / 2, 0)
    assert found is not None
    assert (found.p, found.gap) == pytest.approx((expected.pvalue, (first.mean() + second.mean()) / 2))
    assert found.sizes == (30, 30)


def test_copies_of_a_model_make_no_difference_surer() -> None:
    gaps, examples = np.random.default_rng(6).normal(0.3, 1, 20), np.arange(20)
    once, thrice = by_example(examples, gaps), by_example(np.tile(examples, 3), np.tile(gaps, 3))
    assert once is not None and thrice is not None
    assert (thrice.p, thrice.low) == pytest.approx((once.p, once.low))


def test_examples_are_known_by_their_number_not_by_their_place() -> None:
    examples = np.array([40, 7, 7, 12, 40, 99])
    gaps = np.array([1.0, 2.0, 4.0, 0.5, 3.0, np.nan])
    found = by_example(examples, gaps)
    means = {7: 3.0, 12: 0.5, 40: 2.0}
    expected = stats.ttest_1samp(list(means.values()), 0)
    assert found is not None
    assert (found.p, found.sizes) == (pytest.approx(expected.pvalue), (3, 3))
    assert by_example(examples[1:3], gaps[1:3]) is None  # one example, twice


@pytest.mark.parametrize("seed", range(6))
def test_holm_is_the_closed_test_of_bonferroni(seed: int) -> None:
    """Marcus, Peritz and Gabriel (1976): a value stands where every set of values that holds it is rejected."""
    values = np.random.default_rng(seed).beta(0.3, 2, 6).tolist()
    for place, adjusted in enumerate(holm(values)):
        others = [other for other in range(6) if other != place]
        sets = [(place, *some) for size in range(6) for some in combinations(others, size)]
        closed = max(min(1.0, len(some) * min(values[each] for each in some)) for some in sets)
        assert adjusted == pytest.approx(closed)


def test_holm_of_equal_values_treats_them_alike() -> None:
    assert holm([0.02, 0.02, 0.5]) == pytest.approx([0.06, 0.06, 0.5])


def test_holm_names_a_false_difference_in_one_table_of_twenty() -> None:
    draw = np.random.default_rng(8)
    tables = draw.uniform(0, 1, (4000, 10))  # no difference is true
    assert np.mean([min(holm(table.tolist())) <= 0.05 for table in tables]) == pytest.approx(0.05, abs=0.011)
