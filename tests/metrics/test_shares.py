"""Intervals of shares and of their differences: against enumeration, other libraries, and what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from assay.metrics.intervals import means, measured, share, share_differences, shares

ROUND = 1 + 1e-9


def accepted(n: int, p: np.ndarray) -> np.ndarray:
    """Blaker's (2000) acceptability of each p, for each number of ones: the chance of what is no likelier by its tail.

    The tail of a number is the rarer one, of as many and more or of as many and fewer.
    """
    law, every = stats.binom(n, p[:, None]), np.arange(n + 1)
    tails, chance = np.minimum(law.cdf(every), law.sf(every - 1)), law.pmf(every)
    return np.stack([np.where(tails <= own[:, None] * ROUND, chance, 0).sum(1) for own in tails.T], axis=1)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_the_ends_are_those_of_what_blaker_accepts(n: int) -> None:
    low, high = share(np.arange(n + 1), np.full(n + 1, n))
    grid = np.linspace(0, 1, 2001)
    for ones, chance in enumerate(accepted(n, grid).T):
        inside = grid[chance > 0.05]
        assert (low[ones], high[ones]) == pytest.approx((inside.min(), inside.max()), abs=6e-4)


@pytest.mark.parametrize("n", [20, 33, 50, 100, 500])
def test_they_lie_within_clopper_and_pearson_and_hold_every_share_often_enough(n: int) -> None:
    low, high = share(np.arange(n + 1), np.full(n + 1, n))
    for ones in range(0, n + 1, max(1, n // 30)):
        widest = stats.binomtest(ones, n).proportion_ci(0.95, "exact")
        assert widest.low - 1e-9 <= low[ones] <= ones / n <= high[ones] <= widest.high + 1e-9
    for p in (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.377):
        inside = (low <= p) & (p <= high)
        assert stats.binom.pmf(np.arange(n + 1), n, p)[inside].sum() >= 0.95


def test_no_events_have_a_width() -> None:
    found = shares(np.stack([np.zeros(50), np.ones(50)], axis=1))
    assert (found.low[0], found.high[1]) == (0, 1)
    assert found.high[0] == pytest.approx(1 - found.low[1]) == pytest.approx(0.0642, abs=1e-4)


@given(st.integers(1, 300), st.floats(0, 1), st.floats(0.5, 0.99))
def test_ends_are_shares_around_the_share_and_mirror_each_other(n: int, part: float, level: float) -> None:
    ones = np.array([round(part * n)])
    (low,), (high,) = share(ones, np.array([n]), level)
    (lower,), (upper,) = share(n - ones, np.array([n]), level)
    assert 0 <= low <= ones[0] / n <= high <= 1
    assert (low, high) == pytest.approx((1 - upper, 1 - lower))


def tango(more: int, less: int, n: int, gap: float) -> float:
    """Tango's (1998) score with the likeliest shares under this difference found by search."""

    def unlikely(second: float) -> float:
        cells = np.array([second + gap, second, 1 - 2 * second - gap])
        return -float(np.array([more, less, n - more - less]) @ np.log(np.maximum(cells, 1e-300)))

    limits = max(0.0, -gap), (1 - gap) / 2
    second = optimize.minimize_scalar(unlikely, bounds=limits, method="bounded", options={"xatol": 1e-12}).x
    return float((more - less - n * gap) / np.sqrt(n * (2 * second + gap * (1 - gap))))


def differing(more: int, less: int, n: int) -> np.ndarray:
    return np.repeat([1.0, -1.0, 0.0], [more, less, n - more - less])


@pytest.mark.parametrize(("more", "less", "n"), [(12, 5, 100), (3, 1, 20), (9, 0, 50), (2, 14, 40)])
def test_the_ends_are_where_tangos_score_is_a_normal_quantile(more: int, less: int, n: int) -> None:
    found, reach = share_differences(differing(more, less, n)[:, None]), stats.norm.ppf(0.975)
    assert tango(more, less, n, found.low[0]) == pytest.approx(reach, abs=1e-3)
    assert tango(more, less, n, found.high[0]) == pytest.approx(-reach, abs=1e-3)


def test_the_p_value_is_mcnemars() -> None:
    found = share_differences(np.stack([differing(12, 5, 100), differing(0, 0, 100), differing(4, 4, 100)], axis=1))
    assert found.p[0] == pytest.approx(stats.chi2.sf((12 - 5) ** 2 / (12 + 5), 1))
    assert found.p[1:].tolist() == [1, 1]
    assert found.mean == pytest.approx([0.07, 0, 0])
    assert found.high[1] == -found.low[1] == pytest.approx(1.96**2 / (100 + 1.96**2), abs=1e-4)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 100), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_p_value_never_contradicts_the_interval(more: int, less: int, same: int, level: float) -> None:
    if more + less + same == 0:
        return
    found = share_differences(differing(more, less, more + less + same)[:, None], level)
    low, high, p = found.low[0], found.high[0], found.p[0]
    assert (low > 0 or high < 0) == (p < 1 - level)
    assert -1 <= low <= found.mean[0] <= high <= 1


@pytest.mark.parametrize(
    ("first", "second", "n"), [(0.02, 0.01, 200), (0.05, 0.05, 50), (0.1, 0.02, 100), (0.2, 0.1, 20)]
)
def test_differences_are_held_often_enough(first: float, second: float, n: int) -> None:
    drawn = np.random.default_rng(n).multinomial(n, [first, second, 1 - first - second], size=4000)
    values = np.stack([differing(more, less, n) for more, less, _ in drawn], axis=1)
    found = share_differences(values)
    assert 0.93 <= np.mean((found.low <= first - second) & (first - second <= found.high)) <= 0.975


def test_missing_values_are_left_out() -> None:
    values = np.array([[1.0, np.nan], [0.0, np.nan], [np.nan, np.nan], [1.0, np.nan]])
    for procedure in (shares, share_differences):
        found, alone = procedure(values), procedure(values[[0, 1, 3], :1])
        assert found.n.tolist() == [3, 0]
        assert (found.low[0], found.high[0]) == (alone.low[0], alone.high[0])
        assert found.std[0] == pytest.approx(np.std([1, 0, 1]))
        assert np.isnan([found.mean[1], found.low[1], found.high[1], found.p[1]]).all()


def test_measures_have_the_procedure_that_is_theirs() -> None:
    ones = np.array([1.0, 0, 0, 1, 0, 1, 1, 1, np.nan])
    columns = {
        "tau:a~b": (ones, means),  # a number that happens to be 0 or 1
        "right:learnt": (ones, shares),
        "accuracy@0.1:lime": (ones, shares),
        "right_gain:learnt": (ones - 0.0, share_differences),
        "right:mean": (ones / 2, means),  # of several models
        "fall_gain:lime": (ones / 3, means),
        "auprc": (np.ones(9), means),
    }
    found = measured(list(columns), np.stack([values for values, _ in columns.values()], axis=1))
    for place, (values, procedure) in enumerate(columns.values()):
        own = procedure(values[:, None])
        for name, part in vars(own).items():
            np.testing.assert_array_equal(getattr(found, name)[place], part[0])
    assert measured([], np.empty((3, 0))).n.tolist() == []
