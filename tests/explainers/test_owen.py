"""Owen values against all orders that keep the halves of a text together."""

from __future__ import annotations

import pytest
import torch

from assay import costs
from assay.explainers.shapley import Owen, Shapley
from tests import builders
from tests.explainers import games


def orders(players):
    """The orders in which each node's players come one after the other."""
    if len(players) == 1:
        return [players]
    middle = (len(players) + 1) // 2
    pairs = [(one, other) for one in orders(players[:middle]) for other in orders(players[middle:])]
    return [one + other for one, other in pairs] + [other + one for one, other in pairs]


def over_orders(game, players):
    """Each player's contribution, averaged over these orders."""
    values = torch.zeros(game.players, dtype=torch.float64)
    allowed = orders(players)
    for order in allowed:
        present = torch.zeros(1, game.players, dtype=torch.float64)
        before = game.worth(present)
        for player in order:
            present[0, player - 1] = 1
            after = game.worth(present)
            values[player - 1] += float(after - before) / len(allowed)
            before = after
    return values


@pytest.mark.parametrize("players", [1, 2, 3, 5, 6, 7, 8])
def test_values_equal_the_mean_over_all_orders_that_keep_halves_together(players):
    game = games.table(players)
    batch, target = games.texts([list(range(1, players + 1))])
    found = Owen().attribute(game, batch, target)
    expected = over_orders(game, list(range(1, players + 1)))
    torch.testing.assert_close(found.scores[0].double(), expected, atol=1e-7, rtol=1e-6)
    assert found.numbers["exact"].item() == 1


def test_texts_of_all_lengths_are_explained_together():
    batch, target = games.texts([[4, 1, 3, 2, 5, 6], [6, 5, 4, 3, 2, 1], [2, 3, 1, 0, 0, 0]])
    batch.mask[2, 3:] = False
    game = games.table(6)
    scores = Owen()(game, batch, target)
    for row, players in enumerate([[4, 1, 3, 2, 5, 6], [6, 5, 4, 3, 2, 1], [2, 3, 1]]):
        expected = over_orders(game, players)[[player - 1 for player in players]]
        torch.testing.assert_close(scores[row, : len(players)].double(), expected, atol=1e-7, rtol=1e-6)


def test_they_are_shapley_values_where_tokens_do_not_act_together():
    game = games.additive(torch.linspace(-0.02, 0.03, 20, dtype=torch.float64), start=0.3)
    batch, target = games.texts(games.shuffled(20, 3))
    torch.testing.assert_close(Owen()(game, batch, target), Shapley()(game, batch, target), atol=1e-6, rtol=1e-5)


def test_halves_that_act_together_share_before_their_tokens_do():
    """Player 1 counts only with 5..8: half the worth is player 1's, the rest is shared by the other half."""

    def worth(present):
        return 0.1 + 0.8 * present[:, 0] * present[:, 4:].amax(-1)

    batch, target = games.texts([list(range(1, 9))])
    expected = torch.tensor([[0.4, 0, 0, 0, 0.1, 0.1, 0.1, 0.1]], dtype=torch.float64)
    torch.testing.assert_close(Owen()(games.Game(8, worth), batch, target), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("reads", "used", "expected"),
    [
        (28, 28, [0.015, 0.015, 0.2, 0.1, 0.015, 0.015, -0.2, 0.1]),
        (27, 20, [0.015, 0.015, 0.2, 0.1, 0.015, 0.015, -0.05, -0.05]),
        (12, 12, [0.015, 0.015, 0.15, 0.15, 0.015, 0.015, -0.05, -0.05]),
    ],
)
def test_when_reading_ends_the_weightiest_nodes_are_split_and_the_others_share(reads, used, expected):
    """A root of 8 tokens takes 2 + 2 reads to split, its halves 8, and each of its quarters 8."""
    worths = torch.tensor([0.01, 0.02, 0.2, 0.1, 0.0, 0.03, -0.2, 0.1], dtype=torch.float64)
    batch, target = games.texts([list(range(1, 9))])
    game = games.additive(worths, start=0.5)
    found = Owen(reads=reads).attribute(game, batch, target)
    torch.testing.assert_close(found.scores, torch.tensor([expected], dtype=torch.float64), atol=1e-6, rtol=1e-5)
    assert found.numbers["exact"].item() == 0
    assert game.reads == used


@pytest.mark.parametrize("reads", [1, 2, 5, 12, 30, 700])
def test_the_sum_is_right_however_little_is_read(reads):
    model, batch = builders.model(), builders.batch((7, 1, 4, 12, 40))
    target = torch.zeros(5, dtype=torch.long)
    with costs.measured() as cost:
        scores = Owen(reads=reads)(model, batch, target)
    with torch.no_grad():
        whole = model(model.embed(batch), batch).probabilities[:, 0]
    none = model.decoder.bias.softmax(-1)[0].detach()
    torch.testing.assert_close(scores.sum(-1).double(), whole - none, atol=1e-6, rtol=1e-5)
    assert cost.forward <= 5 * max(2, reads)
