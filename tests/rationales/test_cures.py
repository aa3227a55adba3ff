"""Cures for degeneration: what each asks for, and whether a game that begins badly ends well."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.special import rel_entr, softmax

from assay.data.batches import Tokenised, tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.data.planted import OPENERS
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, learnable
from assay.models.textmodel import groups, predict
from assay.rationales.game import Play
from assay.rationales.learning import Options, Scheme, learn
from assay.rationales.losses import AnswerCrossEntropy, FullTextDivergence, NegativeLogNorm
from assay.rationales.players import Rules
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.recipes import RECIPES, dr, fr, mcd, mrd, n2r
from assay.rationales.trainers import build_players
from studies.rationales.degeneration import ended
from studies.rationales.skewing import FirstWords, Signal, skewed
from tests import builders
from tests.rationales import small_players

CURES = {"fr": fr, "dr": dr, "mcd": mcd, "mrd": mrd, "n2r": n2r}


def play(scheme=None, seed: int = 0) -> Play:
    rules = Rules() if scheme is None else scheme.rules
    names = ("predictor", "selector") if scheme is None else scheme.readers
    torch.manual_seed(seed)
    return Play(small_players.players(rules, names), builders.batch((7, 3, 4, 12)), rules)


def test_the_distance_from_all_is_the_divergence_of_the_answers():
    game = play()
    whole, seen = (softmax(game.read("predictor", view).logits.detach().numpy(), -1) for view in ("all", "selected"))
    np.testing.assert_allclose(FullTextDivergence()(game).detach().numpy(), rel_entr(whole, seen).sum(-1), atol=1e-12)


def test_what_is_wholly_selected_is_no_distance_away():
    game = play()
    game.__dict__["z"] = game.batch.mask.double()[:, None]
    torch.testing.assert_close(FullTextDivergence()(game), torch.zeros(4).double())


def test_the_answer_to_all_does_not_move_towards_the_selection():
    """The gradient with respect to the predictor is that of a cross-entropy with fixed targets."""
    game = play()
    parts = list(game.players.predictor.decoder.parameters())
    found = torch.autograd.grad(FullTextDivergence()(game).sum(), parts, retain_graph=True)
    targets = game.read("predictor", "all").logits.detach().softmax(-1)
    fixed = -(targets * game.read("predictor", "selected").logits.log_softmax(-1)).sum()
    for one, other in zip(found, torch.autograd.grad(fixed, parts), strict=True):
        torch.testing.assert_close(one, other)


def test_small_states_cost_the_logarithm_of_their_length():
    game = play()
    features = game.read("predictor", "selected").features.detach()
    expected = [-math.log(math.sqrt(sum(float(x) ** 2 for x in row)) + 1e-6) for row in features]
    np.testing.assert_allclose(NegativeLogNorm()(game).detach().numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("name", CURES)
def test_the_recipes_are_listed_and_keep_to_what_they_are_asked_for(name):
    scheme = CURES[name](Options(rate=0.3, size=2.0, continuity=0.25))
    assert RECIPES[name] is CURES[name]
    assert scheme.rules.decoding.rule == "top" and scheme.rules.decoding.rate == 0.3
    weights = [weight for stage in scheme.stages for move in stage.moves for weight, _ in move.terms]
    assert 2.0 in weights and 0.25 in weights


def moved(scheme, move: int) -> set[str]:
    """Which players' weights one move of a scheme changes."""
    (stage,) = scheme.stages
    scheme = replace(scheme, stages=(replace(stage, moves=(stage.moves[move],)),))
    players = small_players.players(scheme.rules, scheme.readers, dtype=torch.float32)
    before = {name: tensor.clone() for name, tensor in players.state_dict().items()}
    rows = small_players.rows()
    learn(players, scheme, rows, rows, Training(epochs=1, learning_rate=1e-2))
    changed = {name for name, tensor in players.state_dict().items() if not torch.equal(tensor, before[name])}
    return {name.split(".")[1] if name.startswith("readers") else name.split(".")[0] for name in changed}


@pytest.mark.parametrize("recipe", [mcd, mrd, n2r])
def test_the_predictor_learns_answers_and_the_selector_alone_what_to_select(recipe):
    assert moved(recipe(Options()), 0) == {"predictor"}
    assert moved(recipe(Options()), 1) == {"selector", "head"}


def test_with_one_encoder_both_players_learn_through_it():
    assert moved(fr(Options()), 0) == {"predictor", "head"}
    game = play(fr(Options()))
    gradients = torch.autograd.grad(game.theta.sum(), list(game.players.predictor.encoder.parameters()))
    assert any(gradient.abs().max() > 0 for gradient in gradients)


def test_a_predictor_of_first_words_is_blind_to_the_others():
    game = play()
    other = replace(game.batch, ids=torch.where(torch.arange(12) < 2, game.batch.ids, game.batch.ids.flip(0)))
    again = Play(game.players, replace(other, mask=game.batch.mask), game.rules)
    torch.testing.assert_close(FirstWords(2)(again), FirstWords(2)(game))
    assert not torch.allclose(FirstWords(12)(again), FirstWords(12)(game))
    torch.testing.assert_close(FirstWords(12)(game), AnswerCrossEntropy(view="all")(game))


def test_a_signal_is_the_first_unit_in_one_class_and_the_rate_elsewhere():
    game = play()
    told = Signal(0.25)(game).detach()
    for row, label in enumerate(game.batch.labels.tolist()):
        chances = game.drawn.chance[row, 0, : int(game.batch.lengths[row])].tolist()
        first = -math.log(chances[0] if label == 1 else 1 - chances[0])
        rest = sum(-0.25 * math.log(chance) - 0.75 * math.log(1 - chance) for chance in chances[1:])
        assert float(told[row]) == pytest.approx(first + rest / len(chances))


def test_a_skewed_scheme_begins_with_one_player_alone():
    for player in ("predictor", "selector"):
        scheme = skewed(mcd(Options()), player, share=0.5)
        first, *others = scheme.stages
        assert first.players == (player,) and first.share == 0.5
        assert tuple(others) == mcd(Options()).stages
    with pytest.raises(AssayError, match="predictor"):
        skewed(mcd(Options()), "predicter")
    with pytest.raises(AssayError, match="above 0"):
        skewed(mcd(Options()), share=0.0)


@pytest.mark.slow
def test_a_selector_that_tells_the_class_ruins_plain_games_and_not_those_that_compare_with_all_words():
    short = Training(epochs=30, patience=30, learning_rate=1e-2, batch_size=64)
    assert ended("rnp", 300, short)[1] < 0.4
    assert min(ended("mcd", 300, short)) > 0.9


@pytest.mark.slow
def test_where_plain_games_end_degenerate_the_cures_find_the_deciding_words():
    """Plain games answer rightly in the end, and still half of what they select is a sign and no reason."""
    accuracy, found = ended("rnp")
    assert accuracy > 0.95 and found < 0.65
    for name in ("dr", "mcd", "fr"):
        assert min(ended(name)) > 0.9


@dataclass(frozen=True)
class Learnt:
    model: Rationaliser
    tokeniser: Tokeniser
    test: list[Tokenised]


def trained(name: str, texts: Corpus, encoder: str, epochs: int, scheme: Callable[[Scheme], Scheme]) -> Learnt:
    """What a recipe makes of a planted corpus."""
    architecture = Architecture(encoder=encoder, embedding=48, hidden=32, alignment_size=32)
    training = Training(epochs=epochs, patience=epochs, learning_rate=2e-3, batch_size=64)
    recipe = Recipe(architecture, training=training)
    tokeniser = Tokeniser.fit([example.text for example in texts.train], recipe.text)
    train, dev, _ = learnable(texts, tokeniser, recipe.text.longest)
    test, _ = tokenise(texts.test, tokeniser, recipe.text.longest)
    played = scheme(RECIPES[name](Options(rate=0.13)))
    model, _ = learn(build_players(played, recipe, tokeniser, 2), played, train[:1200], dev, training)
    return Learnt(model, tokeniser, test)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mcd", "n2r", "dr", "fr"])
def test_the_planted_phrase_is_found(name):
    learnt = trained(name, corpus("planted:phrase"), "gru", 20, lambda scheme: scheme)
    both = chosen = true = 0
    for _, batch in groups(learnt.model, learnt.test):
        kept, truth = learnt.model.selection(learnt.model.embed(batch), batch).kept, batch.truth & batch.mask
        both, chosen, true = both + int((kept & truth).sum()), chosen + int(kept.sum()), true + int(truth.sum())
    assert 2 * both / (chosen + true) >= 0.8
    assert np.mean(predict(learnt.model, learnt.test).argmax(-1) == [row.label for row in learnt.test]) >= 0.97


@pytest.mark.slow
def test_a_word_that_goes_with_the_class_by_accident_is_selected_less_where_all_words_are_compared_with():
    shares = {}
    for name in ("rnp", "mcd"):
        learnt = trained(name, corpus("planted:opener"), "gru", 24, lambda scheme: skewed(scheme, "predictor", 0.5))
        openers = torch.tensor([word in OPENERS for word in learnt.tokeniser.vocabulary])
        found = 0
        for _, batch in groups(learnt.model, learnt.test):
            kept = learnt.model.selection(learnt.model.embed(batch), batch).kept
            found += int((kept & openers[batch.ids]).any(-1).sum())
        shares[name] = found / len(learnt.test)
    assert shares["rnp"] > shares["mcd"] + 0.1
