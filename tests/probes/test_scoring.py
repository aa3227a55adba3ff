"""Intervals agree with those of scipy, and widen where answers depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from assay.probes.observation import named, spread, wilson


@pytest.mark.parametrize("right, count", [(0, 5), (5, 5), (3, 7), (40, 90), (1, 1)])
def test_independent_answers_have_wilsons_interval(right: int, count: int) -> None:
    found = wilson(np.arange(count) < right, np.arange(count))
    expected = binomtest(right, count).proportion_ci(0.95, "wilson")
    assert found.share == right / count
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_answers_that_always_agree_count_once() -> None:
    right, group = np.arange(20) < 13, np.arange(20)
    once, thrice = wilson(right, group), wilson(np.repeat(right, 3), np.repeat(group, 3))
    assert (once.low, once.high) == pytest.approx((thrice.low, thrice.high))
    alone = wilson(np.repeat(right, 3), np.arange(60))
    assert thrice.low < alone.low < alone.high < thrice.high


def test_no_answers_have_no_share() -> None:
    assert np.isnan(wilson(np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)).share)


def test_random_labellings_are_told_by_their_mean_and_what_most_lie_between() -> None:
    found = spread([position / 100 for position in range(101)])
    assert (found.share, found.low, found.high) == pytest.approx((0.5, 0.025, 0.975))


def test_heads_are_counted_from_one() -> None:
    assert [named(head, 12, 3) for head in (0, 5, 11)] == [
        {"layer": 0, "head": 0},
        {"layer": 1, "head": 1},
        {"layer": 2, "head": 3},
    ]
