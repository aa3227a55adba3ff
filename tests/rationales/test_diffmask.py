"""DiffMask: gates for a model that stays as it is, and as few open ones as leave its answer alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.models.config import Training
from assay.models.fit import fit
from assay.models.store import Checkpoint
from assay.models.textmodel import groups
from assay.rationales.game import Play
from assay.rationales.learning import Options, Sparsest, learn
from assay.rationales.losses import Constraint, FullTextDivergence
from assay.rationales.players import Rules
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.recipes import LIMIT, diffmask, explained, gates
from tests import builders
from tests.rationales.small_players import players, rows

TRAINING = Training(epochs=16, patience=16, batch_size=16, learning_rate=1e-2)


@pytest.fixture(scope="module")
def model():
    """A classifier that has learnt which word tells the class."""
    network = builders.model(3, dtype=torch.float32, encoder="gru", dropout_decoder=0.3)
    fit(network, rows(240), rows(60), Training(epochs=8, patience=8, batch_size=16, learning_rate=1e-2))
    return network


@pytest.fixture(scope="module")
def fitted(model):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    rationaliser, course = explained(model, gates(Options()), rows(240), rows(60), TRAINING)
    return before, rationaliser, course


def test_the_model_that_is_explained_stays_as_it_is(model, fitted) -> None:
    before, rationaliser, _ = fitted
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    for _, batch in groups(model, rows(60)):
        x = model.embed(batch)
        assert torch.equal(rationaliser(x, batch).logits, model(x, batch).logits)


def test_gates_stay_open_on_words_that_decide_and_on_few_others(fitted) -> None:
    _, rationaliser, _ = fitted
    kept, deciding, lost = [], [], []
    for _, batch in groups(rationaliser, rows(60)):
        play = rationaliser.play(batch)
        kept += (play.z[:, 0] > 0)[batch.mask].tolist()
        deciding += ((batch.ids == 5) | (batch.ids == 6))[batch.mask].tolist()
        lost += FullTextDivergence()(play).tolist()
    kept, deciding = np.array(kept), np.array(deciding)
    assert kept[deciding].mean() >= 0.9
    assert kept[~deciding].mean() <= 0.15
    assert np.mean(lost) <= LIMIT


def test_the_constraint_pulls_gates_down_and_its_multiplier_up() -> None:
    scheme, batch = gates(Options()), builders.batch()
    cast = players(scheme.rules, ("predictor",), extras=scheme.extras)
    multiplier = cast.extras["multiplier"]
    for start, used in ((3.0, 3.0), (-1.0, 0.0), (500.0, 200.0)):
        with torch.no_grad():
            multiplier.value.fill_(start)
        torch.manual_seed(1)
        play = Play(cast, batch, scheme.rules)
        term, weight = Constraint(FullTextDivergence(), 0.25), cast.head.score.weight
        gradients = torch.autograd.grad(term(play).mean(), (weight, multiplier.value), retain_graph=True)
        lost = FullTextDivergence()(play)
        (alone,) = torch.autograd.grad(lost.mean(), weight)
        torch.testing.assert_close(gradients[0], used * alone)
        assert float(gradients[1]) == pytest.approx(0.25 - float(lost.mean().detach()))
        assert float(multiplier.value.detach()) == used


def test_the_judge_asks_for_little_first_of_all_within_the_limit() -> None:
    scheme = gates(Options())
    cast = players(scheme.rules, ("predictor",), extras=scheme.extras)
    model = Rationaliser(cast, scheme.rules).eval()
    kept, words, lost = 0.0, 0.0, []
    with torch.no_grad():
        for _, batch in groups(model, rows()):
            play = model.play(batch)
            kept, words = kept + float(play.z.sum()), words + float(batch.mask.sum())
            lost += FullTextDivergence()(play).tolist()
    spared, far = Sparsest(np.mean(lost) + 0.01)(model, rows()), Sparsest(np.mean(lost) - 0.01)(model, rows())
    assert spared == (pytest.approx(1 - kept / words), pytest.approx(np.mean(lost)))
    assert -1 < far[0] < 0 and far[1] == spared[1]


def test_an_interrupted_fit_goes_on_with_its_multiplier(tmp_path) -> None:
    scheme = diffmask(Options())
    training = Training(epochs=4, patience=4, batch_size=8, learning_rate=5e-3)

    def anew(seed: int):
        return players(scheme.rules, ("predictor",), seed, torch.float32, scheme.extras)

    whole, course = learn(anew(0), scheme, rows(), rows(), training)
    checkpoint = Checkpoint(tmp_path / "checkpoint.safetensors", {"name": "gates"})
    calls = []

    def killed(model, dev):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return scheme.epoch_score(model, dev)

    with pytest.raises(KeyboardInterrupt):
        learn(anew(0), replace(scheme, epoch_score=killed), rows(), rows(), training, checkpoint)
    again, resumed = learn(anew(7), scheme, rows(), rows(), training, checkpoint)
    assert resumed == course
    expected = whole.players.state_dict()
    assert float(expected["extras.multiplier.value"]) != 1.0
    for name, tensor in again.players.state_dict().items():
        assert torch.equal(tensor, expected[name]), name


def test_only_a_model_that_pools_words_can_have_gates() -> None:
    network = builders.kind("hierarchical-gru")
    with pytest.raises(AssayError, match="pools the states of words"):
        explained(network, gates(Options()), rows(), rows(), TRAINING)


def test_rules_can_be_stored() -> None:
    rules = diffmask(Options()).rules
    assert Rules.of(rules.json()) == rules
