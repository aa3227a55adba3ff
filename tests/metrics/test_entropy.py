"""Normalised entropy against scipy's, and where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay.metrics.information import normalised_entropy


def test_it_is_scipys_entropy_over_the_logarithm_of_the_number_of_tokens():
    random = np.random.default_rng(0)
    lengths = np.array([2, 5, 9, 9])
    values, mask = random.random((3, 4, 9)), np.arange(9) < lengths[:, None]
    found = normalised_entropy(values, mask)
    for place in np.ndindex(3, 4):
        length = lengths[place[1]]
        assert found[place] == pytest.approx(stats.entropy(values[place][:length], base=length), abs=1e-12)


def test_all_alike_is_1_and_a_single_one_is_0():
    values = np.array([[0.2] * 4, [0, 7.0, 0, 0]])
    assert normalised_entropy(values, np.ones((2, 4), dtype=bool)).tolist() == [1, 0]


def test_half_of_the_tokens_alike_is_less_by_one_bit():
    values = np.repeat([1.0, 0.0], 8)[None]
    assert normalised_entropy(values, np.ones((1, 16), dtype=bool)) == pytest.approx([3 / 4])


def test_what_stands_on_padding_and_the_scale_change_nothing():
    values, mask = np.array([[1.0, 2.0, 3.0, 99.0]]), np.array([[True, True, True, False]])
    expected = normalised_entropy(values[:, :3], mask[:, :3])
    for scale in (1.0, 1e-300, 1e300):
        assert normalised_entropy(values * scale, mask) == pytest.approx(expected, abs=1e-12)


def test_it_is_undefined_without_a_choice_or_without_any_value():
    values = np.array([[1.0, 5.0], [0.0, 0.0], [1.0, np.nan], [1.0, 1.0]])
    mask = np.array([[True, False], [True, True], [True, True], [False, False]])
    assert np.isnan(normalised_entropy(values, mask)).all()
