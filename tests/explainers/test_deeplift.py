"""DeepLIFT against its own promise, captum where captum keeps it, and the gradient in the limit."""

from __future__ import annotations

from dataclasses import replace

import captum.attr
import pytest
import torch
from torch import nn

from assay import costs
from assay.errors import AssayError
from assay.explainers import relevance
from assay.explainers.relevance import DeepLift
from assay.explainers.relevance_rules import DEEPLIFT, log_means, secant
from assay.explainers.relevance_walk import Factors, Relevance
from assay.models.encoders import ALIGNMENTS, ENCODERS
from assay.models.walk import GRADIENT, RELU, TANH
from assay.types import BLANKS
from tests import builders

SHAPES = ("flat", "hierarchical", "paired")
TARGET = torch.tensor([0, 1, 2, 1])
CLOSE = {"atol": 1e-12, "rtol": 1e-9}


def one_each(model, batch):
    """A text of blanks for each text."""
    return torch.arange(len(batch)), None


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("baseline", BLANKS)
@pytest.mark.parametrize("markers", [False, True])
def test_the_parts_sum_to_the_difference_from_the_baseline(encoder, baseline, markers):
    model, batch = builders.model(encoder=encoder, markers=markers, classes=3), builders.batch()
    shares = DeepLift(baseline).shares(model, batch, TARGET)
    with torch.no_grad():
        text, blank = (
            model(x, batch).logits for x in (model.embed(batch), model.blank(baseline).expand(*batch.ids.shape, -1))
        )
    expected = relevance.contrast(text - blank, TARGET)
    torch.testing.assert_close(shares.tokens.sum(-1), expected, atol=1e-10, rtol=1e-9)
    assert (shares.gap < 1e-9).all()
    assert (shares.tokens[3] != 0).all()


@pytest.mark.parametrize("shape", ["hierarchical", "paired"])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("baseline", BLANKS)
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_the_baseline_has_the_same_sentences_and_the_same_query(shape, encoder, baseline, alignment):
    model, batch = builders.model(shape=shape, encoder=encoder, alignment=alignment, classes=3), builders.texts()
    shares = DeepLift(baseline).shares(model, batch, TARGET)
    with torch.no_grad():
        blank = model.blank(baseline).expand(*batch.ids.shape, -1)
        expected = relevance.contrast(model(model.embed(batch), batch).logits - model(blank, batch).logits, TARGET)
    torch.testing.assert_close(shares.tokens.sum(-1), expected, atol=1e-10, rtol=0)
    torch.testing.assert_close(shares.explained, expected, **CLOSE)
    assert (shares.query == 0).all()
    assert (shares.tokens[3] != 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_near_baseline_gives_the_gradient(shape, encoder, monkeypatch):
    model, batch = builders.model(shape=shape, encoder=encoder, classes=3), builders.texts()
    step = 1e-4 * torch.randn(*batch.ids.shape, 6, dtype=torch.float64)
    monkeypatch.setattr(relevance, "baseline", lambda *_: model.embed(batch).detach() - step)
    monkeypatch.setattr(relevance, "_blanks", one_each)
    found = DeepLift().shares(model, batch, TARGET).tokens
    x = model.embed(batch).detach().requires_grad_()
    (slope,) = torch.autograd.grad(relevance.contrast(model(x, batch).logits, TARGET).sum(), x)
    torch.testing.assert_close(found * 1e4, (slope * step).sum(-1) * batch.mask * 1e4, atol=2e-3, rtol=1e-2)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("blank", ["zero", "mean"])
def test_texts_of_one_length_share_their_blanks(encoder, blank, monkeypatch):
    model, batch = builders.model(encoder=encoder, classes=3, markers=True), builders.batch((4, 7, 4, 1, 7))
    target = torch.tensor([0, 1, 2, 0, 1])
    with costs.measured() as cost:
        found = DeepLift(blank).shares(model, batch, target)
    assert cost.forward == 5 + 3
    monkeypatch.setattr(relevance, "_blanks", one_each)
    expected = DeepLift(blank).shares(model, batch, target)
    for name in ("tokens", "biases", "markers", "gap"):
        torch.testing.assert_close(getattr(found, name), getattr(expected, name), **CLOSE)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_text_of_blanks_differs_in_nothing(shape, encoder):
    model, batch = builders.model(shape=shape, encoder=encoder), builders.texts()
    batch.ids[batch.mask] = 1  # the unknown word
    shares = DeepLift("mask").shares(model, batch, batch.labels)
    assert (shares.tokens == 0).all()
    assert (shares.gap == 0).all()


def test_the_average_encoder_with_even_attention_equals_captum():
    model, batch = builders.model(encoder="average", alignment="dot"), builders.batch((6,))
    with torch.no_grad():
        model.alignment.project.weight.zero_()
    network = nn.Sequential(model.encoder.projection, nn.ReLU(), Mean(), model.decoder)
    x = model.embed(batch).detach().requires_grad_()
    blank = model.blank("mean").expand_as(x)
    with pytest.warns(UserWarning, match="Setting forward"):
        one, other = (captum.attr.DeepLift(network).attribute(x, blank, target=label) for label in (0, 1))
    found = DeepLift("mean").shares(model, batch, torch.tensor([0])).tokens
    torch.testing.assert_close(found, (one - other).sum(-1).detach(), **CLOSE)


class Mean(nn.Module):
    def forward(self, states):
        return states.mean(1)


class Means(nn.Module):
    """Of the first two words and of the other four."""

    def forward(self, states):
        return torch.stack([states[:, :2].mean(1), states[:, 2:].mean(1)], dim=1)


def test_two_levels_of_the_average_encoder_with_even_attention_equal_captum():
    model = builders.model(shape="hierarchical", encoder="average", alignment="dot")
    batch = replace(builders.batch((6,)), sentences=torch.tensor([[0, 0, 1, 1, 1, 1]]))
    with torch.no_grad():
        model.word_alignment.project.weight.zero_()
        model.alignment.project.weight.zero_()
    words, sentences = model.word_encoder.projection, model.encoder.projection
    network = nn.Sequential(words, nn.ReLU(), Means(), sentences, nn.ReLU(), Mean(), model.decoder)
    x = model.embed(batch).detach().requires_grad_()
    blank = model.blank("mean").expand_as(x)
    with pytest.warns(UserWarning, match="Setting forward"):
        one, other = (captum.attr.DeepLift(network).attribute(x, blank, target=label) for label in (0, 1))
    found = DeepLift("mean").shares(model, batch, torch.tensor([0])).tokens
    torch.testing.assert_close(found, (one - other).sum(-1).detach(), **CLOSE)


def test_a_pair_with_even_attention_is_linear_in_its_words():
    model, batch = builders.model(shape="paired", encoder="none"), builders.texts()
    with torch.no_grad():
        model.alignment.score.weight.zero_()
        side = model.decoder.weight[batch.labels] - model.decoder.weight[1 - batch.labels]
        own, _, both = side.chunk(3, dim=1)
        slope = (own + both * model.query_encoding(batch)) / batch.lengths[:, None]
        expected = torch.einsum("btd,bd->bt", model.embed(batch) - model.blank("mean"), slope) * batch.mask
    torch.testing.assert_close(DeepLift("mean").shares(model, batch, batch.labels).tokens, expected, **CLOSE)


def test_a_network_of_tanh_and_relu_equals_captum():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.ReLU(), nn.Linear(6, 2)).double()
    x, blank = torch.randn(2, 4, 5, dtype=torch.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="Setting forward"):
        expected = captum.attr.DeepLift(network).attribute(x, blank, target=1)
    leaf, factors = torch.cat([x, blank]).detach().requires_grad_(), Factors.of(torch.ones(8, 5, dtype=torch.float64))
    (slope,) = torch.autograd.grad(Relevance(DEEPLIFT, factors).walked(network, leaf)[:4, 1].sum(), leaf)
    torch.testing.assert_close(slope[:4] * (x - blank).detach(), expected.detach(), **CLOSE)


@pytest.mark.parametrize("size", [1e-9, 1.0, 30.0, 300.0])
def test_softmax_leaves_nothing_over_and_stays_within_bounds(size):
    torch.manual_seed(0)
    scores = size * torch.randn(8, 6, dtype=torch.float64)
    scores[4:, :2] = scores[:4, :2]  # some do not change
    mask = torch.tensor([True] * 5 + [False]).expand(8, 6)
    leaf = scores.clone().requires_grad_()
    weights = log_means(leaf, mask)
    torch.testing.assert_close(weights.detach(), scores.masked_fill(~mask, -torch.inf).softmax(-1), **CLOSE)
    for place in range(5):
        (slope,) = torch.autograd.grad(weights[:4, place].sum(), leaf, retain_graph=True)
        parts = slope[:4] * (scores[:4] - scores[4:])
        difference = (weights[:4] - weights[4:]).detach()[:, place]
        torch.testing.assert_close(parts.sum(-1), difference, atol=1e-14 * (1 + size), rtol=1e-9)
        assert (slope.abs() <= 1).all()
        assert (slope[:, 5] == 0).all()


def test_secants_near_and_far_are_exact():
    x = torch.tensor([1.0, 1.0, 0.3, -2.0], dtype=torch.float64)
    y = torch.tensor([1.0, 1.0 - 1e-9, 0.1, 3.0], dtype=torch.float64)
    both = torch.cat([x, y])
    exact = torch.where(x == y, 1.0, (x - y).tanh() / torch.where(x == y, 1.0, x - y)) * (1 - x.tanh() * y.tanh())
    torch.testing.assert_close(secant(TANH, both, both.tanh())[:4], exact, atol=0, rtol=1e-9)
    across = torch.tensor([1e-7, -1e-7, 2.0, -3.0], dtype=torch.float64)
    torch.testing.assert_close(secant(RELU, across, across.relu())[:2], torch.tensor([1.0, 0.0]).double())
    across = torch.tensor([1e-7, -3e-7], dtype=torch.float64)
    torch.testing.assert_close(secant(RELU, across, across.relu())[:1], torch.tensor([0.25]).double())


def test_true_derivatives_and_differences_are_not_the_same():
    model, batch = builders.model(), builders.batch()
    gradient = relevance.propagated(model, batch, batch.labels, GRADIENT).tokens
    assert (DeepLift().shares(model, batch, batch.labels).tokens - gradient).abs().max() > 1e-3


def test_two_passes_forward_and_one_back_are_counted():
    model, batch = builders.model(), builders.batch()
    with costs.measured() as cost:
        DeepLift()(model, batch, batch.labels)
    assert (cost.forward, cost.backward) == (8, 4)


def test_a_baseline_that_nobody_knows_is_refused():
    batch = builders.batch()
    with pytest.raises(AssayError, match="baseline"):
        DeepLift("nothing")(builders.model(), batch, batch.labels)
