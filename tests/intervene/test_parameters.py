"""Copies with other parameters: only what was named is another, and the original stays."""

from __future__ import annotations

import pytest
import torch

from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError
from assay.intervene.perturbation import nudged, randomised
from assay.models.config import Architecture, Training
from assay.models.encoders import ENCODERS
from assay.models.network import Classifier
from assay.models.networks import NETWORKS
from assay.models.recipes import Recipe, initialise
from tests import builders


def weights(model: Classifier) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def changed(one: Classifier, other: Classifier) -> set[str]:
    """The parts in which two models differ."""
    mine, theirs = one.state_dict(), other.state_dict()
    return {name.partition(".")[0] for name in mine if not torch.equal(mine[name], theirs[name])}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_only_the_named_parts_are_drawn_anew(encoder, depth):
    model = builders.model(encoder=encoder)
    before = weights(model)
    drawn = {part for part in Classifier.cascade[:depth] if list(getattr(model, part).parameters())}
    assert changed(model, randomised(model, Classifier.cascade[:depth], seed=3)) == drawn
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("shape", NETWORKS)
def test_the_cascade_names_every_part(shape):
    model = builders.model(shape=shape)
    assert {name for name, _ in model.named_children()} == set(model.cascade)
    assert changed(model, randomised(model, model.cascade, seed=3)) == set(model.cascade)


def test_all_parts_together_are_a_model_before_training():
    architecture = Architecture(embedding=6, hidden=8, alignment_size=5)
    tokeniser = Tokeniser.fit(["one two three four five"], TextOptions(min_count=1))
    torch.manual_seed(1)
    model = Classifier(architecture, len(tokeniser.vocabulary), 3)
    fresh = initialise(Recipe(architecture, training=Training(seed=7)), tokeniser, 3)
    assert changed(randomised(model, Classifier.cascade, seed=7), fresh) == set()
    assert (fresh.vectors[0] == 0).all()
    assert float(fresh.vectors[1:].detach().std()) == pytest.approx(0.1, rel=0.5)


def test_a_part_is_drawn_alike_at_every_depth_and_otherwise_by_another_seed():
    model = builders.model()
    one, two = randomised(model, Classifier.cascade[:1], seed=3), randomised(model, Classifier.cascade, seed=3)
    assert torch.equal(one.decoder.weight, two.decoder.weight)
    assert not torch.equal(one.decoder.weight, randomised(model, Classifier.cascade[:1], seed=4).decoder.weight)


@pytest.mark.parametrize("change", [lambda m: randomised(m, Classifier.cascade, 0), lambda m: nudged(m, 0.1, 0)])
def test_precision_and_mode_stay_and_so_does_the_state_of_chance(change):
    model, training = builders.model(dtype=torch.bfloat16), builders.model().train()
    before = torch.random.get_rng_state()
    other = change(model)
    assert {parameter.dtype for parameter in other.parameters()} == {torch.bfloat16}
    assert not other.training
    assert change(training).training
    assert torch.equal(torch.random.get_rng_state(), before)


def test_an_unknown_part_is_named():
    with pytest.raises(AssayError, match="Unknown part of a model 'decodr'; did you mean 'decoder'"):
        randomised(builders.model(), ("decodr",), 0)
