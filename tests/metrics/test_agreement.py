from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.metrics.agreement import kendall, sign_agreement, top_overlap

Metric = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def scipy_rows(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [stats.kendalltau(x[i, mask[i]], y[i, mask[i]]) for i in range(len(x))]
    return np.array([row.statistic for row in rows]), np.array([row.pvalue for row in rows])


def assert_like_scipy(x: np.ndarray, y: np.ndarray, mask: np.ndarray) -> None:
    result = kendall(x, y, mask)
    tau, p = scipy_rows(x, y, mask)
    np.testing.assert_allclose(result.tau, tau, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.p, p, rtol=0, atol=1e-12)


def ragged(generator: np.random.Generator, rows: int, size: int) -> np.ndarray:
    """Masks of every length from 0 on, with holes."""
    return generator.random((rows, size)) < np.linspace(0, 1.05, rows)[:, None]


@pytest.mark.parametrize("levels", [2, 3, 10, None])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 3, 20, 33, 34, 70])
def test_ragged_rows_agree_with_scipy(size: int, dtype: type, levels: int | None) -> None:
    generator = np.random.default_rng(size)
    x, y = generator.random((2, 60, size))
    if levels:
        x, y = np.floor(x * levels), np.floor(y * levels)
    assert_like_scipy(x.astype(dtype), y.astype(dtype), ragged(generator, 60, size))


def test_ties_on_one_side_only_agree_with_scipy() -> None:
    generator = np.random.default_rng(1)
    x, y = generator.random((2, 40, 25))
    mask = ragged(generator, 40, 25)
    assert_like_scipy(np.round(x, 1), y, mask)
    assert_like_scipy(x, np.round(y, 1), mask)


@pytest.mark.parametrize("size", [3, 33, 34, 169, 170, 171, 172, 300])
def test_rows_that_are_almost_sorted_agree_with_scipy(size: int) -> None:
    x = np.tile(np.arange(size, dtype=float), (6, 1))
    y = x.copy()
    y[1, [0, 1]] = y[1, [1, 0]]
    y[2, :3] = [1, 2, 0]
    y[3:] = -y[:3]
    assert_like_scipy(x, y, np.ones(x.shape, dtype=bool))
    # these p-values are far below 1e-12, so they are also compared relative to their size
    result = kendall(x, y, np.ones(x.shape, dtype=bool))
    np.testing.assert_allclose(result.p, scipy_rows(x, y, np.ones(x.shape, dtype=bool))[1], rtol=1e-9)


@settings(max_examples=200, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-300, 0.1, 2.0, np.inf]),
            st.floats(-2, 2, allow_nan=False, width=16),
            st.booleans(),
        ),
        min_size=1,
        max_size=45,
    )
)
@example([(-np.inf, 0.0, True), (np.inf, 1.0, True)])
def test_any_row_agrees_with_scipy(row: list[tuple[float, float, bool]]) -> None:
    x, y, mask = (np.array([column]) for column in zip(*row, strict=True))
    assert_like_scipy(x, y, mask)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_exact_p_is_the_share_of_orders_that_are_as_extreme(size: int) -> None:
    orders = np.array(list(permutations(range(size))), dtype=float)
    result = kendall(np.tile(np.arange(size, dtype=float), (len(orders), 1)), orders, np.ones(orders.shape, dtype=bool))
    extreme = abs(result.tau[None, :]) >= abs(result.tau[:, None]) - 1e-9
    np.testing.assert_allclose(result.p, extreme.mean(-1), atol=1e-12)


def test_tau_is_the_mean_sign_product_of_all_pairs() -> None:
    generator = np.random.default_rng(2)
    x, y = generator.integers(0, 5, (2, 30, 12)).astype(float)
    sign_x, sign_y = (np.sign(v[:, :, None] - v[:, None, :]) for v in (x, y))
    scale = np.sqrt((sign_x**2).sum((1, 2)) * (sign_y**2).sum((1, 2)))
    expected = (sign_x * sign_y).sum((1, 2)) / scale
    np.testing.assert_allclose(kendall(x, y, np.ones(x.shape, dtype=bool)).tau, expected, atol=1e-12)


def test_constant_and_too_short_rows_have_no_tau() -> None:
    x = np.array([[1.0, 1, 1], [1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]])
    y = np.array([[1.0, 2, 3], [5, 5, 5], [1, 2, 3], [1, 2, 3], [3, 2, 9]])
    mask = np.array([[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]], dtype=bool)
    result = kendall(x, y, mask)
    np.testing.assert_array_equal(result.tau, [np.nan, np.nan, np.nan, np.nan, -1])
    np.testing.assert_array_equal(result.p, [np.nan, np.nan, np.nan, np.nan, 1])


def test_what_stands_on_padding_changes_nothing() -> None:
    generator = np.random.default_rng(3)
    x, y = generator.integers(0, 9, (2, 50, 15)).astype(float)
    mask = ragged(generator, 50, 15)
    clean = kendall(x, y, mask)
    for dirt in (np.nan, np.inf, -np.inf, 4.0):
        dirty = kendall(np.where(mask, x, dirt), np.where(mask, y, -dirt), mask)
        np.testing.assert_array_equal(clean.tau, dirty.tau)
        np.testing.assert_array_equal(clean.p, dirty.p)


def test_a_missing_score_leaves_only_its_own_row_undefined() -> None:
    x = np.tile(np.arange(5.0), (3, 1))
    y = x.copy()
    y[1, 2] = np.nan
    result = kendall(x, y, np.ones(x.shape, dtype=bool))
    np.testing.assert_array_equal(result.tau, [1, np.nan, 1])
    assert np.isnan(result.p).tolist() == [False, True, False]


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_empty_batches_give_one_nan_a_row(shape: tuple[int, int]) -> None:
    result = kendall(np.zeros(shape), np.zeros(shape), np.ones(shape, dtype=bool))
    assert result.tau.shape == result.p.shape == (shape[0],)
    assert np.isnan(result.tau).all()


def test_very_long_rows_agree_with_scipy() -> None:
    generator = np.random.default_rng(4)
    x = generator.random((2, 50_000))
    y = x + 30 * generator.random(x.shape)
    x[1], y[1] = np.floor(4 * x[1]), np.floor(y[1])
    assert_like_scipy(x, y, np.ones(x.shape, dtype=bool))


def expected_overlap(x: np.ndarray, y: np.ndarray, size: int) -> float:
    """The mean over every way to break ties, in x and in y apart."""
    chosen = [
        [set(sorted(order, key=lambda place: -values[place])[:size]) for order in permutations(range(len(values)))]
        for values in (x.tolist(), y.tolist())
    ]
    return float(np.mean([len(one & other) for one in chosen[0] for other in chosen[1]])) / size


@pytest.mark.parametrize("levels", [2, 100])
@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_the_overlap_is_the_mean_over_all_ways_to_break_ties(share: float, levels: int) -> None:
    generator = np.random.default_rng(levels)
    x, y = generator.integers(-levels, levels, (2, 4, 5)).astype(float)
    mask = np.arange(5) < np.array([1, 3, 4, 5])[:, None]
    sizes = [max(1, round(share * n)) for n in mask.sum(-1)]
    expected = [expected_overlap(x[i, mask[i]], y[i, mask[i]], sizes[i]) for i in range(4)]
    np.testing.assert_allclose(top_overlap(x, y, mask, share), expected, atol=1e-12)


def test_a_fifth_of_the_words_is_compared() -> None:
    x = np.arange(10.0)[None]
    mask = np.ones((1, 10), dtype=bool)
    assert top_overlap(x, x, mask) == 1
    assert top_overlap(x, -x, mask) == 0
    swapped = x.copy()
    swapped[0, [7, 8]] = swapped[0, [8, 7]]  # two are compared, and now one of them is another
    assert top_overlap(x, swapped, mask) == 0.5


def test_signs_are_compared_where_both_have_one() -> None:
    x = np.array([[1.0, -2.0, 0.0, 3.0, -1.0, -9.0], [1, 2, 3, 4, 5, 6], [-1, 0, 0, 0, 0, 0], [-1, 1, 1, 1, 1, 1]])
    y = np.array([[2.0, 3.0, -1.0, 0.0, -1.0, 9.0], [1, -2, 3, 4, 5, 6], [0, -1, 0, 0, 0, 0], [-1, -1, 1, 1, 1, 1]])
    mask = np.ones(x.shape, dtype=bool)
    mask[0, 5] = False
    x, y, mask = (np.concatenate([one, other[1:2]]) for one, other in ((x, y), (y, x), (mask, mask)))
    # of row 0, tokens 0, 1 and 4 have two signs, and 0 and 4 the same ones; row 2 never meets;
    # x has no sign in row 1, and y none in the last
    np.testing.assert_allclose(sign_agreement(x, y, mask), [2 / 3, np.nan, np.nan, 5 / 6, np.nan])


@pytest.mark.parametrize("metric", [top_overlap, sign_agreement])
def test_overlap_and_signs_do_not_see_padding_and_need_every_score(metric: Metric) -> None:
    generator = np.random.default_rng(5)
    x, y = generator.normal(size=(2, 30, 8))
    mask = ragged(generator, 30, 8)
    clean = metric(x, y, mask)
    assert np.isfinite(clean).sum() > 10
    for dirt in (np.nan, np.inf, -1.0, 0.0):
        np.testing.assert_array_equal(clean, metric(np.where(mask, x, dirt), np.where(mask, y, -dirt), mask))
    x[mask] = np.where(generator.random(mask.sum()) < 0.1, np.nan, x[mask])
    missing = (np.isnan(x) & mask).any(-1)
    assert missing.any()
    np.testing.assert_array_equal(metric(x, y, mask), np.where(missing, np.nan, clean))
