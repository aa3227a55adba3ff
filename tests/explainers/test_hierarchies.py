"""Trees of phrases: against building them by hand on tiny texts, and what every one of them must be."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import factorial

import pytest
import torch

from assay.errors import AssayError
from assay.explainers.phrase_trees import SCORERS, TREES, Agglomerative, Cuts, Hedge, tree_builders
from assay.explainers.phrases import Alone, Versions, Without
from tests import builders
from tests.explainers import games

EVERY = pytest.mark.parametrize("name", TREES)


def borders(tree):
    """Where phrases end on each level."""
    return [[phrase.stop for phrase in level] for level in tree.levels]


def whole_scores(tree):
    return [phrase.score for level in tree.levels for phrase in level]


class Table:
    """A game whose values are looked up by hand."""

    def __init__(self, ids, seed=0):
        self.ids, self.game, self.known = ids, games.table(len(ids), seed), {}

    def __call__(self, places):
        key = frozenset(places)
        if key not in self.known:
            present = torch.zeros(1, len(self.ids), dtype=torch.float64)
            present[0, [self.ids[place] - 1 for place in key]] = 1
            self.known[key] = float(self.game.worth(present))
        return self.known[key]


def interaction(value, phrases, left, window, players):
    """The Shapley interaction of two neighbours among the phrases around them, written out."""
    first, second = (set(phrases[place]) for place in (left, left + 1))
    near = phrases[max(0, left - window) : left] + phrases[left + 2 : left + 2 + window]
    count = len(near) + 2 if players == "window" else len(phrases)
    total = 0.0
    for size in range(len(near) + 1):
        weight = factorial(size) * factorial(count - size - 2) / factorial(count - 1)
        for some in combinations(near, size):
            around = {place for phrase in some for place in phrase}
            together = value(around | first | second) - value(around | first) - value(around | second) + value(around)
            total += weight * together
    return total


def cut_by_hand(value, words, window, players):
    """The borders of each level, by trying all cuts of all phrases."""
    phrases, found = [list(range(words))], []
    for _ in range(words - 1):
        found.append([phrase[-1] + 1 for phrase in phrases])
        options = []
        for place, phrase in enumerate(phrases):
            for cut in range(1, len(phrase)):
                parted = [*phrases[:place], phrase[:cut], phrase[cut:], *phrases[place + 1 :]]
                options.append((interaction(value, parted, place, window, players), parted))
        phrases = min(options, key=lambda option: option[0])[1]
    return [*found, [phrase[-1] + 1 for phrase in phrases]]


@pytest.mark.parametrize("players", ["window", "text"])
@pytest.mark.parametrize("window", [0, 1, 2, 3])
def test_hedge_cuts_where_trying_everything_says(window, players):
    texts = [[3, 7, 1, 5, 2, 6, 4], [1, 2, 3, 4, 5, 6, 7], [7, 5, 3, 1, 2, 4, 6]]
    batch, target = games.texts(texts)
    found = Hedge(window, players)(games.table(7), batch, target)
    for ids, tree in zip(texts, found, strict=True):
        value = Table(ids)
        assert borders(tree) == cut_by_hand(value, 7, window, players)
        for level in tree.levels:
            for phrase in level:
                assert phrase.score == pytest.approx(2 * value(range(phrase.start, phrase.stop)) - 1)


@pytest.mark.parametrize("players", [None, 4])
def test_interactions_equal_the_sum_over_all_sets_around(players):
    ids = [3, 6, 1, 5, 2, 4]
    batch, target = games.texts([ids])
    cuts = Cuts(Versions(games.table(6), batch, target), window=2)
    cuts.interactions(players)
    cuts.made[0, 2] = cuts.made[0, 5] = True
    found = cuts.interactions(players)[0]
    whole = [[0, 1], [2, 3, 4], [5]]
    for place, phrase in enumerate(whole):
        for cut in range(1, len(phrase)):
            parted = [*whole[:place], phrase[:cut], phrase[cut:], *whole[place + 1 :]]
            expected = interaction(Table(ids), parted, place, 2, "window" if players is None else "text")
            assert float(found[phrase[cut]]) == pytest.approx(expected, abs=1e-12)
    assert (found.isfinite().nonzero()[:, 0] == torch.tensor([1, 3, 4])).all()


def test_nothing_interacts_in_an_additive_game():
    coefficients = torch.linspace(-0.05, 0.08, 8, dtype=torch.float64)
    batch, target = games.texts(games.shuffled(8, 3))
    cuts = Cuts(Versions(games.additive(coefficients, 0.4), batch, target), window=2)
    for place in (3, 6, 1):
        values = cuts.interactions()
        assert values[values.isfinite()].abs().max() < 1e-8
        cuts.made[:, place] = True


@EVERY
@pytest.mark.parametrize("scorer", ["occlusion", "alone"])  # a Shapley value shares what a pair does between the two
@pytest.mark.parametrize("first", range(6))
def test_a_pair_that_only_counts_together_is_parted_last(name, scorer, first):
    game = games.Game(7, lambda present: 0.1 + 0.7 * present[:, 0] * present[:, 1] + 0.02 * present[:, 2])
    ids = [3, 4, 5, 6, 7]
    batch, target = games.texts([[*ids[:first], 1, 2, *ids[first:]]])
    (tree,) = replace(TREES[name], scorer=SCORERS[scorer])(game, batch, target)
    assert first + 1 not in borders(tree)[-2]
    assert len(tree.levels[-2]) == 6


@EVERY
@pytest.mark.parametrize("kind", ["lstm", "hierarchical-gru", "paired-lstm", "transformer", "spans"])
def test_each_level_divides_one_phrase_of_the_level_above(name, kind):
    model, batch = builders.kind(kind, classes=3), builders.texts()
    found = TREES[name](model, batch, torch.tensor([2, 0, 1, 2]))
    for tree, length in zip(found, batch.lengths.tolist(), strict=True):
        assert (tree.words, tree.method) == (length, name)
        assert [len(level) for level in tree.levels] == list(range(1, length + 1))
        for above, below in pairwise(borders(tree)):
            assert set(above) < set(below)


@EVERY
@pytest.mark.parametrize("scorer", [None, "integrated_gradients", "cd"])
def test_padding_and_the_order_of_texts_change_nothing(name, scorer):
    model, batch = builders.kind("none", classes=3), builders.texts((5, 1, 3, 7))
    target = torch.tensor([2, 0, 1, 2])
    build = TREES[name] if scorer is None else replace(TREES[name], scorer=SCORERS[scorer])
    trees = build(model, batch, target)
    order = [2, 0, 3, 1]
    for other in (
        build(model, builders.texts((5, 1, 3, 7), width=11), target),
        [tree for row in range(4) for tree in build(model, batch[row : row + 1], target[row : row + 1])],
        sorted_back(build(model, batch[torch.tensor(order)], target[order]), order),
    ):
        assert [borders(tree) for tree in other] == [borders(tree) for tree in trees]
        for one, two in zip(other, trees, strict=True):
            assert whole_scores(one) == pytest.approx(whole_scores(two), abs=1e-9)


def sorted_back(trees, order):
    return [tree for _, tree in sorted(zip(order, trees, strict=True), key=lambda pair: pair[0])]


def test_hedge_reads_no_version_twice():
    class Remembering(games.Game):
        seen: list[tuple[float, ...]] = []  # noqa: RUF012

        def __call__(self, x, batch, edit=None):
            self.seen += [tuple(row[mask, 0].tolist()) for row, mask in zip(x, batch.mask, strict=True)]
            return super().__call__(x, batch, edit)

    game = Remembering(9, games.table(9).worth)
    batch, target = games.texts([[5, 1, 9, 3, 7, 2, 8, 4, 6]])
    Hedge()(game, batch, target)
    assert len(set(game.seen)) == len(game.seen) == game.reads
    assert game.reads < 8 * 64


@pytest.mark.parametrize("priority", ["interaction", "added"])
@pytest.mark.parametrize("scorer", [Without(), Alone()])
def test_agglomeration_joins_what_trying_everything_says(priority, scorer):
    ids = [3, 6, 1, 5, 2, 4]
    batch, target = games.texts([ids])
    value, words = Table(ids), range(6)

    def score(phrase):
        rest = [place for place in words if place not in phrase]
        return value(words) - value(rest) if isinstance(scorer, Without) else value(phrase) - value([])

    phrases, expected = [[place] for place in words], []
    while len(phrases) > 1:
        expected.append([phrase[-1] + 1 for phrase in phrases])
        gains = []
        for left, right in pairwise(phrases):
            both, one, two = score(left + right), score(left), score(right)
            gains.append(abs(both - one - two) if priority == "interaction" else max(both - one, both - two))
        best = gains.index(max(gains))
        phrases[best : best + 2] = [phrases[best] + phrases[best + 1]]
    (tree,) = Agglomerative(scorer, priority)(games.table(6), batch, target)
    assert borders(tree) == [[6], *expected[::-1]]
    for level in tree.levels:
        for phrase in level:
            assert phrase.score == pytest.approx(score(list(range(phrase.start, phrase.stop))), abs=1e-12)


def test_where_nothing_works_together_strong_words_stand_alone_longest():
    coefficients = torch.tensor([0.01, 0.02, 0.3, 0.015, -0.1], dtype=torch.float64)
    batch, target = games.texts([[1, 2, 3, 4, 5]])
    (tree,) = Agglomerative(Alone())(games.additive(coefficients), batch, target)
    assert borders(tree)[3] == [2, 3, 4, 5]
    assert borders(tree)[1] in ([2, 5], [3, 5])


@EVERY
def test_a_text_of_one_word_is_a_tree_and_one_without_words_is_refused(name):
    model = builders.model()
    (tree,) = TREES[name](model, builders.batch((1,)), torch.tensor([1]))
    assert [len(level) for level in tree.levels] == [1]
    assert tree.scores[0] != 0
    empty = replace(builders.batch((2, 1)), mask=torch.tensor([[True, True], [False, False]]))
    with pytest.raises(AssayError, match="without words"):
        TREES[name](model, empty, torch.tensor([1, 0]))


@EVERY
def test_single_precision_gives_the_same_tree(name):
    batch = builders.texts()
    double, single = (
        TREES[name](builders.kind("gru", dtype=dtype), batch, batch.labels) for dtype in (torch.float64, torch.float32)
    )
    for one, two in zip(double, single, strict=True):
        assert borders(one) == borders(two)
        assert whole_scores(one) == pytest.approx(whole_scores(two), abs=1e-5)


def test_trees_are_named_with_options_and_a_scorer():
    assert tree_builders(None) == {}
    assert tree_builders("hedge(window=1), acd") == {"hedge(window=1)": Hedge(window=1), "acd": TREES["acd"]}
    assert tree_builders("acd", "shapley(window=3)") == {
        "acd by shapley(window=3)": Agglomerative(replace(SCORERS["shapley"], window=3))
    }


@pytest.mark.parametrize(
    ("tree", "scorer", "hint"),
    [
        ("hegde", None, "did you mean 'hedge'"),
        ("hedge", "shaply", "did you mean 'shapley'"),
        (None, "alone", "name a tree as well"),
        ("hedge(window=9)", None, "0 to 3 phrases"),
        ("hedge(players=all)", None, "number of players"),
        ("hedge(removal=sponge)", None, "removal"),
        ("acd(priority=x)", None, "priority"),
        (",", None, "there are: hedge, acd"),
    ],
)
def test_a_mistake_gets_one_sentence(tree, scorer, hint):
    with pytest.raises(AssayError, match=hint):
        tree_builders(tree, scorer)


def test_a_scorer_that_a_model_cannot_serve_is_refused_by_the_tree():
    batch, target = games.texts([[1, 2, 3]])
    for build in TREES.values():
        scored = replace(build, scorer=SCORERS["integrated_gradients"])
        assert "no embedding for nothing" in scored.unfit(games.table(3))
        with pytest.raises(AssayError, match="no embedding for nothing"):
            scored(games.table(3), batch, target)
