"""Anchors on decisions whose smallest rules are known, and what their bounds promise."""

from __future__ import annotations

import math

import pytest
import torch

from assay.errors import AssayError
from assay.explainers import anchors as bounds
from assay.explainers.anchors import LEAST, Anchors, Trial
from assay.explainers.shapley import every
from assay.models.erasure import kept_probabilities
from tests import builders
from tests.explainers import games

DELETE = Anchors(removal="delete")


def decided(players, condition):
    """A game whose class 0 wins where the condition on the present players holds."""
    return games.Game(players, lambda present: torch.where(condition(present), 0.9, 0.1).double())


def test_two_tokens_that_decide_together_are_the_rule():
    rows = games.shuffled(12, 8)
    batch, target = games.texts(rows)
    game = decided(12, lambda present: (present[:, 2] * present[:, 7]) > 0)
    rules = DELETE.rules(game, batch, target)
    assert torch.equal(rules.kept, (rows == 3) | (rows == 8))
    assert (rules.precision == 1).all()
    assert (rules.lower_bound >= 0.95).all()
    assert (rules.coverage == 0.25).all()


def test_a_token_is_worth_what_it_adds_to_the_precision():
    """Nothing kept: ¼ of the versions; the first token: ½; both: all."""
    rows = games.shuffled(12, 60)
    batch, target = games.texts(rows)
    game = decided(12, lambda present: (present[:, 2] * present[:, 7]) > 0)
    found = DELETE.attribute(game, batch, target)
    gains = found.scores.sort(-1, descending=True).values[:, :2].mean(0)
    assert gains.tolist() == pytest.approx([0.5, 0.25], abs=0.06)  # the first one was chosen because it did well
    assert ((found.scores > 0).sum(-1) == found.numbers["size"]).all()


@pytest.mark.parametrize("players", [1, 2, 3, 10])
def test_one_token_that_decides_is_the_rule(players):
    batch, target = games.texts([list(range(1, players + 1))])
    game = decided(players, lambda present: present[:, players // 2] > 0)
    found = DELETE.attribute(game, batch, target)
    assert found.numbers["size"].item() == 1
    assert found.scores[0].argmax().item() == players // 2


def test_three_of_a_kind_need_three_tokens():
    """Any 3 of the 4 players: one token leaves 1/2, two leave 3/4, three are enough."""
    batch, target = games.texts(games.shuffled(4, 5))
    game = decided(4, lambda present: present.sum(-1) > 2.5)
    found = DELETE.attribute(game, batch, target)
    assert (found.numbers["size"] == 3).all()
    assert (found.numbers["precision"] == 1).all()


def test_a_rule_that_is_not_precise_enough_says_so():
    """With the parity of ten tokens nothing short of all ten says anything."""
    batch, target = games.texts(games.shuffled(10, 6))
    found = Anchors(removal="delete", longest=3).attribute(decided(10, lambda p: p.sum(-1) % 2 == 0), batch, target)
    assert (found.numbers["size"] == 3).all()
    assert (found.numbers["precision"] - 0.5).abs().max() < 4 * math.sqrt(0.25 / 128)
    assert (found.numbers["lower_bound"] < found.numbers["precision"]).all()


def test_among_tokens_that_hold_the_decision_alike_the_probability_chooses():
    batch, target = games.texts(games.shuffled(8, 5))
    game = games.Game(8, lambda present: 0.6 + 0.3 * present[:, 4])
    rules = DELETE.rules(game, batch, target)
    assert torch.equal(rules.kept, batch.ids == 5)
    assert DELETE(game, batch, target).max() == pytest.approx(LEAST)


def test_precision_is_that_of_all_versions_of_the_text():
    """Every version of a text of eight tokens that the rule allows is read."""
    model, batch = builders.model(encoder="gru"), builders.batch((8,) * 12)
    with torch.no_grad():
        target = model(model.embed(batch), batch).logits.argmax(-1)
    options = Anchors(precision=0.9, samples=256)
    rules = options.rules(model, batch, target)
    parts = every(8, batch.ids.device)
    right = kept_probabilities(model, batch, parts.expand(12, -1, -1), "mask").argmax(-1) == target[:, None]
    allowed = (parts[None] | ~rules.kept[:, None]).all(-1)
    truth = (right & allowed).sum(-1) / allowed.sum(-1)
    assert (rules.precision - truth).abs().max() < 4 * math.sqrt(0.25 / 512)
    assert (rules.lower_bound <= truth + 1e-6).all()
    assert (truth < 1).any()


def test_rules_that_are_accepted_are_as_precise_as_they_claim():
    """Each token decides a little: of many accepted rules, hardly any may be less precise than its lower bound."""
    rows = games.shuffled(10, 150)
    batch, target = games.texts(rows)
    game = decided(10, lambda present: present.sum(-1) >= 5)
    options = Anchors(removal="delete", precision=0.8, samples=32)
    rules = options.rules(game, batch, target)
    size = rules.kept.sum(-1)
    truth = torch.tensor(
        [sum(math.comb(10 - k, j) for j in range(max(0, 5 - k), 11 - k)) / 2 ** (10 - k) for k in range(11)]
    )[size]
    accepted = rules.lower_bound >= 0.8
    assert accepted.float().mean() > 0.5
    assert (rules.lower_bound > truth)[accepted].float().mean() < 0.1
    assert (rules.coverage == 0.5**size).all()


def test_a_second_look_adds_to_the_first():
    """Player 1 with any of five others: a precision of 31/32, which is too close to 0.9 to be sure of at once."""
    rows = games.shuffled(6, 40)
    batch, target = games.texts(rows)
    game = decided(6, lambda present: (present[:, 0] > 0) & (present[:, 1:].sum(-1) > 0))
    trial = Trial(Anchors(removal="delete", precision=0.9, samples=32), game, batch, target, 1)
    precision, bound = trial.judged(rows == 1, torch.arange(40) < 30).unbind(-1)
    assert game.reads > 30 * 64  # some had to be looked at again
    assert (precision[:30] - 31 / 32).abs().max() < 4 * math.sqrt(31 / 32**2 / 64)
    assert 10 <= (bound >= 0.9).sum() <= 30
    assert (precision[30:] == 0).all()


def test_rules_grow_though_nothing_is_gained():
    batch, target = games.texts([list(range(1, 9))])
    found = Anchors(removal="delete", longest=3).attribute(games.Game(8, lambda p: 0.3 + 0 * p[:, 0]), batch, target)
    assert found.numbers["size"].item() == 3
    assert found.numbers["precision"].item() == 0


def test_the_same_rule_is_not_kept_twice():
    batch, target = games.texts([list(range(1, 9))])
    game = decided(8, lambda present: (present[:, 2] * present[:, 5]) > 0)
    beam = torch.zeros(1, 1, 8, dtype=torch.float64)
    for size in (1, 2):
        beam, _ = Trial(DELETE, game, batch, target, size).grown(beam)
    one, other = (beam[0] > 0).tolist()
    assert one == [player in (3, 6) for player in range(1, 9)]
    assert sum(other) == 2 and other != one


def test_the_rules_that_are_hardest_to_tell_apart_are_tried_again():
    """Of the two that lead, the one with fewer tries; of the others, the one that was hardly tried."""
    batch, target = games.texts([[1]])
    tries = torch.tensor([[100.0, 20, 10, 100, 100, 5]]).double()
    hits = tries * torch.tensor([0.9, 0.8, 0.5, 0.3, 0.75, 0.8]).double()
    known = torch.tensor([[False] * 5 + [True]])
    assert Trial(DELETE, games.table(1), batch, target, 1).hardest(hits, tries, known, 1).tolist() == [[1, 2]]


def test_bounds_are_where_the_divergence_says():
    rate, tries = torch.tensor([0.3, 0.9, 1.0, 0.0]).double(), torch.tensor([40.0, 100.0, 60.0, 60.0]).double()
    low, high = bounds.lower(rate, tries, 3.0), bounds.upper(rate, tries, 3.0)
    by_hand = lambda p, q: p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))  # noqa: E731
    for place in (0, 1):
        p, n = rate[place].item(), tries[place].item()
        assert n * by_hand(p, low[place].item()) == pytest.approx(3.0)
        assert n * by_hand(p, high[place].item()) == pytest.approx(3.0)
        assert low[place] < p < high[place]
    assert (low[2].item(), high[2].item()) == pytest.approx((math.exp(-3 / 60), 1))
    assert (low[3].item(), high[3].item()) == pytest.approx((0, 1 - math.exp(-3 / 60)))


@pytest.mark.parametrize("options", [{"precision": 1.0}, {"confidence": 0.0}, {"beam": 0}, {"samples": 0}])
def test_options_without_sense_are_refused(options):
    with pytest.raises(AssayError):
        Anchors(**options)


def test_masks_need_a_table_of_embeddings():
    batch, target = games.texts([[1, 2]])
    with pytest.raises(AssayError, match="no embedding for nothing"):
        Anchors()(games.table(2), batch, target)
