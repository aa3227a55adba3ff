from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import wilcoxon

from assay.metrics.paired import signed_rank, tied


def enumerated(differences: np.ndarray) -> float:
    """The share of all ways to give signs whose rank sum is as far from the middle."""
    ranks = np.abs(differences).argsort().argsort() + 1
    middle = ranks.sum() / 2
    observed = abs(ranks[differences > 0].sum() - middle)
    sums = [abs((np.array(signs) * ranks).sum() - middle) for signs in product((0, 1), repeat=len(ranks))]
    return float(np.mean(np.array(sums) >= observed - 1e-9))


@pytest.mark.parametrize("seed", range(5))
def test_the_p_value_is_the_share_of_signs_that_are_as_extreme(seed: int) -> None:
    differences = np.random.default_rng(seed).normal(0.3, 1, 9)
    assert signed_rank(differences) == pytest.approx(enumerated(differences))


@pytest.mark.parametrize("seed", range(5))
def test_tied_ranks_are_shared_as_scipy_does(seed: int) -> None:
    differences = np.random.default_rng(seed).integers(-3, 4, 6) + 0.5
    assert signed_rank(differences) == pytest.approx(wilcoxon(differences).pvalue)


def test_a_worked_example() -> None:
    # ranks 1 to 5, all above 0: of 32 ways to give signs, two are as extreme
    assert signed_rank(np.array([0.1, 0.2, 0.3, 0.4, 0.5])) == pytest.approx(2 / 32)


def test_missing_differences_and_nothing_are_left_out() -> None:
    some = np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6])
    padded = np.concatenate([some, [np.nan, 0.0, 1e-9, -1e-12, np.nan]])
    assert signed_rank(padded) == signed_rank(some) == pytest.approx(enumerated(some))


def test_no_difference_at_all_is_no_evidence() -> None:
    assert signed_rank(np.zeros(20)) == 1.0
    assert signed_rank(np.array([0.0, np.nan])) == 1.0
    assert np.isnan(signed_rank(np.array([np.nan, np.nan])))
    assert np.isnan(signed_rank(np.array([])))


def test_the_sign_does_not_matter_and_the_size_of_a_sample_does() -> None:
    generator = np.random.default_rng(0)
    differences = generator.normal(0.3, 1, 400)
    assert signed_rank(differences) == pytest.approx(signed_rank(-differences))
    assert signed_rank(differences) < 0.001 < signed_rank(differences[:10])


def test_a_column_ties_with_the_best_where_paired_differences_do_not_decide() -> None:
    generator = np.random.default_rng(1)
    example = generator.normal(0, 5, 200)  # what all columns share is no difference between them
    noise = generator.normal(0, 0.1, (200, 3))
    values = example[:, None] + noise - noise.mean(0) + np.array([1.0, 1.0, 0.9])
    assert tied(values, best=0).tolist() == [True, True, False]
    unpaired = values.copy()
    unpaired[:, 2] = generator.permutation(unpaired[:, 2])
    assert tied(unpaired, best=0).tolist() == [True, True, True]


def test_ties_are_the_intervals_that_hold_zero() -> None:
    generator = np.random.default_rng(2)
    values = generator.normal(0, 1, (40, 6)) + np.linspace(0, 0.8, 6)
    draws = np.random.default_rng(3).integers(0, 40, (4000, 40))
    means = (values - values[:, 5:])[draws].mean(1)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    clear = np.minimum(abs(low), abs(high)) > 0.03  # two bootstraps differ a little
    assert clear.sum() >= 3
    assert (tied(values, best=5)[clear] == ((low <= 0) & (high >= 0))[clear]).all()
    assert len({*tied(values, best=5).tolist()}) == 2


def test_only_examples_with_both_numbers_are_compared() -> None:
    values = np.array([[1.0, 1.0, np.nan], [2.0, 2.0, np.nan], [3.0, np.nan, 9.0], [np.nan, 9.0, 9.0]])
    assert tied(values, best=0).tolist() == [True, True, False]
    assert tied(values[:2], best=0).tolist() == [True, True, False]
