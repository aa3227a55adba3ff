from __future__ import annotations

import numpy as np

from assay.metrics.erasure import economy, shortest

SIZES = (1, 2, 4, 8)


def test_the_shortest_is_the_first_size_that_reaches() -> None:
    curve = np.random.default_rng(0).normal(0.5, 0.4, (20, 5, 4))
    found = shortest(curve, SIZES, 0.75)
    for text in range(20):
        for ranking in range(5):
            there = [size for size, value in zip(SIZES, curve[text, ranking], strict=True) if value >= 0.75]
            assert found[text, ranking] == (there[0] if there else 16)


def test_economy_is_the_fewest_known_words_as_a_share_of_its_own() -> None:
    needed = np.array([[1, 2, 4, 16], [8, 4, 2, 16]])
    known = needed[:, 2:]
    by_hand = [[1 / 1, 2 / 2, 4 / 4, 4 / 16], [2 / 8, 2 / 4, 2 / 2, 2 / 16]]
    np.testing.assert_allclose(economy(needed, known), by_hand)
