"""Transformers with parts drawn anew: from the classifier down, layer by layer, and nothing else."""

from __future__ import annotations

import pytest
import torch

from assay.intervene.perturbation import cascade, randomised
from tests import pretrained

SEED = 5  # another one than the models were made with
DEPTHS = {
    "bert": ("classifier", "layer 1", "layer 0", "embedding"),
    "gpt2": ("classifier", "layer 1", "layer 0", "embedding"),
    "distilbert": ("classifier", "layer 1", "layer 0", "embedding"),
    "albert": ("classifier", "layer 0", "embedding"),  # both layers are one
}
HEADS = {
    "bert": {"bert.pooler.dense.weight", "classifier.weight"},
    "gpt2": {"score.weight"},
    "distilbert": {"pre_classifier.weight", "classifier.weight"},
    "albert": {"albert.pooler.weight", "classifier.weight"},
}
EVERY = pytest.mark.parametrize("architecture", DEPTHS)


def changed(one, other):
    """The matrices in which two models differ; biases and norms start alike."""
    pairs = zip(one.named_parameters(), other.parameters(), strict=True)
    return {name.removeprefix("inner.") for (name, mine), theirs in pairs if not torch.equal(mine, theirs)}


def matrices(model, part):
    mine = {id(weight) for weight in model.part(part).parameters()}
    named = model.named_parameters()
    return {name.removeprefix("inner.") for name, weight in named if id(weight) in mine and weight.ndim > 1}


@EVERY
def test_each_depth_draws_one_part_more_and_leaves_the_rest(architecture):
    model = pretrained.pretrained(architecture)
    assert model.cascade == DEPTHS[architecture]
    expected = set()
    for part, other in cascade(model, SEED).items():
        expected |= matrices(model, part)
        if part == "embedding":  # positions and all that lies between the table and the layers go with it
            expected = {name.removeprefix("inner.") for name, weight in model.named_parameters() if weight.ndim > 1}
        assert changed(model, other) == expected


@EVERY
def test_the_pooler_goes_with_the_classifier(architecture):
    model = pretrained.pretrained(architecture)
    assert changed(model, randomised(model, ("classifier",), SEED)) == HEADS[architecture]


@EVERY
def test_the_answers_of_the_model_stay_and_those_of_the_others_differ(architecture):
    model, batch = pretrained.pretrained(architecture, initializer_range=0.1), pretrained.batch()
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    with torch.no_grad():
        before = model(model.embed(batch), batch).logits
        answers = [other(other.embed(batch), batch).logits for other in cascade(model, SEED).values()]
        assert torch.equal(model(model.embed(batch), batch).logits, before)
    assert all(torch.equal(weights[name], weight) for name, weight in model.state_dict().items())
    for one, other in zip([before, *answers], answers, strict=False):
        assert not torch.allclose(one, other)


@EVERY
def test_a_part_is_drawn_alike_at_every_depth_and_chance_is_left_as_it_was(architecture):
    model = pretrained.pretrained(architecture)
    state = torch.random.get_rng_state()
    first, last = cascade(model, SEED)["classifier"], randomised(model, model.cascade, SEED)
    assert torch.equal(torch.random.get_rng_state(), state)
    pairs = zip(first.part("classifier").parameters(), last.part("classifier").parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert changed(last, randomised(model, model.cascade, SEED + 1))
