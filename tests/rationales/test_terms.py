"""Costs of sizes, breaks and priors, against loops over each text."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli as Chosen
from torch.distributions import kl_divergence

from assay.errors import AssayError
from assay.rationales.game import Play
from assay.rationales.losses import AnswerCrossEntropy, Continuity, Prior, Size, divergence
from assay.rationales.players import Rules
from assay.rationales.relaxations import HardKuma, RelaxedBernoulli
from assay.rationales.units import Units
from tests import builders
from tests.rationales.small_players import players


def play(units: Units | None = None, masks: int = 2) -> Play:
    """Two soft masks for some texts."""
    rules = Rules(units or Units(), HardKuma(), masks=masks)
    return Play(players(rules), builders.texts(), rules)


@pytest.mark.parametrize("of", ["z", "chance"])
@pytest.mark.parametrize("units", [Units(), Units("span", 3)], ids=lambda units: units.kind)
def test_sizes_are_shares_of_words(of: str, units: Units) -> None:
    game = play(units)
    counted = (game.z if of == "z" else game.grouping.expanded(game.drawn.chance)).detach()
    lengths = game.batch.lengths.tolist()
    shares = [float(counted[row, :, :length].mean()) for row, length in enumerate(lengths)]
    whole = sum(share * length for share, length in zip(shares, lengths, strict=True)) / sum(lengths)
    for rate in (0.1, 0.9):
        expected = {
            "plain": shares,
            "text": [abs(share - rate) for share in shares],
            "batch": [abs(whole - rate)] * len(shares),
        }
        for kind, costs in expected.items():
            assert Size(rate, kind, of)(game).tolist() == pytest.approx(costs, abs=1e-12)


def test_continuity_counts_the_steps_between_neighbours() -> None:
    game = play()
    for row, length in enumerate(game.batch.lengths.tolist()):
        z = game.z[row].tolist()
        steps = [abs(mask[place] - mask[place - 1]) for mask in z for place in range(1, length)]
        assert float(Continuity()(game)[row].detach()) == pytest.approx(sum(steps) / 2 / length, abs=1e-12)


def test_expected_changes_are_those_of_independent_units() -> None:
    for units in (Units(), Units("span", 3)):
        game = play(units)
        for row, length in enumerate(game.batch.lengths.tolist()):
            chances = game.drawn.chance[row].tolist()
            owner = game.grouping.owner[row, :length].tolist()
            expected = 0.0
            for mask in chances:
                for place in range(1, length):
                    one, two = mask[owner[place - 1]], mask[owner[place]]
                    if owner[place] != owner[place - 1]:
                        expected += one * (1 - two) + (1 - one) * two
            found = float(Continuity("chance")(game)[row].detach())
            assert found == pytest.approx(expected / 2 / length, abs=1e-12)


def test_the_divergence_is_that_of_torch() -> None:
    chance = torch.linspace(0.001, 0.999, 57, dtype=torch.float64)
    for rate in (0.05, 0.4):
        expected = kl_divergence(Chosen(chance), Chosen(torch.tensor(rate, dtype=torch.float64)))
        assert torch.allclose(divergence(chance, rate), expected, atol=1e-12)
    assert float(divergence(torch.tensor([0.4], dtype=torch.float64), 0.4)) == pytest.approx(0, abs=1e-15)


def test_the_divergence_of_certain_choices_is_finite_and_so_is_its_gradient() -> None:
    scores = torch.tensor([-200.0, -20.0, 0.0, 20.0, 200.0], requires_grad=True)
    costs = divergence(scores.sigmoid(), 0.2)
    costs.sum().backward()
    certain = torch.tensor([-torch.log(torch.tensor(0.8)), -torch.log(torch.tensor(0.2))])
    assert torch.allclose(costs[[0, -1]], certain, atol=1e-5)
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("units", [Units(), Units("sentence")], ids=lambda units: units.kind)
def test_a_prior_is_the_mean_over_the_units_of_a_text(units: Units) -> None:
    rules = Rules(units, RelaxedBernoulli(), masks=2)
    game = Play(players(rules), builders.texts(), rules)
    costs = Prior(0.3)(game)
    for row, real in enumerate(game.grouping.mask):
        chances = game.theta[row, :, real, 0].sigmoid()
        expected = kl_divergence(Chosen(chances), Chosen(torch.full_like(chances, 0.3))).mean()
        assert float(costs[row].detach()) == pytest.approx(float(expected.detach()), abs=1e-12)


def test_the_task_is_the_cross_entropy_of_what_is_read() -> None:
    game = play(masks=1)
    predictor = game.players.predictor
    for view, z in (("selected", game.z[:, 0]), ("rest", 1 - game.z[:, 0]), ("all", torch.ones_like(game.z[:, 0]))):
        logits = predictor(game.x * z[..., None], game.batch).logits
        expected = torch.nn.functional.cross_entropy(logits, game.batch.labels, reduction="none")
        assert torch.allclose(AnswerCrossEntropy(view=view)(game), expected, atol=1e-12)


def test_a_stopped_task_teaches_the_selector_nothing() -> None:
    game = play(masks=1)
    selecting = list(game.players.of("selector"))
    for stopped in (False, True):
        found = torch.autograd.grad(
            AnswerCrossEntropy(stopped=stopped)(game).sum(),
            selecting,
            allow_unused=True,
            retain_graph=True,
            materialize_grads=True,
        )
        assert any(part.any() for part in found) is not stopped


def test_unknown_sizes_and_impossible_priors_are_refused() -> None:
    for wrong in (
        lambda: Size(kind="word"),
        lambda: Size(of="theta"),
        lambda: Continuity("theta"),
        lambda: Prior(0.0),
        lambda: Prior(1.0),
    ):
        with pytest.raises(AssayError):
            wrong()
