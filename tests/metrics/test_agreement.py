from __future__ import annotations

import warnings
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.metrics.agreement import kendall


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


@settings(max_examples=200, deadline=None, derandomize=True)
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
