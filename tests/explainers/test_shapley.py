"""Shapley values against all orders one by one, the axioms, captum, and their own standard errors."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
import torch
from captum.attr import ShapleyValues

from assay.errors import AssayError
from assay.explainers.shapley import PAIRS, Shapley
from assay.models.encoders import ENCODERS
from assay.types import Batch
from tests import builders
from tests.explainers import games


def answer(model, ids, target):
    """p(target) for a text with these ids alone."""
    if len(ids) == 0:  # nothing to attend to: the zero context
        return model.decoder.bias.softmax(-1)[target]
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    return model(model.embed(batch), batch).probabilities[0, target]


@torch.no_grad()
def over_orders(model, ids, target):
    """Each token's contribution, averaged over every order, all texts read one at a time."""
    values = torch.zeros(len(ids), dtype=torch.float64)
    places = range(len(ids))
    worth = {
        part: answer(model, ids[list(part)], target)
        for size in (*places, len(ids))
        for part in combinations(places, size)
    }
    orders = list(permutations(places))
    for order in orders:
        for count, token in enumerate(order):
            before, after = (worth[tuple(sorted(order[:end]))] for end in (count, count + 1))
            values[token] += (after - before) / len(orders)
    return values


@pytest.mark.parametrize("encoder", ENCODERS)
def test_exact_values_equal_the_mean_over_all_orders(encoder):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch((5, 1, 3), width=7)
    target = torch.tensor([2, 0, 1])
    found = Shapley().attribute(model, batch, target)
    for row, length in enumerate([5, 1, 3]):
        expected = over_orders(model, batch.ids[row, :length], target[row])
        torch.testing.assert_close(found.scores[row, :length].double(), expected, atol=1e-7, rtol=1e-6)
    assert (found.scores[~batch.mask] == 0).all()
    assert (found.numbers["exact"] == 1).all()
    assert (found.errors == 0).all()


def test_the_axioms_hold_in_a_game_of_five():
    """Players 1 and 2 are alike, player 3 does nothing, 4 and 5 only count together."""

    def worth(present):
        one, two, _, four, five = present.unbind(-1)
        return 0.1 + 0.3 * torch.maximum(one, two) + 0.4 * four * five

    batch, target = games.texts([[3, 1, 5, 2, 4]])
    three, one, five, two, four = Shapley()(games.Game(5, worth), batch, target)[0].tolist()
    assert three == pytest.approx(0, abs=1e-7)
    assert (one, two) == pytest.approx((0.15, 0.15), abs=1e-6)
    assert (four, five) == pytest.approx((0.2, 0.2), abs=1e-6)


@pytest.mark.parametrize("exact", [0, 10])
def test_the_scores_sum_to_what_the_whole_text_adds(exact):
    model, batch = builders.model(), builders.batch((7, 1, 4, 12))
    with torch.no_grad():
        whole = model(model.embed(batch), batch).probabilities
    none = model.decoder.bias.softmax(-1)
    scores = Shapley(exact=exact)(model, batch, batch.labels)
    expected = whole.gather(1, batch.labels[:, None])[:, 0] - none[batch.labels]
    torch.testing.assert_close(scores.sum(-1).double(), expected.detach(), atol=1e-6, rtol=1e-5)


def test_sampled_values_lie_around_the_exact_ones_as_their_standard_errors_say():
    rows = games.shuffled(8, 150)
    batch, target = games.texts(rows)
    game = games.table(8)
    truth = games.by_player(Shapley()(game, batch[:1], target[:1]), rows[:1])
    found = Shapley(exact=0, samples=560).attribute(game, batch, target)
    scores, errors = games.by_player(found.scores, rows), games.by_player(found.errors, rows)
    covered = ((scores - truth).abs() <= 1.96 * errors).float().mean()
    assert 0.91 < covered < 0.97
    assert (scores.mean(0) - truth[0]).abs().max() < 4 * errors.mean() / 150**0.5
    torch.testing.assert_close(found.numbers["standard_error"], found.errors.mean(-1))
    assert (found.numbers["exact"] == 0).all()


def test_an_order_and_its_reverse_are_followed_together():
    """What pairs of players do together cancels within such a pair of orders, so nothing is left to chance."""
    pairs = torch.rand(12, 12, dtype=torch.float64).triu(1) / 100
    game = games.Game(12, lambda present: 0.1 + ((present @ pairs) * present).sum(-1))
    batch, target = games.texts([list(range(1, 13))])
    found = Shapley(exact=0).attribute(game, batch, target)
    expected = (pairs.sum(0) + pairs.sum(1)) / 2
    torch.testing.assert_close(found.scores[0].double(), expected, atol=1e-7, rtol=1e-5)
    assert found.errors.max() < 1e-7


@pytest.mark.parametrize(("players", "samples"), [(12, 220), (12, 1), (30, 600)])
def test_no_more_is_read_than_was_asked_for(players, samples):
    game = games.additive(torch.full((players,), 0.01, dtype=torch.float64))
    batch, target = games.texts([list(range(1, players + 1))])
    Shapley(exact=0, samples=samples)(game, batch, target)
    pairs = max(PAIRS, samples // (2 * players - 2))
    assert game.reads == 2 + pairs * 2 * (players - 1)


def test_captum_gives_the_same_values_for_blank_tokens():
    model, batch = builders.model(encoder="cnn"), builders.batch((4, 3))
    scores = Shapley(removal="zero")(model, batch, batch.labels)
    for row, label in enumerate(batch.labels.tolist()):
        probability, x, mask = games.peer(model, batch, row, label)
        expected = ShapleyValues(probability).attribute(x, feature_mask=mask, perturbations_per_eval=4)[0, :, 0]
        torch.testing.assert_close(scores[row, : len(expected)], expected.to(scores.dtype), atol=1e-6, rtol=1e-5)


def test_too_many_tokens_for_exact_values_are_refused():
    with pytest.raises(AssayError, match="at most 20"):
        Shapley(exact=21)
