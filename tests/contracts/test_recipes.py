"""What every recipe of rationales owes its caller: a model that answers without chance by the words that it selects."""

from __future__ import annotations

import json

import pytest
import torch

from assay.models.config import Training
from assay.rationales.learning import Options, learn
from assay.rationales.players import Rules
from assay.rationales.recipes import RECIPES
from assay.rationales.units import Units
from tests import builders
from tests.contracts import kinds
from tests.contracts.covering import covering
from tests.rationales.small_players import players, rows

ENCODERS = ("gru", "cnn", "average", "transformer")
PAIRS = [(name, encoder) for name in RECIPES for encoder in ENCODERS]
EVERY = pytest.mark.parametrize("name", RECIPES)


def read(model, batch):
    """The logits, what is selected, and how likely each word was to be."""
    with torch.no_grad():
        x = model.embed(batch)
        selection = model.selection(x, batch)
        return model(x, batch).logits, selection.kept, selection.chance


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@EVERY
@pytest.mark.parametrize("units", [Units(), Units("span", 3), Units("sentence")], ids=lambda units: units.kind)
def test_rules_are_as_asked_and_can_be_stored_as_json(name, units):
    rules = RECIPES[name](Options(3, 0.13, units, "mask")).rules
    assert rules.units == units
    assert Rules.of(json.loads(json.dumps(rules.json(), allow_nan=False))) == rules


@covering(PAIRS, each=2)
def test_answers_are_finite_and_words_are_selected_in_every_text(name, kind):
    model, batch = kinds.selecting(name, kind, classes=3), builders.texts()
    logits, kept, chance = read(model, batch)
    assert logits.shape == (4, 3) and logits.isfinite().all()
    assert kept.shape == chance.shape == batch.ids.shape
    assert kept.any(-1).any() and not kept[~batch.mask].any()
    assert ((chance >= 0) & (chance <= 1)).all() and (chance[~batch.mask] == 0).all()


@covering(PAIRS, each=2, turn=1)
def test_padding_changes_nothing(name, kind):
    model = kinds.selecting(name, kind)
    logits, *selected = read(model, builders.texts(width=20))
    same((logits, *(each[:, :12] for each in selected)), read(model, builders.texts()))


@covering(PAIRS, each=2, turn=2)
def test_order_and_size_of_the_batch_change_nothing(name, kind):
    model, batch = kinds.selecting(name, kind), builders.texts()
    together, order = read(model, batch), torch.tensor([2, 0, 3, 1])
    same(read(model, batch[order]), [each[order] for each in together])
    alone = [read(model, batch[row : row + 1]) for row in range(4)]
    same([torch.cat(each) for each in zip(*alone, strict=True)], together)


@covering(PAIRS, each=1, turn=3)
def test_the_same_call_gives_the_same_answer_and_leaves_the_model_as_it_was(name, kind):
    model, batch = kinds.selecting(name, kind), builders.texts()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    found = read(model, batch)
    torch.rand(3)  # whatever happens in between
    assert all(torch.equal(*pair) for pair in zip(read(model, batch), found, strict=True))
    assert not model.training
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@covering(PAIRS, each=1, turn=4)
def test_what_is_not_selected_may_be_any_words_to_the_answer(name, kind):
    model, batch = kinds.selecting(name, kind), builders.texts()
    x = model.embed(batch)
    play = model.play(batch, x)
    changed = model.play(batch, torch.where(play.z.amax(1)[..., None] > 0, x, torch.randn_like(x)))
    changed.__dict__.update(z=play.z, condition=play.condition)  # the words are chosen as before
    if model.rules.answers == "reader":
        found, expected = (each.read("predictor", "selected", model.mask).logits for each in (changed, play))
    else:
        found, expected = (each.concepts.logits for each in (changed, play))
    torch.testing.assert_close(found, expected)


@EVERY
def test_a_little_training_ends_in_finite_weights_that_are_the_same_for_the_same_seed(name):
    options, given = Training(epochs=3, patience=3, batch_size=12, learning_rate=5e-3), rows(12)

    def learnt():
        scheme = RECIPES[name](Options(rate=0.3))
        cast = players(scheme.rules, scheme.readers, dtype=torch.float32, extras=scheme.extras)
        before = {key: each.clone() for key, each in cast.state_dict().items()}
        model, course = learn(cast, scheme, given, given, options)
        after = model.players.state_dict()
        assert any(not torch.equal(before[key], each) for key, each in after.items())
        return after, course

    (one, course), (other, again) = learnt(), learnt()
    assert course == again
    assert all(each.isfinite().all() and torch.equal(each, other[key]) for key, each in one.items())
