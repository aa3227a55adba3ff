"""The one type of tree: what it refuses, what it says of its words, and how it is stored."""

from __future__ import annotations

import json

import pytest

from assay.trees import Phrase, Tree, levels_of

LEVELS = [
    [[0, 4, 0.5]],
    [[0, 1, -0.25], [1, 4, 0.75]],
    [[0, 1, -0.25], [1, 3, 0.125], [3, 4, 0.0]],
    [[0, 1, -0.25], [1, 2, 0.3], [2, 3, 0.4], [3, 4, 0.0]],
]


@pytest.mark.parametrize(
    "levels",
    [
        [],
        [[[0, 2, 1.0], [3, 4, 1.0]]],
        [[[0, 2, 1.0], [1, 4, 1.0]]],
        [[[1, 4, 1.0]]],
        [[[0, 4, 1.0]], [[0, 1, 1.0], [1, 3, 1.0]]],
        [[[0, 1, 1.0], [1, 4, 1.0]], [[0, 2, 1.0], [2, 4, 1.0]]],
        [[[0, 1, 1.0], [1, 4, 1.0]], [[0, 4, 1.0]]],
    ],
    ids=["nothing", "a gap", "an overlap", "a late start", "an early end", "other borders", "upside down"],
)
def test_what_is_no_hierarchy_of_partitions_is_refused(levels):
    with pytest.raises(ValueError, match="level"):
        Tree("x", levels_of(levels))


@pytest.mark.parametrize(("start", "stop"), [(2, 2), (3, 1), (-1, 2)])
def test_a_phrase_has_words(start, stop):
    with pytest.raises(ValueError, match="at least one word"):
        Phrase(start, stop)


def test_words_have_the_scores_of_the_lowest_level():
    tree = Tree("x", levels_of(LEVELS))
    assert tree.words == 4
    assert tree.scores == [-0.25, 0.3, 0.4, 0.0]
    assert Tree("x", levels_of(LEVELS[:2])).scores == [-0.25, 0.75, 0.75, 0.75]


def test_a_phrase_falls_into_parts_where_it_is_first_divided():
    tree = Tree("x", levels_of(LEVELS))
    assert tree.within(Phrase(1, 4)) == [Phrase(1, 3, 0.125), Phrase(3, 4, 0.0)]
    assert tree.within(Phrase(2, 3)) == []


def test_a_tree_is_stored_as_numbers_and_comes_back():
    tree = Tree("hedge", levels_of(LEVELS))
    assert Tree.of(json.loads(json.dumps(tree.json()))) == tree
