"""The covering design that contracts are run over covers what it says."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.contracts.covering import chosen

PAIRS = [
    (f"member{row}", f"kind{column}")
    for row in range(40)
    for column in range(9)
    if row * column % 7 != 1 and column > row - 38
]


@pytest.mark.parametrize("turn", range(4))
def test_every_member_and_every_kind_is_met_often_enough_and_few_pairs_do_it(turn):
    cover = chosen(PAIRS, 3, turn)
    assert cover <= set(PAIRS)
    for axis in (0, 1):
        there = Counter(pair[axis] for pair in PAIRS)
        met = Counter(pair[axis] for pair in cover)
        assert all(met[one] >= min(3, count) for one, count in there.items())
    assert len(cover) < len(PAIRS) / 2


def test_kinds_are_met_about_equally_often():
    met = Counter(kind for _, kind in chosen(PAIRS, 3))
    assert max(met.values()) <= 2 * min(met.values())


def test_another_turn_meets_other_pairs():
    assert len(chosen(PAIRS, 3, 0) | chosen(PAIRS, 3, 1)) > 1.5 * len(chosen(PAIRS, 3, 0))


def test_a_design_is_the_same_at_each_call():
    assert chosen(PAIRS, 3, 2) == chosen(PAIRS, 3, 2)
