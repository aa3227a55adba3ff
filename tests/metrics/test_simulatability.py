"""LAS by hand, against a second way to compute it, and where a stratum is empty."""

from __future__ import annotations

import numpy as np
import pytest

from assay.metrics.performance import simulatability


def flags(text: str) -> np.ndarray:
    return np.array([letter == "1" for letter in text])


def test_las_is_the_plain_mean_of_both_strata() -> None:
    #                  leaked   nonleaked
    both, example, explanation = flags("111110" + "10"), flags("100011" + "00"), flags("111111" + "00")
    found = simulatability(both, example, explanation)
    assert found.gain == (pytest.approx(2 / 6), pytest.approx(1 / 2))
    assert found.las == pytest.approx((2 / 6 + 1 / 2) / 2)
    assert found.raw == pytest.approx(3 / 8)
    assert found.count == (6, 2) and found.empty == ()


def resampled(both: np.ndarray, example: np.ndarray, explanation: np.ndarray, places: np.ndarray) -> float:
    """LAS of some examples, stratum by stratum."""
    gain, leaked = (both.astype(float) - example)[places], explanation[places]
    return float(np.mean([gain[part].mean() for part in (leaked, ~leaked) if part.any()]))


def test_las_and_its_interval_agree_with_resampling_examples_one_by_one() -> None:
    random = np.random.default_rng(1)
    both, example, explanation = random.random((3, 150)) < np.array([[0.8], [0.6], [0.7]])
    found = simulatability(both, example, explanation, resamples=20_000)
    assert found.las == pytest.approx(resampled(both, example, explanation, np.arange(150)))
    drawn = [resampled(both, example, explanation, random.integers(150, size=150)) for _ in range(4000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))


def test_explanations_that_all_copy_the_label_leave_the_nonleaked_stratum_empty() -> None:
    found = simulatability(flags("1111"), flags("0110"), flags("1111"))
    assert found.empty == ("nonleaked",) and found.count == (4, 0)
    assert found.las == found.gain[0] == 0.5
    assert np.isnan(found.gain[1]) and np.isfinite([found.low, found.high]).all()


def test_resamples_that_miss_a_small_stratum_leave_it_out() -> None:
    found = simulatability(flags("111"), flags("010"), flags("110"))
    assert np.isfinite([found.low, found.high]).all() and found.low <= found.las <= found.high


def test_without_examples_nothing_is_known() -> None:
    nothing = np.zeros(0, dtype=bool)
    found = simulatability(nothing, nothing, nothing)
    assert np.isnan(found.las) and found.empty == ("leaked", "nonleaked")
