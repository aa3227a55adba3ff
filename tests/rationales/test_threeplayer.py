"""Three players: the critic reads the rest, and the selector leaves it nothing to go by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised
from assay.models.config import Training
from assay.models.textmodel import graded, groups, predict
from assay.rationales.game import Move, Play
from assay.rationales.learning import CriticGap, Options, learn
from assay.rationales.losses import AnswerCrossEntropy, CriticMargin
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.recipes import RECIPES, introspective, three_player
from tests import builders
from tests.rationales.small_players import players, rows

THREE, FOUR = ("predictor", "selector", "critic"), ("predictor", "selector", "critic", "guide")


def softmax(logits: torch.Tensor) -> np.ndarray:
    odds = np.exp(logits.detach().numpy())
    return odds / odds.sum(-1, keepdims=True)


def test_the_gap_is_the_hinge_of_two_cross_entropies() -> None:
    rules, batch = three_player(Options(rate=0.3)).rules, builders.batch()
    play = Play(players(rules, THREE), batch, rules)
    places = np.arange(len(batch)), batch.labels.numpy()
    known, left = (
        -np.log(softmax(play.read(*pair).logits)[places]) for pair in (("predictor", "selected"), ("critic", "rest"))
    )
    for margin in (0.0, 0.3, 2.0):
        expected = np.maximum(0, known - left + margin)
        np.testing.assert_allclose(CriticMargin(margin)(play).detach().numpy(), expected, rtol=1e-10)


def test_the_critic_reads_what_the_predictor_does_not() -> None:
    rules, batch = three_player(Options(rate=0.3)).rules, builders.batch()
    play = Play(players(rules, THREE), batch, rules)
    shown = [play.shown(view, 0, True)[0] != 0 for view in ("selected", "rest")]
    assert torch.equal(shown[0] ^ shown[1], (play.x != 0) & batch.mask[..., None])


@pytest.mark.parametrize("place", range(4))
def test_each_move_is_made_by_its_players_alone(place: int) -> None:
    scheme = introspective(Options(rate=0.3))
    move = scheme.stages[0].moves[place]
    cast = players(scheme.rules, FOUR, dtype=torch.float32)
    before = {name: tensor.clone() for name, tensor in cast.state_dict().items()}
    stage = replace(scheme.stages[0], moves=(move,))
    training = Training(epochs=1, patience=1, batch_size=8, learning_rate=5e-3)
    learn(cast, replace(scheme, stages=(stage,)), rows(), rows(), training)
    changed = {name for name, tensor in cast.state_dict().items() if not torch.equal(tensor, before[name])}
    (player,) = move.players
    allowed = (f"readers.{player}.", *(("head.", "baseline") if player == "selector" else ()))
    assert changed and all(name.startswith(allowed) for name in changed)


def test_masks_depend_on_what_the_guide_guesses_whatever_the_label() -> None:
    rules, batch = introspective(Options(rate=0.3)).rules, builders.batch()
    cast = players(rules, FOUR)
    model = Rationaliser(cast, rules).eval()
    chance = model.selection(model.embed(batch), batch).chance
    flipped = replace(batch, labels=1 - batch.labels)
    assert torch.equal(model.selection(model.embed(flipped), flipped).chance, chance)
    with torch.no_grad():
        guide = cast.reader("guide").decoder
        guide.weight.neg_()
        guide.bias.neg_()
    assert not torch.allclose(model.selection(model.embed(batch), batch).chance, chance)


def test_the_predictor_is_taught_the_guess_and_the_guide_learns_beside_it() -> None:
    rules, batch = introspective(Options(rate=0.3)).rules, builders.batch()
    play = Play(players(rules, FOUR), batch, rules)
    guess = play.read("guide", "all").logits.argmax(-1)
    assert torch.equal(play.condition, guess)
    expected = -np.log(softmax(play.read("predictor", "selected").logits)[np.arange(len(batch)), guess.numpy()])
    np.testing.assert_allclose(AnswerCrossEntropy(guessed=True)(play).detach().numpy(), expected, rtol=1e-10)
    (teach,) = introspective(Options()).stages[0].moves[0].terms
    Move(("guide",), (teach,)).loss(play, torch.ones(len(batch))).backward()
    assert float(play.players.reader("guide").decoder.weight.grad.abs().sum()) > 0


def test_the_judge_counts_a_wrong_critic_like_a_blind_guess() -> None:
    rules = three_player(Options(rate=0.3)).rules
    cast = players(rules, THREE)
    model = Rationaliser(cast, rules).eval()
    score, loss = graded(model, rows())
    costs = []
    for _, batch in groups(model, rows()):
        chance = softmax(model.play(batch).read("critic", "rest").logits)
        costs += [min(-np.log(row[label]), np.log(2)) for row, label in zip(chance, batch.labels.tolist(), strict=True)]
    assert CriticGap()(model, rows()) == (score, pytest.approx(loss - np.mean(costs)))


def twice(count: int) -> list[Tokenised]:
    """Texts of eight words, two of which, side by side, tell the class, each by itself."""
    generator = torch.Generator().manual_seed(2)
    texts = []
    for index in range(count):
        label, place = index % 2, int(torch.randint(7, (), generator=generator))
        ids = torch.randint(12, builders.WORDS, (8,), generator=generator)
        ids[place : place + 2] = torch.randint(4, 8, (2,), generator=generator) + 4 * label
        truth = torch.zeros(8, dtype=torch.bool)
        truth[place : place + 2] = True
        texts.append(Tokenised(index, ids, torch.zeros(8, 2).long(), torch.zeros(8).long(), label, truth=truth))
    return texts


@pytest.mark.parametrize("name", ["three_player", pytest.param("introspective", marks=pytest.mark.slow)])
def test_the_critic_is_left_with_next_to_nothing(name: str) -> None:
    scheme, texts = RECIPES[name](Options(rate=0.25)), twice(400)
    cast = players(scheme.rules, scheme.readers, dtype=torch.float32)
    training = Training(epochs=14, patience=14, batch_size=32, learning_rate=1e-2)
    model, _ = learn(cast, scheme, texts[:300], texts[300:], training)
    right, found = [], []
    for _, batch in groups(model, texts[300:]):
        play = model.play(batch)
        right += (play.read("critic", "rest").logits.argmax(-1) == batch.labels).tolist()
        found += (play.z[:, 0] > 0)[batch.truth].tolist()
    answers = predict(model, texts[300:]).argmax(-1) == [row.label for row in texts[300:]]
    assert np.mean(answers) >= 0.97
    assert np.mean(right) <= 0.65
    assert np.mean(found) >= 0.9
