"""A model on several devices against the same model on one: here every device is the processor."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from assay import costs
from assay.explainers import EXPLAINERS
from assay.models.parallel import copies, parallel
from assay.types import BlankModel, PooledModel, StackedModel
from tests import builders, pretrained

DEVICES = ("cpu", "cpu", "cpu")  # four texts do not divide by three


def made(name):
    """A model, and a batch for it."""
    if name in builders.KINDS:
        return builders.kind(name, classes=3), builders.structured(builders.batch((7, 1, 4, 12, 3)))
    if name == "attentive":
        return pretrained.attentive(), pretrained.batch()
    return pretrained.pretrained(name), pretrained.batch()


class Given:
    """An edit that holds the weights of the whole batch: it does not know parts of it."""

    def __init__(self, layers=None):
        self.layers = layers
        self.seen = []

    def __call__(self, weights, mask):
        self.seen.append(weights.shape)
        generator = torch.Generator().manual_seed(len(weights))
        drawn = torch.rand(weights.shape, generator=generator, dtype=weights.dtype) + weights
        spread = mask.reshape(len(mask), *[1] * (weights.ndim - 2), -1)
        drawn = drawn * spread
        return drawn / drawn.sum(-1, keepdim=True).clamp(min=1e-9)


class Placed(Given):
    """The same in some layers only."""

    def at(self, layer):
        return self if layer in self.layers else None


def same(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)


def same_output(found, expected):
    same(found.logits, expected.logits)
    assert len(found.attention) == len(expected.attention)
    for one, other in zip(found.attention, expected.attention, strict=True):
        same(one, other)


NATIVE = ("lstm", "transformer", "hierarchical-gru", "paired-lstm")
TRANSFORMERS = ("bert", "gpt2", "modernbert", "mpnet")


@pytest.mark.parametrize("name", [*NATIVE, *TRANSFORMERS, "attentive"])
@torch.no_grad()
def test_the_answers_are_those_of_one_model(name):
    model, batch = made(name)
    expected = model(model.embed(batch), batch)
    spread = parallel(model, DEVICES)
    same_output(spread(spread.embed(batch), batch), expected)
    assert len(copies(spread)) == len(DEVICES)


@pytest.mark.parametrize("name", [*NATIVE, "bert", "gpt2", "attentive"])
def test_the_slopes_of_embeddings_are_those_of_one_model(name):
    model, batch = made(name)

    def gradient(network):
        x = network.embed(batch).detach().requires_grad_()
        return torch.autograd.grad(network(x, batch).probabilities[:, 0].sum(), x)[0]

    expected = gradient(model)
    same(gradient(parallel(model, DEVICES)), expected)


POOLED = ("lstm", "hierarchical-gru", "attentive")
STACKS = ("bert", "gpt2", "modernbert")


@pytest.mark.parametrize(
    ("name", "kind"), [(name, Given) for name in (*POOLED, *STACKS)] + [(name, Placed) for name in STACKS]
)
@torch.no_grad()
def test_an_edit_sees_the_weights_of_the_whole_batch_once(name, kind):
    model, batch = made(name)
    alone, together = kind({1}), kind({1})
    expected = model(model.embed(batch), batch, alone)
    spread = parallel(model, DEVICES)
    same_output(spread(spread.embed(batch), batch, edit=together), expected)
    assert together.seen == alone.seen


@pytest.mark.parametrize("name", ["transformer", "bert", "gpt2", "mpnet", "attentive"])
@torch.no_grad()
def test_every_layer_is_shown_as_wide_as_by_one_model(name):
    model, batch = made(name)
    expected = model.layered(model.embed(batch), batch)
    spread = parallel(model, DEVICES)
    found = spread.layered(spread.embed(batch), batch)
    same(found.logits, expected.logits)
    real = model.token_index(batch) >= 0
    for one, other in zip(found.attention, expected.attention, strict=True):
        assert one.shape == other.shape
        rows = real[:, None, :, None] if one.ndim == 4 else True  # what padding attends to is nobody's concern
        same(one * rows, other * rows)


@pytest.mark.parametrize("count", [1, 2])
@torch.no_grad()
def test_there_may_be_fewer_texts_than_devices(count):
    model, batch = made("bert")
    few = batch[:count]
    expected = model(model.embed(few), few, Given())
    spread = parallel(model, DEVICES)
    same_output(spread(spread.embed(few), few, Given()), expected)


@pytest.mark.parametrize("name", ["lstm", "bert", "attentive"])
def test_it_is_the_kind_of_model_that_it_was_and_explainers_agree(name):
    model, batch = made(name)
    names = ("gradient", "occlusion", "integrated_gradients", "lime")
    expected = [EXPLAINERS[each](model, batch, batch.labels) for each in names]
    kinds = (type(model), PooledModel, StackedModel, BlankModel)
    spread = parallel(model, DEVICES)
    assert [isinstance(spread, each) for each in kinds] == [isinstance(model, each) for each in kinds]
    assert spread.facts == model.facts
    for each, scores in zip(names, expected, strict=True):
        torch.testing.assert_close(EXPLAINERS[each](spread, batch, batch.labels), scores, atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_copies_follow_when_weights_change():
    model, batch = made("bert")
    spread = parallel(model, DEVICES)
    x = spread.embed(batch)
    for network in (spread, deepcopy(spread)):
        before = network(x, batch).logits
        for parameter in network.part("layer 0").parameters():
            parameter.mul_(0.5)
        after = network(x, batch).logits
        assert not torch.allclose(before, after)
        single = deepcopy(network)
        single.others = ()
        same(after, single(x, batch).logits)


@torch.no_grad()
def test_where_somebody_listens_in_all_is_read_at_one_place():
    model, batch = made("bert")
    spread = parallel(model, DEVICES)
    seen = []
    with spread.part("layer 0").register_forward_hook(lambda part, given, found: seen.append(len(given[0]))):
        spread(spread.embed(batch), batch)
    assert seen == [len(batch)]


def test_a_fault_in_an_edit_is_told_and_leaves_nobody_waiting():
    model, batch = made("bert")
    spread = parallel(model, DEVICES)

    def wrong(weights, mask):
        raise RuntimeError("no such edit")

    with pytest.raises(RuntimeError, match="no such edit"):
        spread(spread.embed(batch), batch, wrong)
    spread(spread.embed(batch), batch)


def test_passes_are_counted_in_every_thread():
    model, batch = made("bert")
    spread = parallel(model, DEVICES)
    with costs.measured() as cost:
        spread(spread.embed(batch), batch)
    assert cost.forward == len(batch)


def test_weights_want_no_gradient_and_a_replaced_forward_is_refused():
    model, _ = made("bert")
    spread = parallel(model, DEVICES)
    assert not any(parameter.requires_grad for parameter in spread.parameters())
    assert spread.parameter_count == model.parameter_count
    model.inner.forward = model.inner.forward
    with pytest.raises(ValueError, match="forward of its own"):
        parallel(model, DEVICES)
