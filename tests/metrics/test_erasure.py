from __future__ import annotations

import math

import numpy as np
import pytest

from assay.errors import AssayError
from assay.metrics.erasure import aopc, area, first_flip, grid, log_odds, normalised, ranks, sizes


def test_ranks_count_from_the_highest_and_equal_scores_by_position() -> None:
    scores = np.array([[0.5, 2.0, -3.0, 2.0], [0.0, 0.0, 9.0, 9.0]])
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=bool)
    assert ranks(scores, mask).tolist() == [[2, 0, 3, 1], [0, 1, 2, 3]]


def test_padding_comes_last_even_behind_infinitely_low_scores() -> None:
    scores = np.array([[-np.inf, 1.0, np.inf]])
    assert ranks(scores, np.array([[True, True, False]])).tolist() == [[1, 0, 2]]


def test_sizes_are_rounded_up_and_no_rounding_error_adds_a_token() -> None:
    assert sizes(np.array([1, 7, 20, 100])).tolist() == [
        [1, 1, 1, 1, 1],
        [1, 1, 1, 2, 4],
        [1, 1, 2, 4, 10],
        [1, 5, 10, 20, 50],
    ]
    assert 0.07 * 100 > 7
    assert sizes(np.array([100, 101]), (0.07,)).tolist() == [[7], [8]]


@pytest.mark.parametrize("length", [1, 2, 31, 32])
def test_short_texts_are_read_at_every_size(length: int) -> None:
    assert grid(np.array([length])).tolist() == [list(range(length + 1))]


@pytest.mark.parametrize("length", [33, 100, 833])
def test_long_texts_are_read_at_even_sizes_and_at_the_thresholds(length: int) -> None:
    points = grid(np.array([length]))[0]
    even = {round(length * step / 32) for step in range(33)}
    assert set(points) == even | {math.ceil(share * length) for share in (0.01, 0.05, 0.1, 0.2, 0.5)}
    assert (np.diff(points) > 0).all()


def test_a_row_is_read_alike_beside_any_other_row() -> None:
    lengths = np.array([1, 5, 32, 40, 200, 201])
    together = grid(lengths)
    for row, length in zip(together, lengths, strict=True):
        alone = grid(np.array([length]))[0]
        assert row[: len(alone)].tolist() == alone.tolist()
        assert (row[len(alone) :] == length).all()


def test_both_variants_of_aopc_are_those_of_their_papers() -> None:
    drops = np.array([[0.1, 0.2, 0.3, 0.4, 0.5]])
    assert aopc(drops) == pytest.approx(0.3)  # 1.5 / 5
    assert aopc(drops, "unirex") == pytest.approx(0.25)  # 1.5 / 6
    with pytest.raises(AssayError, match="eraser"):
        aopc(drops, "erasers")


def test_a_normalised_drop_is_a_share_of_what_the_text_adds() -> None:
    whole, empty = np.array([0.9, 0.9, 0.9, 0.6, 0.75]), np.array([0.5, 0.5, 0.85, 0.8, 0.65 - 1e-9])
    drops = np.array([0.1, -0.2, 0.01, 0.1, 0.1])
    found = normalised(drops, whole, empty)
    np.testing.assert_allclose(found, [0.25, -0.5, np.nan, np.nan, 1.0], rtol=1e-6)


def test_log_odds_keep_their_digits_near_certainty_and_stay_finite() -> None:
    assert log_odds(np.array(0.8), np.array(0.2)) == pytest.approx(math.log(4))
    tiny = 1e-9  # 1 - (1 - 1e-9) would have lost half its digits
    assert log_odds(np.array(1 - tiny), np.array(tiny)) == pytest.approx(-math.log(tiny), rel=1e-9)
    assert np.isfinite(log_odds(np.array([0.0, 1.0]), np.array([1.0, 0.0]))).all()


def test_the_first_flip_counts_neither_the_whole_text_nor_the_empty_one() -> None:
    share = np.array([0, 0.25, 0.5, 0.75, 1, 1])
    changed = np.array(
        [
            [0, 0, 1, 0, 1, 1],  # comes and goes: the first counts
            [0, 0, 0, 0, 1, 1],  # only when nothing is left
            [1, 0, 0, 0, 0, 0],
            [0, 1, 1, 1, 1, 1],
        ],
        dtype=bool,
    )
    found, flipped = first_flip(changed, np.tile(share, (4, 1)))
    assert found.tolist() == [0.5, 1, 1, 0.25]
    assert flipped.tolist() == [True, False, False, True]


def test_the_area_is_that_of_the_trapezoids() -> None:
    values, share = np.array([[1.0, 0.6, 0.2]]), np.array([[0.0, 0.25, 1.0]])
    assert area(values, share) == pytest.approx(0.25 * 0.8 + 0.75 * 0.4)


def test_repeated_points_have_no_area() -> None:
    values, share = np.array([0.9, 0.3, 0.2]), np.array([0, 0.5, 1.0])
    longer = np.append(values, [0.2, 0.2]), np.append(share, [1.0, 1.0])
    assert area(*longer) == pytest.approx(area(values, share)) == pytest.approx(0.3 + 0.125)
