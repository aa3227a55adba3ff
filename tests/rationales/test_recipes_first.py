"""The first recipes: what they ask for is what was asked, and a little training goes the right way."""

from __future__ import annotations

import pytest
import torch

from assay.models.config import Training
from assay.rationales.learning import Options, learn
from assay.rationales.players import Rules
from assay.rationales.recipes import RECIPES
from assay.rationales.units import Units
from tests.rationales.small_players import players, rows

FIRST = ("lei", "bottleneck", "hardkuma", "spectra", "rnp")


@pytest.mark.parametrize("name", FIRST)
def test_rules_are_as_asked_and_can_be_stored(name: str) -> None:
    scheme = RECIPES[name](Options(rate=0.13, units=Units("sentence"), reading="mask"))
    rules = scheme.rules
    assert rules.decoding.rule == "top" and rules.decoding.rate == 0.13
    assert rules.units == Units("sentence") and rules.reading == "mask"
    assert Rules.of(rules.json()) == rules
    assert scheme.stages[-1].players == ("selector", "predictor")


@pytest.mark.parametrize("name", ["lei", "bottleneck", "hardkuma", "rnp"])
def test_strengths_are_as_asked(name: str) -> None:
    terms = RECIPES[name](Options(size=0.25, continuity=0.75)).stages[0].moves[0].terms
    assert [weight for weight, _ in terms] == [1.0, 0.25, 0.75]


@pytest.mark.parametrize("name", FIRST)
def test_a_little_training_teaches_both_players(name: str) -> None:
    scheme = RECIPES[name](Options(rate=0.3))
    cast = players(scheme.rules, dtype=torch.float32)
    before = {key: each.clone() for key, each in cast.state_dict().items()}
    _, course = learn(cast, scheme, rows(), rows(), Training(epochs=4, patience=4, batch_size=8, learning_rate=5e-3))
    assert course.losses[-1] < course.losses[0]
    assert not torch.equal(cast.head.score.weight, before["head.score.weight"])
    assert not torch.equal(cast.predictor.decoder.weight, before["readers.predictor.decoder.weight"])
