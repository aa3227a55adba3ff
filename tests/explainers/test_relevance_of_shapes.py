"""Relevance through hierarchical and paired networks: closed forms, and sentences redistributed one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from assay.explainers.relevance import AttnLrp, DeepLift, Lrp, contrast, propagated
from assay.models.encoders import ALIGNMENTS, ENCODERS, Nothing
from assay.models.walk import GRADIENT
from tests import builders
from tests.explainers.redistribution import BY_HAND, both_ways, handed_down, pooled_down

SHAPE = pytest.mark.parametrize("shape", ["hierarchical", "paired"])
MARKED_SHAPE = pytest.mark.parametrize(
    ("shape", "markers"), [("hierarchical", False), ("paired", False), ("paired", True)]
)
ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
ALIGNMENT = pytest.mark.parametrize("alignment", ALIGNMENTS)
METHOD = pytest.mark.parametrize("method", [Lrp(), AttnLrp(), DeepLift()], ids=["lrp", "attnlrp", "deeplift"])
TARGET = torch.tensor([0, 1, 2, 1])
CLOSE = {"atol": 1e-12, "rtol": 1e-9}
PARTS = ("tokens", "biases", "positions", "markers", "query")


def alone(x):
    return x[None], torch.ones(1, len(x), dtype=torch.bool)


@MARKED_SHAPE
@ENCODER
@ALIGNMENT
def test_with_true_derivatives_the_reading_is_the_model(shape, markers, encoder, alignment):
    model = builders.model(shape=shape, markers=markers, encoder=encoder, alignment=alignment, classes=3)
    batch = builders.texts()
    x = model.embed(batch).detach().requires_grad_()
    logits = model(x, batch).logits
    explained = logits[range(4), TARGET] - (logits.sum(-1) - logits[range(4), TARGET]) / 2
    (gradient,) = torch.autograd.grad(explained.sum(), x)
    found = propagated(model, batch, TARGET, GRADIENT)
    torch.testing.assert_close(found.explained, explained.detach(), **CLOSE)
    torch.testing.assert_close(found.tokens, (x * gradient).sum(-1).detach() * batch.mask, **CLOSE)


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "transformer"])
def test_biases_of_words_and_of_sentences_get_value_times_derivative(encoder):
    model, batch = builders.model(shape="hierarchical", encoder=encoder), builders.texts((7, 5))
    biases = [one for name, one in model.named_parameters() if "bias" in name]
    margins = contrast(model(model.embed(batch), batch).logits, batch.labels)
    for row in range(2):
        gradients = torch.autograd.grad(margins[row], biases, retain_graph=True)
        expected = sum((bias * gradient).sum() for bias, gradient in zip(biases, gradients, strict=True))
        found = propagated(model, batch, batch.labels, GRADIENT).biases[row]
        torch.testing.assert_close(found, expected.detach(), **CLOSE)


@MARKED_SHAPE
@ENCODER
@ALIGNMENT
def test_relevance_is_conserved_when_the_query_is_counted(shape, markers, encoder, alignment):
    model = builders.model(shape=shape, encoder=encoder, alignment=alignment, markers=markers, classes=3)
    shares = Lrp().shares(model, builders.texts(), TARGET)
    parts = shares.tokens.sum(-1) + sum(getattr(shares, part) for part in PARTS[1:])
    torch.testing.assert_close(parts, shares.explained, atol=1e-12, rtol=1e-12)
    assert (shares.gap < 1e-9).all()
    assert (shares.biases.abs() > 1e-6).all()
    assert (shares.query.abs() > 1e-6).all() == (shape == "paired")
    assert (shares.markers != 0).all() == (markers and encoder not in ("average", "none"))
    assert (shares.positions != 0).all() == (encoder == "transformer")


@pytest.mark.parametrize("encoder", BY_HAND)
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_relevance_goes_to_sentences_and_from_each_to_its_words(encoder, epsilon):
    model, batch = builders.model(shape="hierarchical", encoder=encoder), builders.batch((6,))
    batch = replace(batch, sentences=torch.tensor([[0, 0, 1, 2, 2, 2]]))
    with torch.no_grad():
        x, output = model.embed(batch), model(model.embed(batch), batch)
        within, over = (weights[0].numpy() for weights in output.attention)
        parts = [[0, 1], [2], [3, 4, 5]]
        words = [model.word_encoder(*alone(x[0, part]))[0].numpy() for part in parts]
        means = np.stack([within[part] @ each for part, each in zip(parts, words, strict=True)])
        states, logits = model.states(x, batch)[0].numpy(), output.logits[0].numpy()
    decoder, offset = model.decoder.weight.detach().numpy(), model.decoder.bias.detach().numpy()
    to_context = handed_down(over @ states, decoder, logits, logits * np.array([1, -1]), epsilon)
    biases = handed_down(np.ones(1), offset[:, None], logits, logits * np.array([1, -1]), epsilon).sum()
    to_states = pooled_down(over, states, to_context, epsilon)
    to_means, of_sentences = both_ways(model.encoder, means, to_states, epsilon)
    tokens, biases = np.zeros(6), biases + of_sentences
    for part, each, relevance in zip(parts, words, to_means, strict=True):
        to_words = pooled_down(within[part], each, relevance, epsilon)
        found, of_words = both_ways(model.word_encoder, x[0, part].numpy(), to_words, epsilon)
        tokens[part], biases = found.sum(-1), biases + of_words
    shares = Lrp(epsilon).shares(model, batch, batch.labels)
    np.testing.assert_allclose(shares.tokens[0], tokens, rtol=1e-8)
    np.testing.assert_allclose(shares.biases[0], biases, rtol=1e-8)


@ALIGNMENT
def test_without_an_encoder_a_word_has_the_product_of_both_weights(alignment):
    model = builders.model(shape="hierarchical", encoder="none", alignment=alignment)
    batch = builders.texts()
    words, sentences = model(model.embed(batch), batch).attention
    side = model.decoder.weight[batch.labels] - model.decoder.weight[1 - batch.labels]
    both = words * sentences.gather(1, model.items(batch)) * batch.mask
    expected = both * torch.einsum("btd,bd->bt", model.embed(batch), side)
    torch.testing.assert_close(Lrp().shares(model, batch, batch.labels).tokens, expected.detach(), **CLOSE)


@ENCODER
def test_long_and_short_sentences_are_explained_alike(encoder):
    model, plain = builders.model(shape="hierarchical", encoder=encoder), builders.batch((60, 45, 6))
    begins = torch.isin(torch.arange(60), torch.tensor([2, 37, 40, 57])).long()
    batch, target = replace(plain, sentences=begins.cumsum(0).expand(3, 60)), plain.labels
    x = model.embed(batch).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(contrast(model(x, batch).logits, target).sum(), x)
    found = propagated(model, batch, target, GRADIENT)
    torch.testing.assert_close(found.tokens, (x * gradient).sum(-1).detach() * batch.mask, **CLOSE)
    for method in (Lrp(), DeepLift()):
        shares = method.shares(model, batch, target)
        assert (shares.gap < 1e-9).all()
        for row in range(3):
            alone = method.shares(model, batch[row : row + 1], target[row : row + 1])
            torch.testing.assert_close(alone.biases[0], shares.biases[row], **CLOSE)


@METHOD
@ENCODER
def test_one_sentence_with_nothing_above_it_is_a_flat_network(method, encoder):
    model, batch = builders.model(shape="hierarchical", encoder=encoder), builders.batch()
    size = model.word_encoder.size
    model.encoder, model.decoder = Nothing(size, 0), nn.Linear(size, 2).double()
    model.alignment = ALIGNMENTS["additive"](size, 5).double()
    flat = builders.model(encoder=encoder)
    flat.embedding, flat.decoder = model.embedding, model.decoder
    flat.encoder, flat.alignment = model.word_encoder, model.word_alignment
    found, expected = (method.shares(each, batch, batch.labels) for each in (model, flat))
    # Half of what AttnLRP says of a weighted mean is its weights', and a weight that is always 1 passes nothing on.
    share = 0.5 if isinstance(method, AttnLrp) else 1.0
    torch.testing.assert_close(found.tokens, share * expected.tokens, **CLOSE)
    torch.testing.assert_close(found.positions, share * expected.positions, **CLOSE)
    torch.testing.assert_close(found.explained, expected.explained, **CLOSE)


def test_what_stands_in_other_texts_does_not_reach_a_sentence():
    model, batch = builders.model(shape="hierarchical", encoder="transformer"), builders.texts()
    together = Lrp().shares(model, batch, batch.labels)
    for row in range(4):
        apart = Lrp().shares(model, batch[row : row + 1], batch.labels[row : row + 1])
        for part in PARTS:
            torch.testing.assert_close(getattr(apart, part)[0], getattr(together, part)[row], **CLOSE)


def pieces(model, batch):
    """Of each pair: words as encoded, query, attention, and the decoder's W, U and V for the label less the other."""
    encoded = model.encoder(model.embed(batch), batch.mask)
    weights = model(model.embed(batch), batch).attention[-1]
    side = model.decoder.weight[batch.labels] - model.decoder.weight[1 - batch.labels]
    return [part.detach() for part in (encoded, model.query_encoding(batch), weights, *side.chunk(3, dim=1))]


@ALIGNMENT
@pytest.mark.parametrize("encoder", ["none", "average"])
def test_a_pair_has_its_closed_form(encoder, alignment):
    model = builders.model(shape="paired", encoder=encoder, alignment=alignment)
    batch = builders.texts()
    encoded, query, weights, of_words, of_query, of_both = pieces(model, batch)
    gradient = (weights[..., None] * (of_words + of_both * query)[:, None]).detach()
    offset = model.decoder.bias[batch.labels] - model.decoder.bias[1 - batch.labels]
    if encoder == "average":
        gradient = gradient * (encoded > 0)
        offset = offset + gradient.sum(1) @ model.encoder.projection.bias
        gradient = gradient @ model.encoder.projection.weight
    shares = Lrp().shares(model, batch, batch.labels)
    torch.testing.assert_close(shares.tokens, (gradient * model.embed(batch)).sum(-1).detach(), **CLOSE)
    torch.testing.assert_close(shares.query, (of_query * query).sum(-1), **CLOSE)
    torch.testing.assert_close(shares.biases, offset.detach(), **CLOSE)


def damped(total, epsilon):
    """What a stabiliser leaves of the relevance of a sum."""
    return total.abs() / (total.abs() + epsilon)


@ALIGNMENT
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_attention_aware_relevance_of_a_pair_has_its_closed_form(alignment, epsilon):
    model, batch = builders.model(shape="paired", encoder="none", alignment=alignment), builders.texts((7,))
    with torch.no_grad():
        x, query, output = model.embed(batch)[0], model.query_encoding(batch)[0], model(model.embed(batch), batch)
        weights, logits = output.attention[-1][0], output.logits[0]
        margin = damped(logits, epsilon) * torch.tensor([1, -1])
        of_words, of_query, of_both = (margin @ model.decoder.weight).chunk(3)
        gradient = (of_words + of_both * query) * damped(weights @ x, epsilon)
        to_score = weights * (x @ gradient - weights @ x @ gradient) / 2
        if alignment == "dot":
            by_score, from_query = damped(x @ query, epsilon)[:, None] * query / 6**0.5, 0.0
        else:
            own, other = model.alignment.project.weight.chunk(2, dim=1)
            before = x @ own.T + other @ query + model.alignment.project.bias
            ratio = before.tanh() / before * damped(before, epsilon) * model.alignment.score.weight[0]
            ratio = ratio * damped(before.tanh() @ model.alignment.score.weight.T, epsilon)
            by_score, from_query = ratio @ own, to_score @ ratio @ other @ query
        expected = x * (weights[:, None] * gradient / 2 + to_score[:, None] * by_score)
    shares = AttnLrp(epsilon).shares(model, batch, batch.labels)
    torch.testing.assert_close(shares.tokens[0], expected.sum(-1), **CLOSE)
    torch.testing.assert_close(shares.query[0], of_query @ query + from_query, **CLOSE)


@METHOD
def test_classes_that_are_no_candidates_are_as_if_they_were_not_there(method):
    model, batch = builders.model(shape="paired", classes=5), builders.texts((7, 4))
    allowed = torch.tensor([0, 2, 3])
    fewer = builders.model(shape="paired", classes=3)
    fewer.load_state_dict(
        model.state_dict() | {f"decoder.{name}": getattr(model.decoder, name)[allowed] for name in ("weight", "bias")}
    )
    barred = replace(batch, candidates=torch.tensor([[True, False, True, True, False]]).expand(2, 5))
    found = method.shares(model, barred, torch.tensor([2, 3]))
    expected = method.shares(fewer, batch, torch.tensor([1, 2]))
    for part in (*PARTS, "explained"):
        torch.testing.assert_close(getattr(found, part), getattr(expected, part), **CLOSE)
    logits = model(model.embed(barred), barred).logits.detach()[:, allowed]
    if not isinstance(method, DeepLift):
        torch.testing.assert_close(found.explained, contrast(logits, torch.tensor([1, 2])), atol=1e-8, rtol=0)


@METHOD
def test_a_barred_target_and_a_lone_candidate_have_ordinary_scores(method):
    model, batch = builders.model(shape="paired", classes=3), builders.texts((7, 4))
    barred = replace(batch, candidates=torch.tensor([[False, True, True], [True, False, False]]))
    shares = method.shares(model, barred, torch.tensor([0, 0]))
    assert shares.tokens.isfinite().all()
    assert (shares.explained.abs() < 100).all()
    assert (shares.tokens[batch.mask] != 0).all()
    if isinstance(method, Lrp):
        assert (shares.gap < 1e-9).all()


def test_a_flat_network_bars_no_class():
    model, batch = builders.model(classes=3), builders.texts()
    some = replace(batch, candidates=torch.tensor([[True, True, False]]).expand(4, 3))
    assert torch.equal(Lrp()(model, some, batch.labels), Lrp()(model, batch, batch.labels))


def test_another_query_gives_other_scores():
    model, batch = builders.model(shape="paired"), builders.texts()
    other = replace(batch, query=batch.query[torch.tensor([3, 2, 1, 0])])
    one, two = (Lrp()(model, each, batch.labels) for each in (batch, other))
    assert (one - two)[batch.mask].abs().max() > 1e-2


@SHAPE
@METHOD
@ENCODER
def test_padding_and_order_change_no_share(shape, method, encoder):
    model = builders.model(shape=shape, encoder=encoder)
    narrow, wide, order = builders.texts(), builders.texts(width=20), torch.tensor([2, 0, 3, 1])
    expected = method.shares(model, narrow, narrow.labels)
    padded = method.shares(model, wide, wide.labels)
    moved = method.shares(model, narrow[order], narrow.labels[order])
    torch.testing.assert_close(padded.tokens[:, :12], expected.tokens, **CLOSE)
    assert (padded.tokens[:, 12:] == 0).all()
    for part in PARTS[1:]:
        torch.testing.assert_close(getattr(padded, part), getattr(expected, part), **CLOSE)
    for part in PARTS:
        torch.testing.assert_close(getattr(moved, part), getattr(expected, part)[order], **CLOSE)


@SHAPE
@METHOD
@ENCODER
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fewer_digits_give_finite_scores(shape, method, encoder, dtype):
    batch = replace(builders.texts(), candidates=torch.tensor([[True, True, False]]).expand(4, 3))
    single, exact = (
        method(builders.model(shape=shape, encoder=encoder, classes=3, dtype=each), batch, batch.labels)
        for each in (dtype, torch.float64)
    )
    assert single.isfinite().all()
    error = (single - exact).abs().max() / exact.abs().max()
    assert error < (1e-4 if dtype == torch.float32 else 0.2)


@SHAPE
@METHOD
@ENCODER
@pytest.mark.parametrize("kept", [0, 1])
def test_an_empty_text_has_the_decoders_bias_alone(shape, method, encoder, kept):
    model, batch = builders.model(shape=shape, encoder=encoder), builders.texts((7, 4))
    batch = replace(batch, mask=batch.mask & (torch.arange(2) < kept)[:, None])
    shares = method.shares(model, batch, batch.labels)
    bias = 0.0 if isinstance(method, DeepLift) else (model.decoder.bias[1] - model.decoder.bias[0]).item()
    assert (shares.tokens[1] == 0).all()
    assert shares.query[1] == 0
    assert shares.biases[1].item() == pytest.approx(bias)
    assert shares.explained[1].item() == pytest.approx(bias)
