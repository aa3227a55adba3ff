"""One attention over the words of an encoder: everything that holds of pooled models holds of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.explainers import EXPLAINERS
from assay.intervene import OneHot, Without, uniform
from assay.intervene.adversary import furthest
from assay.types import BlankModel, PooledModel, StackedModel, of_tokens, token_logits
from tests import pretrained as made

ENCODERS = pytest.mark.parametrize("architecture", ["bert", "gpt2", "deberta"])
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # in DeBERTa


def read(network, batch):
    """The states and weights of a batch."""
    with torch.no_grad():
        states = network.states(network.embed(batch), batch)
        return states, network.attend(states, batch)


@ENCODERS
def test_it_is_a_pooled_model_and_a_stack_with_blanks(architecture):
    network = made.attentive(architecture)
    assert isinstance(network, PooledModel) and isinstance(network, StackedModel) and isinstance(network, BlankModel)
    assert network.layers == 2 and network.classes == 3


@ENCODERS
def test_the_state_of_a_word_is_the_mean_of_those_of_its_pieces(architecture):
    network, batch = made.attentive(architecture), made.batch()
    states, _ = read(network, batch)
    network.inner.set_attn_implementation("eager")
    encoded = made.tokenizer(architecture)(list(made.TEXTS), padding=True, return_tensors="pt")
    with torch.no_grad():
        plain = network.inner(**encoded).last_hidden_state
    for row in range(4):
        place = 1  # after the first special subword
        for word in range(int(batch.lengths[row])):
            subwords = int((batch.subwords[row, word] >= 0).sum())
            torch.testing.assert_close(states[row, word], plain[row, place : place + subwords].mean(0))
            place += subwords
        assert (states[row, int(batch.lengths[row]) :] == 0).all()


@ENCODERS
def test_the_answer_is_the_decoded_mean_of_states(architecture):
    network, batch = made.attentive(architecture), made.batch()
    states, weights = read(network, batch)
    with torch.no_grad():
        output = network(network.embed(batch), batch)
    assert torch.equal(output.attention[0], weights)
    torch.testing.assert_close(weights.sum(-1), torch.ones(4).double())
    assert (weights[~batch.mask] == 0).all()
    mean = torch.zeros(4, states.shape[-1]).double()
    for row, word in [(row, word) for row in range(4) for word in range(states.shape[1])]:
        mean[row] += weights[row, word] * states[row, word]
    torch.testing.assert_close(output.logits, mean @ network.decoder.weight.T + network.decoder.bias)


@ENCODERS
def test_any_attention_gives_the_weighted_mean_of_token_logits(architecture):
    network, batch = made.attentive(architecture), made.batch()
    states, weights = read(network, batch)
    with torch.no_grad():
        values = token_logits(network, states)
        for other in (weights, uniform(weights, batch.mask), OneHot(0)(weights, batch.mask)):
            expected = (other[..., None] * values).sum(1)
            torch.testing.assert_close(network.decode(states, other), expected)
            given = network(network.embed(batch), batch, lambda weights, mask, other=other: other)
            torch.testing.assert_close(given.logits, expected)
            assert torch.equal(given.attention[0], other)


def test_the_decoder_is_linear_in_the_weights():
    network, batch = made.attentive(), made.batch()
    states, weights = read(network, batch)
    other = uniform(weights, batch.mask)
    with torch.no_grad():
        one, two = network.decode(states, weights), network.decode(states, other)
        torch.testing.assert_close(network.decode(states, 0.3 * weights + 0.7 * other), 0.3 * one + 0.7 * two)


def test_words_can_be_taken_out_of_its_attention():
    network, batch = made.attentive(), made.batch()
    _, weights = read(network, batch)
    gone = batch.mask & (torch.arange(batch.ids.shape[1]) % 2 == 1)
    with torch.no_grad():
        output = network(network.embed(batch), batch, Without(gone))
    left = weights.masked_fill(gone, 0)
    torch.testing.assert_close(output.attention[0], left / left.sum(-1, keepdim=True))


@ENCODERS
def test_padding_and_the_order_of_the_batch_change_nothing(architecture):
    network, batch = made.attentive(architecture), made.batch()
    wide = replace(
        batch,
        ids=torch.nn.functional.pad(batch.ids, (0, 4)),
        mask=torch.nn.functional.pad(batch.mask, (0, 4)),
        subwords=torch.nn.functional.pad(batch.subwords, (0, 1, 0, 4), value=-1),
        sentences=None,
    )
    order = torch.tensor([3, 1, 0, 2])
    with torch.no_grad():
        expected = network(network.embed(batch), batch).logits
        torch.testing.assert_close(network(network.embed(wide), wide).logits, expected)
        torch.testing.assert_close(network(network.embed(batch[order]), batch[order]).logits, expected[order])


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_exact_adversaries_are_found_on_its_values(classes):
    network, batch = made.attentive(classes=classes), made.batch()
    states, weights = read(network, batch)
    with torch.no_grad():
        values = token_logits(network, states)
        found = furthest(values, weights, batch.mask)
        before = network.decode(states, weights).softmax(-1)
        after = network(network.embed(batch), batch, lambda weights, mask: found.weights[:, 0]).probabilities
    assert torch.allclose(found.weights[:, 0].sum(-1), torch.ones(4).double())
    assert ((after - before).abs().sum(-1) / 2 <= 0.01 + 1e-6).all()
    assert (found.jsd[[0, 2, 3], 0] > 0.05).all()  # words enough to move attention to


@ENCODERS
def test_layers_are_shown_below_the_attention_that_pools(architecture):
    network, batch = made.attentive(architecture), made.batch()
    with torch.no_grad():
        *layers, pooled = network.layered(network.embed(batch), batch).attention
    _, weights = read(network, batch)
    places = network.token_index(batch)
    torch.testing.assert_close(pooled, weights)
    assert [tuple(layer.shape) for layer in layers] == [(4, 4, places.shape[1], places.shape[1])] * 2
    assert torch.equal(
        of_tokens((places >= 0).double(), places, batch.ids.shape[1]).long(), (batch.subwords >= 0).sum(-1)
    )


def test_rollout_follows_the_attention_down_to_the_words():
    network, batch = made.attentive(), made.batch()
    with torch.no_grad():
        *layers, pooled = network.layered(network.embed(batch), batch).attention
    scores = EXPLAINERS["rollout"](network, batch, batch.labels)
    places = network.token_index(batch)
    for row in range(4):
        share = torch.zeros(places.shape[1], dtype=torch.float64)
        for place in range(places.shape[1]):
            word = int(places[row, place])
            if word >= 0:
                share[place] = pooled[row, word] / int((batch.subwords[row, word] >= 0).sum())
        for layer in reversed(layers):
            share = share @ (layer[row].mean(0) + torch.eye(len(share))) / 2
        for word in range(int(batch.lengths[row])):
            assert float(scores[row, word]) == pytest.approx(float(share[places[row] == word].sum()), abs=1e-6)


def test_one_drawn_anew_is_of_the_same_kind_with_other_weights():
    network, batch = made.attentive(), made.batch()
    fresh = network.redrawn(3)
    assert type(fresh) is type(network) and fresh.classes == 3
    with torch.no_grad():
        assert not torch.allclose(fresh(fresh.embed(batch), batch).logits, network(network.embed(batch), batch).logits)
    assert set(network.cascade) == {"decoder", "alignment", "layer 1", "layer 0", "embedding"}
    assert all(isinstance(network.part(name), torch.nn.Module) for name in network.cascade)
