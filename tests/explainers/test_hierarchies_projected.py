"""From trees to words, and whether the words of a phrase count because they stand together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.explainers.phrase_trees import (
    TREES,
    Cohesion,
    Hedge,
    Projected,
    ordered_probabilities,
    scattered,
    word_scores,
)
from assay.trees import Phrase, Tree, levels_of
from tests import builders
from tests.explainers import games

TREE = Tree("x", levels_of([[[0, 3, 0.9]], [[0, 1, -0.3], [1, 3, 0.6]], [[0, 1, -0.3], [1, 2, 0.0], [2, 3, 0.3]]]))
QUICK = {"hedge": Projected(Hedge(window=1)), "acd": Projected(TREES["acd"])}


def test_a_word_has_the_mean_the_strongest_or_the_last_of_the_phrases_that_hold_it():
    assert word_scores(TREE).tolist() == pytest.approx([0.1, 0.5, 0.6])
    assert word_scores(TREE, "strongest").tolist() == [-0.3, 0.6, 0.6]
    assert word_scores(TREE, "words").tolist() == [-0.3, 0.0, 0.3]
    assert word_scores(Tree("x", TREE.levels[:1]), "strongest").tolist() == [0.9] * 3
    with pytest.raises(AssayError, match="did you mean 'mean'"):
        Projected(rule="meen")


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("kind", ["hierarchical-none", "transformer-sparse"])
def test_words_have_scores_padding_has_none_and_changes_nothing(name, kind):
    model, batch = builders.kind(kind, classes=3), builders.texts((6, 1, 3))
    scores = QUICK[name](model, batch, torch.tensor([2, 0, 1]))
    assert (scores[~batch.mask] == 0).all()
    assert (scores[0] != 0).all()
    wide = QUICK[name](model, builders.texts((6, 1, 3), width=9), torch.tensor([2, 0, 1]))
    torch.testing.assert_close(wide[:, :6], scores)


def test_an_empty_text_beside_others_has_no_scores():
    batch = builders.batch((3, 2))
    emptied = replace(batch, mask=batch.mask & torch.tensor([[True], [False]]))
    found = QUICK["hedge"](builders.model(), emptied, batch.labels)
    torch.testing.assert_close(found[:1], QUICK["hedge"](builders.model(), batch[:1], batch.labels[:1]))
    assert (found[1] == 0).all()


def test_on_a_known_game_the_words_that_decide_together_come_first():
    game = games.Game(6, lambda present: 0.1 + 0.7 * present[:, 1] * present[:, 2] + 0.05 * present[:, 4])
    batch, target = games.texts([[1, 2, 3, 4, 5, 6]])
    for name in TREES:
        ranked = Projected(TREES[name])(game, batch, target)[0].argsort(descending=True).tolist()
        assert set(ranked[:2]) == {1, 2}


def test_the_strongest_phrase_has_several_words_and_is_not_all():
    assert TREE.strongest == Phrase(1, 3, 0.6)
    assert Tree("x", TREE.levels[:1]).strongest is None
    assert Tree("x", levels_of([[[0, 2, 0.1]], [[0, 1, 0.2], [1, 2, 0.3]]])).strongest is None


def test_scattered_words_go_anywhere_and_the_others_keep_their_order():
    batch = builders.batch((5, 3))
    phrase = torch.tensor([[False, True, True, False, False], [False, True, False, False, False]])
    orders = scattered(batch, phrase, 4000)
    assert (orders.sort(-1).values == torch.arange(5)).all()
    assert (orders[1, :, 3:] == torch.tensor([3, 4])).all()
    for row, staying in enumerate(([0, 3, 4], [0, 2])):
        kept = orders[row][torch.isin(orders[row], torch.tensor(staying))].reshape(4000, -1)
        assert (kept == torch.tensor(staying)).all()
    seen = Counter(map(tuple, orders[0].tolist()))
    assert len(seen) == 20  # 5 · 4 ways to put two words among three
    assert max(abs(count - 200) for count in seen.values()) < 5 * 200**0.5
    wide = scattered(builders.batch((5, 3), width=8), torch.nn.functional.pad(phrase, (0, 3)), 4000)
    assert torch.equal(wide[..., :5], orders)


@torch.no_grad()
def test_texts_in_another_order_are_those_with_their_words_moved():
    model, batch = builders.kind("lstm", classes=3), builders.texts((4, 2))
    orders = torch.tensor([[[0, 1, 2, 3], [2, 0, 3, 1]], [[0, 1, 2, 3], [1, 0, 2, 3]]])
    found = ordered_probabilities(model, batch, orders)
    moved = replace(batch, ids=batch.ids.gather(1, orders[:, 1]))
    torch.testing.assert_close(found[:, 0], model(model.embed(batch), batch).probabilities)
    torch.testing.assert_close(found[:, 1], model(model.embed(moved), moved).probabilities)


def test_cohesion_is_nothing_where_order_is_nothing_and_else_the_mean_drop():
    batch = builders.batch((6, 9))
    trees = [
        Tree("x", levels_of([[[0, n, 0.0]], [[0, 2, 0.1], [2, 5, 0.9], [5, n, 0.2]]])) for n in batch.lengths.tolist()
    ]
    unordered = Cohesion(20)(builders.model(encoder="none"), batch, batch.labels, trees)
    np.testing.assert_allclose(unordered, 0, atol=1e-12)
    model = builders.model(encoder="lstm")
    found = Cohesion(20, seed=3)(model, batch, batch.labels, trees)
    phrase = torch.zeros_like(batch.mask)
    phrase[:, 2:5] = True
    for row, order in enumerate(scattered(batch, phrase, 20, seed=3)):
        texts = replace(
            batch[row : row + 1][torch.zeros(21).long()], ids=batch.ids[row][torch.cat([torch.arange(9)[None], order])]
        )
        with torch.no_grad():
            answers = model(model.embed(texts), texts).probabilities[:, batch.labels[row]]
        assert found[row] == pytest.approx(float(answers[0] - answers[1:].mean()), abs=1e-12)
        assert abs(found[row]) > 1e-6
    with pytest.raises(AssayError, match="shuffles must be at least 1"):
        Cohesion(0)
