"""Moves: the score function is an unbiased gradient, and only who moves is changed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
import torch

from assay.models.config import Training
from assay.rationales.game import Move, Play, Stage
from assay.rationales.learning import Scheme, learn
from assay.rationales.losses import AnswerCrossEntropy, Continuity, Size
from assay.rationales.players import Rules
from assay.rationales.relaxations import Bernoulli, Drawn, RelaxedBernoulli
from tests import builders
from tests.rationales.small_players import players, rows

TERMS = ((1.0, AnswerCrossEntropy()), (0.7, Size(0.3, "text")), (0.4, Continuity()))
BASELINES = {"none yet": None, "good": 0.9, "bad": 30.0}
DRAWS = 4_000


@dataclass(frozen=True)
class Listed(Bernoulli):
    """All masks of four units, one for each text of a batch of 16."""

    def draw(self, theta, mask):
        z = torch.tensor(list(product((0.0, 1.0), repeat=4)), dtype=theta.dtype)[:, None]
        likely = torch.distributions.Bernoulli(logits=theta[..., 0]).log_prob(z).sum((1, 2))
        return Drawn(z, self.chance(theta, mask), likely)


def repeated(count: int):
    """The same text of four words, many times."""
    one = builders.batch((4,))
    return one[torch.zeros(count).long()]


def prepared(rules: Rules, baseline: float | None):
    """Players that have seen such a mean cost; the same whatever is drawn."""
    cast = players(rules)
    with torch.no_grad():
        cast.head.score.weight.div_(3.0)
    if baseline is not None:
        cast.baseline.copy_(torch.tensor([baseline * 0.5, 0.5]))
    return cast


def enumerated() -> dict[str, torch.Tensor]:
    """The gradient of the expected cost, which is a sum over all masks."""
    cast = prepared(Rules(relaxation=Listed()), None)
    play = Play(cast, repeated(16), Rules(relaxation=Listed()))
    (Move(("selector", "predictor"), TERMS).costs(play) * play.drawn.log_probability.exp()).sum().backward()
    return {name: each.grad for name, each in cast.named_parameters() if each.grad is not None}


@pytest.mark.parametrize("baseline", BASELINES)
def test_the_score_function_over_all_masks_is_the_gradient_of_the_expected_cost(baseline: str) -> None:
    rules = Rules(relaxation=Listed())
    cast = prepared(rules, BASELINES[baseline])
    play = Play(cast, repeated(16), rules)
    chances = play.drawn.log_probability.exp().detach()
    Move(("selector", "predictor"), TERMS).loss(play, chances).backward()
    exact = enumerated()
    found = {name: each.grad for name, each in cast.named_parameters() if each.grad is not None}
    assert found.keys() == exact.keys() and max(float(each.abs().max()) for each in exact.values()) > 0.05
    for name, gradient in exact.items():
        assert torch.allclose(found[name], gradient, atol=1e-12), name


@pytest.mark.parametrize("baseline", ["good", "bad"])
def test_the_score_function_of_draws_is_on_average_the_gradient_of_the_expected_cost(baseline: str) -> None:
    exact = enumerated()["head.score.weight"][0]
    cast = prepared(Rules(), BASELINES[baseline])
    expected = cast.baseline.clone()
    torch.manual_seed(11)
    found = []
    for _ in range(20):
        cast.baseline.copy_(expected)
        play = Play(cast, repeated(DRAWS // 20), Rules())
        loss = Move(("selector",), TERMS).loss(play, torch.ones(DRAWS // 20))
        found.append(torch.autograd.grad(loss, cast.head.score.weight)[0][0])
    each = torch.stack(found)
    assert ((each.mean(0) - exact).abs() < 4 * each.std(0) / 20**0.5).all()


def test_a_soft_mask_needs_no_score_function() -> None:
    rules = Rules(relaxation=RelaxedBernoulli())
    cast = players(rules)
    play = Play(cast, builders.batch(), rules)
    move = Move(("selector", "predictor"), TERMS)
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    assert torch.allclose(move.loss(play, weights), (move.costs(play) * weights).sum() / 10, atol=1e-14)
    assert not cast.baseline.any()


def test_the_baseline_is_the_mean_of_the_costs_so_far() -> None:
    cast = players(Rules())
    costs = []
    for _ in range(3):
        play = Play(cast, builders.batch(), Rules())
        move = Move(("selector",), TERMS)
        move.loss(play, torch.ones(4, dtype=torch.float64))
        costs.append(float(move.costs(play).detach().mean()))
    weights = [0.95**2, 0.95, 1.0]
    expected = sum(weight * cost for weight, cost in zip(weights, costs, strict=True)) / sum(weights)
    assert float(cast.baseline[0] / cast.baseline[1]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("relaxation", [Bernoulli(), RelaxedBernoulli()], ids=repr)
@pytest.mark.parametrize("moving", [("selector",), ("predictor",), ("selector", "predictor")])
def test_a_move_changes_the_parameters_of_its_players_alone(relaxation, moving: tuple[str, ...]) -> None:
    rules = Rules(relaxation=relaxation)
    cast = players(rules, dtype=torch.float32)
    before = {name: each.detach().clone() for name, each in cast.named_parameters()}
    mine = {id(each) for player in moving for each in cast.of(player)}
    scheme = Scheme(rules, (Stage((Move(moving, TERMS),)),))
    learn(cast, scheme, rows(), rows(), Training(epochs=1, batch_size=8))
    changed = {name for name, each in cast.named_parameters() if not torch.equal(each, before[name])}
    assert changed <= {name for name, each in cast.named_parameters() if id(each) in mine}
    assert ("head.score.weight" in changed) is ("selector" in moving)
    assert ("readers.predictor.decoder.weight" in changed) is ("predictor" in moving)
