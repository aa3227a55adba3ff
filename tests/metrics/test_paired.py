"""Which columns may be as good as the best: promises over many families, and a bootstrap of the same set."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from assay.metrics import comparisons as paired
from assay.metrics.comparisons import tied


def family(random: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Numbers of equally good columns that share what is due to the example."""
    return random.normal(0, 2, (n, 1)) + random.normal(size=(n, k))


def called_worse(values: np.ndarray) -> bool:
    return not tied(values, int(np.nanmean(values, axis=0).argmax())).all()


@pytest.mark.parametrize("k", [3, 12])
def test_of_equal_columns_any_is_called_worse_in_5_of_100_families(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "DRAWS", 2000)
    random = np.random.default_rng(k)
    wrong = [called_worse(family(random, 60, k)) for _ in range(800)]
    assert 0.02 <= np.mean(wrong) <= 0.075


def test_two_columns_are_told_apart_as_students_test_does() -> None:
    random = np.random.default_rng(0)
    for shift in np.linspace(0, 0.6, 40):
        values = family(random, 50, 2) - [0, shift]
        best = int(values.mean(0).argmax())
        p = stats.ttest_rel(values[:, 0], values[:, 1]).pvalue
        if not 0.045 < p < 0.055:  # the limit is drawn
            assert tied(values, best)[1 - best] == (p > 0.05)


def resampled(values: np.ndarray, best: int) -> set[int]:
    """The set of Hansen, Lunde and Nason (2011) as they make it: by bootstrap, one column at a time."""
    n, inside = len(values), set(range(values.shape[1]))
    picks = np.random.default_rng(1).integers(n, size=(2000, n))
    drawn = np.stack([column[picks].mean(1) - column.mean() for column in values.T], axis=1)
    mean = values.mean(0)

    def apart(one: int, other: int) -> tuple[float, np.ndarray]:
        error = (drawn[:, one] - drawn[:, other]).std()
        return (mean[other] - mean[one]) / error, np.abs(drawn[:, one] - drawn[:, other]) / error

    while len(inside) > 1:
        limit = np.quantile(np.max([apart(*pair)[1] for pair in combinations(inside, 2)], axis=0), 0.95)
        worst = max(inside - {best}, key=lambda place: apart(place, best)[0])
        if apart(worst, best)[0] <= limit:
            break
        inside -= {worst}
    return inside


@pytest.mark.parametrize("seed", range(5))
def test_the_set_is_that_of_a_bootstrap(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = family(random, 300, 6) - np.array([0, 0.02, 0.15, 0.5, 0.6, 0.9])
    best = int(values.mean(0).argmax())
    found = {int(place) for place in np.flatnonzero(tied(values, best))}
    assert found == resampled(values, best)
    assert {best} <= found <= {0, 1, 2}


def test_a_column_leaves_more_easily_once_worse_ones_have_left() -> None:
    random = np.random.default_rng(3)
    close = family(random, 200, 2)
    close += [0, close[:, 0].mean() - close[:, 1].mean() - 0.25]  # 2.5 standard errors behind
    many = family(random, 200, 10)
    assert tied(close, 0).tolist() == [True, False]
    assert tied(np.hstack([close, many - many.mean(0) + close[:, 0].mean() - 0.05]), 0)[1]
    assert tied(np.hstack([close, many - many.mean(0) - 9]), 0).tolist() == [True, False] + [False] * 10


def test_what_all_columns_share_is_no_difference_between_them() -> None:
    generator = np.random.default_rng(1)
    example = generator.normal(0, 5, 200)
    noise = generator.normal(0, 0.1, (200, 3))
    values = example[:, None] + noise - noise.mean(0) + np.array([1.0, 1.0, 0.9])
    assert tied(values, best=0).tolist() == [True, True, False]
    unpaired = values.copy()
    unpaired[:, 2] = generator.permutation(unpaired[:, 2])
    assert tied(unpaired, best=0).tolist() == [True, True, True]


def test_equal_columns_tie_and_a_constant_difference_does_not() -> None:
    level = np.random.default_rng(2).normal(size=30)
    values = np.stack([level, level, level - 1e-9, level - 0.01, level + 0.01], axis=1)
    assert tied(values, best=0).tolist() == [True, True, True, False, True]


def test_only_examples_with_both_numbers_are_compared() -> None:
    random = np.random.default_rng(4)
    values = family(random, 400, 3) - [0, 0, 0.5]
    values[:150, 1] = np.nan
    values[100:390, 2] = np.nan
    values[:100, 0] = np.nan
    assert tied(values, best=0).tolist() == [True, True, True]  # ten examples tell nothing
    apart = np.array([[1.0, 1.0, np.nan], [2.0, 2.0, np.nan], [3.0, np.nan, np.nan], [np.nan, 9.0, 9.0]])
    assert tied(apart, best=0).tolist() == [True, True, False]
    apart[0, 2] = -5
    assert tied(apart, best=0).tolist() == [True, True, True]  # nor does one


def test_rows_that_are_made_fewer_have_the_same_products() -> None:
    random = np.random.default_rng(5)
    values = family(random, 500, 4)
    values[random.random(500) < 0.3, 1] = np.nan
    values[:3, 3] = np.nan
    rows, present = paired._short(values)
    assert len(rows) < 20
    for one, other in combinations(range(4), 2):
        both = ~np.isnan(values[:, one] + values[:, other])
        shared = present[:, one] & present[:, other]
        whole = np.column_stack([np.ones(both.sum()), values[both, one], values[both, other]])
        short = rows[shared][:, [0, 1 + one, 1 + other]]
        np.testing.assert_allclose(short.T @ short, whole.T @ whole, rtol=1e-9, atol=1e-9)


def test_the_seed_decides() -> None:
    values = family(np.random.default_rng(6), 80, 5)
    assert (tied(values, 0, seed=1) == tied(values, 0, seed=1)).all()
