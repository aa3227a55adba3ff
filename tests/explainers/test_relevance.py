"""Relevance against the model's own gradients, hand-written redistribution and functions made linear."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay import costs
from assay.errors import AssayError
from assay.explainers.relevance import AttnLrp, Lrp, contrast, propagated
from assay.explainers.relevance_rules import attention_aware, ratio
from assay.explainers.relevance_walk import Factors, Relevance
from assay.models.encoders import ALIGNMENTS, ENCODERS, positions
from assay.models.walk import GELU, GRADIENT, RELU, SIGMOID, TANH, times
from tests import builders
from tests.explainers.redistribution import BY_HAND, both_ways, handed_down, pooled_down

ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
MARKERS = pytest.mark.parametrize("markers", [False, True])
TARGET = torch.tensor([0, 1, 2, 1])
CLOSE = {"atol": 1e-12, "rtol": 1e-9}


@ENCODER
@MARKERS
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_with_true_derivatives_the_reading_is_the_model(encoder, markers, alignment):
    model, batch = builders.model(encoder=encoder, markers=markers, alignment=alignment, classes=3), builders.batch()
    x = model.embed(batch).detach().requires_grad_()
    logits = model(x, batch).logits
    explained = logits[range(4), TARGET] - (logits.sum(-1) - logits[range(4), TARGET]) / 2
    (gradient,) = torch.autograd.grad(explained.sum(), x)
    found = propagated(model, batch, TARGET, GRADIENT)
    torch.testing.assert_close(found.explained, explained.detach(), **CLOSE)
    torch.testing.assert_close(found.tokens, (x * gradient).sum(-1).detach() * batch.mask, **CLOSE)


@pytest.mark.parametrize("encoder", ["lstm", "gru", "transformer"])
def test_biases_and_positions_get_value_times_derivative(encoder):
    model, batch = builders.model(encoder=encoder), builders.batch((5,))
    target = batch.labels
    found = propagated(model, batch, target, GRADIENT)
    biases = [one for name, one in model.named_parameters() if "bias" in name]
    gradients = torch.autograd.grad(contrast(model(model.embed(batch), batch).logits, target).sum(), biases)
    by_hand = sum((bias * gradient).sum() for bias, gradient in zip(biases, gradients, strict=True))
    torch.testing.assert_close(found.biases[0], by_hand.detach(), **CLOSE)
    assert (found.positions != 0) == (encoder == "transformer")


@ENCODER
@MARKERS
def test_relevance_is_conserved_when_biases_positions_and_markers_are_counted(encoder, markers):
    model, batch = builders.model(encoder=encoder, markers=markers, classes=3), builders.batch()
    shares = Lrp().shares(model, batch, TARGET)
    parts = shares.tokens.sum(-1) + shares.biases + shares.positions + shares.markers
    torch.testing.assert_close(parts, shares.explained, atol=0, rtol=1e-9)
    assert (shares.gap < 1e-9).all()
    assert (shares.biases.abs() > 1e-6).all()
    assert (shares.markers != 0).all() == (markers and encoder not in ("average", "none"))


def test_a_stabiliser_loses_relevance_and_says_so():
    model, batch = builders.model(), builders.batch()
    little, much = (Lrp(epsilon).attribute(model, batch, batch.labels).numbers["gap"] for epsilon in (1e-6, 1e-2))
    assert (little < 1e-3).all()
    assert (much > little).all()
    assert (much > 1e-3).any()


@pytest.mark.parametrize("encoder", BY_HAND)
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_recurrent_relevance_equals_redistribution_neuron_by_neuron(encoder, epsilon):
    model, batch = builders.model(encoder=encoder), builders.batch((3,))
    x = model.embed(batch)[0].detach().numpy()
    states = model.states(model.embed(batch), batch)
    weights = model.attend(states, batch)[0].detach().numpy()
    states, logits = states[0].detach().numpy(), model(model.embed(batch), batch).logits[0].detach().numpy()
    decoder, offset = model.decoder.weight.detach().numpy(), model.decoder.bias.detach().numpy()
    context, relevance = weights @ states, logits * np.array([1, -1])
    to_context = handed_down(context, decoder, logits, relevance, epsilon)
    biases = handed_down(np.ones(1), offset[:, None], logits, relevance, epsilon).sum()
    to_states = pooled_down(weights, states, to_context, epsilon)
    tokens, encoder_biases = both_ways(model.encoder, x, to_states, epsilon)
    shares = Lrp(epsilon).shares(model, batch, batch.labels)
    np.testing.assert_allclose(shares.tokens[0], tokens.sum(-1), rtol=1e-9)
    np.testing.assert_allclose(shares.biases[0], biases + encoder_biases, rtol=1e-9)


def test_convolutions_hand_relevance_down_window_by_window():
    model, batch = builders.model(encoder="cnn"), builders.batch((4,))
    x = model.embed(batch)[0].detach()
    weights = model(x[None], batch).attention[-1][0].detach()
    difference = (model.decoder.weight[0] - model.decoder.weight[1]).detach()
    expected, filters = torch.zeros(4, dtype=x.dtype), 4
    for number, layer in enumerate(model.encoder.layers):
        reach = layer.kernel_size[0] // 2
        part = difference[number * filters : (number + 1) * filters]
        for place in range(4):
            for token in range(max(0, place - reach), min(4, place + reach + 1)):
                contribution = layer.weight.detach()[:, :, token - place + reach] @ x[token]
                open_units = layer(x.T[None])[0, :, place].detach() > 0
                expected[token] += weights[place] * (part * open_units * contribution).sum()
    torch.testing.assert_close(Lrp().shares(model, batch, batch.labels).tokens[0], expected, **CLOSE)


def test_a_transformer_held_at_its_own_weights_is_linear_and_relevance_is_what_a_token_adds():
    model, batch = builders.model(encoder="transformer"), builders.batch((5,))
    x = model.embed(batch).detach()
    below, known, encoder = [], [], model.encoder
    pooled = model.attend(model.states(x, batch, below), batch)

    def coefficient(computed):
        """Computed on the first reading, the same on every later one."""
        if len(known) < held.count + 1:
            known.append(computed())
        held.count += 1
        return known[held.count - 1]

    def normed(layer, z):
        centred = z - z.mean(-1, keepdim=True)
        deviation = coefficient(lambda: (z.var(-1, unbiased=False, keepdim=True) + layer.eps).sqrt())
        return centred / deviation * layer.weight + layer.bias

    def held(tokens):
        held.count = 0
        states = encoder.project(tokens) + held.positions
        for block, weights in zip(encoder.blocks, below, strict=True):
            value = block.project(normed(block.before_attention, states)).chunk(3, -1)[2]
            heads = weights @ value.unflatten(-1, (block.heads, -1)).transpose(1, 2)
            states = states + block.merge(heads.transpose(1, 2).flatten(2))
            wide = block.mix[0](normed(block.before_mixing, states))
            states = states + block.mix[2](wide * coefficient(lambda wide=wide: torch.special.ndtr(wide)))
        logits = model.decoder(pooled @ normed(encoder.norm, states))[0, 0]
        return logits[0] - logits[1]

    held.positions = positions(5, 16)
    with torch.no_grad():
        whole = held(x)
        torch.testing.assert_close(whole, contrast(model(x, batch).logits, batch.labels)[0], **CLOSE)
        without = [held(torch.where(torch.arange(5)[:, None] == place, 0.0, x)) for place in range(5)]
    found = Lrp().shares(model, batch, batch.labels).tokens[0]
    torch.testing.assert_close(found, whole - torch.stack(without), atol=1e-12, rtol=1e-8)


def test_attention_shares_are_a_quarter_for_query_and_key_and_half_for_the_value():
    block = builders.model(encoder="transformer").encoder.blocks[0]
    x = torch.randn(2, 5, 16, dtype=torch.float64, requires_grad=True)
    seed = torch.randn(2, 5, 16, dtype=torch.float64)
    visible = torch.ones(2, 1, 1, 5, dtype=torch.bool)

    def gradient(held):
        parts = block.project(x).reshape(2, 5, 3, 4, 4).permute(2, 0, 3, 1, 4)
        query, key, value = (part.detach() if name in held else part for name, part in zip("qkv", parts, strict=True))
        heads = (query @ key.transpose(-1, -2) / math.sqrt(4)).softmax(-1) @ value
        merged = block.merge(heads.transpose(1, 2).reshape(2, 5, 16))
        return torch.autograd.grad((merged * seed).sum(), x)[0]

    factors = Factors.of(torch.ones(2, 5, dtype=torch.float64))
    read = Relevance(attention_aware(0.0), factors).attention(block, x, visible)
    (found,) = torch.autograd.grad((read * seed).sum(), x)
    torch.testing.assert_close(found, gradient("kv") / 4 + gradient("qv") / 4 + gradient("qk") / 2, **CLOSE)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_without_an_encoder_a_word_has_its_weight_times_what_the_decoder_makes_of_it(alignment):
    model, batch = builders.model(encoder="none", alignment=alignment), builders.batch()
    output = model(model.embed(batch), batch)
    side = model.decoder.weight[batch.labels] - model.decoder.weight[1 - batch.labels]
    expected = output.attention[-1] * torch.einsum("btd,bd->bt", model.embed(batch), side)
    shares = Lrp().shares(model, batch, batch.labels)
    torch.testing.assert_close(shares.tokens, expected.detach(), **CLOSE)
    offset = model.decoder.bias[batch.labels] - model.decoder.bias[1 - batch.labels]
    torch.testing.assert_close(shares.biases, offset.detach(), **CLOSE)


def test_attention_aware_relevance_of_the_average_encoder_has_its_closed_form():
    model, batch = builders.model(encoder="average", alignment="dot"), builders.batch((6,))
    x = model.embed(batch)[0]
    states = model.encoder.projection(x).relu()
    weights = model(x[None], batch).attention[-1][0]
    values = states @ (model.decoder.weight[0] - model.decoder.weight[1])
    score = model.alignment.project.weight[0] * model.alignment.scale
    by_value = weights[:, None] * (model.decoder.weight[0] - model.decoder.weight[1]) / 2
    by_weight = (weights * (values - weights @ values))[:, None] * score / 2
    gradient = ((by_value + by_weight) * (states > 0)) @ model.encoder.projection.weight
    found = AttnLrp().shares(model, batch, batch.labels).tokens[0]
    torch.testing.assert_close(found, (gradient * x).sum(-1).detach(), **CLOSE)


def test_what_all_logits_share_is_not_explained():
    model, batch = builders.model(classes=3), builders.batch()
    before = Lrp().shares(model, batch, TARGET)
    with torch.no_grad():
        model.decoder.weight.add_(torch.randn(16))
        model.decoder.bias.add_(3.0)
    after = Lrp().shares(model, batch, TARGET)
    torch.testing.assert_close(after.tokens, before.tokens, **CLOSE)
    torch.testing.assert_close(after.explained, before.explained, **CLOSE)


@pytest.mark.parametrize("explainer", [Lrp(), AttnLrp()])
def test_the_sign_tells_for_and_against(explainer):
    model, batch = builders.model(), builders.batch()
    for_one, for_zero = (explainer(model, batch, torch.full((4,), label)) for label in (1, 0))
    torch.testing.assert_close(for_one, -for_zero)


@pytest.mark.parametrize("function", [TANH, SIGMOID, RELU, GELU])
def test_slopes_are_derivatives(function):
    x = torch.linspace(-3, 3, 12, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(function.value(x).sum(), x)
    torch.testing.assert_close(function.derivative(x.detach()), expected, **CLOSE)


def test_an_activation_of_zero_passes_on_its_slope():
    x = torch.tensor([0.0, 1e-30, -2.0])
    torch.testing.assert_close(ratio(TANH, x, x.tanh()), torch.tensor([1.0, 1.0, math.tanh(2) / 2]))
    assert ratio(GELU, x, GELU.value(x))[0] == 0.5


def test_multipliers_that_are_numbers_cost_nothing():
    one = torch.tensor([2.0])
    assert times(one, 1.0) is one
    assert times(one, 0.0) == 0.0
    assert times(1.0, 1.0) == 1.0


def test_one_pass_forward_and_one_back_are_counted_even_where_gradients_are_off():
    model, batch = builders.model(), builders.batch()
    with torch.no_grad(), costs.measured() as cost:
        Lrp()(model, batch, batch.labels)
    assert (cost.forward, cost.backward) == (4, 4)


class Foreign:
    def embed(self, batch):
        raise NotImplementedError

    def __call__(self, x, batch, edit=None):
        raise NotImplementedError


def test_other_models_and_other_stabilisers_are_refused():
    batch = builders.batch()
    assert Lrp().unfit(builders.model()) is None
    assert Lrp().unfit(Foreign()) is not None
    with pytest.raises(AssayError, match="assay's own flat"):
        Lrp().shares(Foreign(), batch, batch.labels)
    with pytest.raises(AssayError, match="at least 0, got -1"):
        AttnLrp(epsilon=-1.0)
