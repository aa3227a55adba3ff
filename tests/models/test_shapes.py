"""Hierarchical and paired networks, against a plain reading of one text at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.errors import AssayError
from assay.intervene.edits import uniform
from assay.models.config import Architecture
from assay.models.encoders import ENCODERS
from assay.models.erasure import version_probabilities
from assay.types import attended, over_tokens, token_logits
from tests import builders

EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
SHAPES = pytest.mark.parametrize("shape", ["flat", "hierarchical", "paired"])


def batch(**options):
    return builders.structured(builders.batch(**options))


def over_items(model, values, batch):
    """The sum of the numbers of each item's tokens."""
    zeros = values.new_zeros(attended(model, batch).shape)
    return zeros.scatter_add(1, model.items(batch), values * batch.mask)


def alone(x):
    return x[None], torch.ones(1, len(x), dtype=torch.bool)


def pooled(alignment, states):
    return alignment(states).softmax(-1) @ states


def plain_hierarchy(model, batch, row):
    """The logits of one text, sentence by sentence."""
    count = int(batch.mask[row].sum())
    words, numbers = model.embedding(batch.ids[row, :count]), batch.sentences[row, :count]
    means = [
        pooled(model.word_alignment, model.word_encoder(*alone(words[numbers == number]))[0])
        for number in numbers.unique()
    ]
    return model.decoder(pooled(model.alignment, model.encoder(*alone(torch.stack(means)))[0]))


@EVERY_ENCODER
@pytest.mark.parametrize("alignment", ["additive", "dot"])
def test_a_hierarchy_reads_sentence_by_sentence(encoder, alignment):
    model, texts = builders.model(encoder=encoder, alignment=alignment, shape="hierarchical", classes=3), batch()
    found = model(model.embed(texts), texts).logits
    for row in range(len(texts)):
        torch.testing.assert_close(found[row], plain_hierarchy(model, texts, row), atol=1e-10, rtol=1e-10)


def test_long_and_short_sentences_are_read_alike():
    texts = builders.batch(lengths=(70, 9))
    ends = torch.zeros(2, 70).long()
    ends[0, [3, 40, 41, 60]], ends[1, 5] = 1, 1
    texts = replace(texts, sentences=ends.cumsum(-1))
    model = builders.model(encoder="gru", shape="hierarchical")
    found = model(model.embed(texts), texts).logits
    torch.testing.assert_close(found, torch.stack([plain_hierarchy(model, texts, row) for row in range(2)]))


def test_weights_of_words_sum_to_one_in_each_sentence():
    model, texts = builders.model(shape="hierarchical"), batch()
    output = model(model.embed(texts), texts)
    words, sentences = output.attention
    torch.testing.assert_close(over_items(model, words, texts), attended(model, texts).double())
    torch.testing.assert_close(words, model.within(model.embed(texts), texts))
    torch.testing.assert_close(sentences.sum(-1), torch.ones(len(texts)).double())


def test_an_emptied_sentence_is_as_if_it_had_never_been():
    model, texts = builders.model(shape="hierarchical", encoder="gru"), batch(lengths=(12,), width=14)
    gone = texts.sentences[0] == texts.sentences[0, 5]
    kept = texts.mask & ~gone
    found = version_probabilities(model, texts, torch.tensor([0]), kept)
    places = kept[0].nonzero()[:, 0]
    left = replace(texts, ids=texts.ids[:, places], mask=texts.mask[:, places], sentences=texts.sentences[:, places])
    expected = plain_hierarchy(model, left, 0).softmax(-1)
    torch.testing.assert_close(found[0], expected)


def test_without_sentences_a_text_is_one():
    model, texts = builders.model(shape="hierarchical"), builders.batch()
    assert attended(model, texts).shape == (4, 1)
    one = replace(texts, sentences=torch.zeros_like(texts.ids))
    torch.testing.assert_close(model(model.embed(texts), texts).logits, model(model.embed(one), one).logits)


def test_nothing_left_of_any_text_gives_the_bias():
    model, texts = builders.model(shape="hierarchical"), batch()
    nothing = replace(texts, mask=torch.zeros_like(texts.mask))
    found = model(model.embed(nothing), nothing).logits
    torch.testing.assert_close(found, model.decoder.bias.expand_as(found))


def plain_pair(model, batch, row):
    """The logits of one pair, as W c + U q + V (c ⊙ q) + b."""
    words = model.embedding(batch.ids[row, : int(batch.mask[row].sum())])
    asked = model.embedding(batch.query.ids[row, : int(batch.query.mask[row].sum())])
    states, query = model.encoder(*alone(words))[0], model.query_encoder(*alone(asked))[0]
    half = states.shape[1] // 2
    recurrent = model.architecture.encoder in ("lstm", "gru")
    summary = torch.cat([query[-1, :half], query[0, half:]]) if recurrent else query.mean(0)
    if model.architecture.alignment == "dot":
        scores = states @ summary / states.shape[1] ** 0.5
    else:
        own, other = model.alignment.project.weight.chunk(2, dim=1)
        scores = (states @ own.T + summary @ other.T + model.alignment.project.bias).tanh()
        scores = (scores @ model.alignment.score.weight.T)[:, 0]
    context = scores.softmax(-1) @ states
    return model.decoder(torch.cat([context, summary, context * summary]))


@EVERY_ENCODER
@pytest.mark.parametrize("alignment", ["additive", "dot"])
def test_a_pair_is_read_as_the_formula_says(encoder, alignment):
    model, texts = builders.model(encoder=encoder, alignment=alignment, shape="paired", classes=3), batch()
    found = model(model.embed(texts), texts).logits
    for row in range(len(texts)):
        torch.testing.assert_close(found[row], plain_pair(model, texts, row), atol=1e-10, rtol=1e-10)


def test_the_query_decides_what_is_attended():
    model, texts = builders.model(shape="paired"), batch()
    other = replace(texts, query=texts.query[torch.tensor([1, 0, 3, 2])])
    one, two = (model(model.embed(texts), each).attention[-1] for each in (texts, other))
    assert (one - two)[texts.mask].abs().max() > 1e-3


def test_a_pair_without_its_query_is_refused():
    model, texts = builders.model(shape="paired"), builders.batch()
    with pytest.raises(AssayError, match="reads pairs"):
        model(model.embed(texts), texts)


def test_a_class_that_is_no_candidate_gets_nothing():
    model, texts = builders.model(shape="paired", classes=4), batch()
    allowed = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1], [1, 1, 1, 1]]).bool()
    free, barred = (
        model(model.embed(texts), each).probabilities for each in (texts, replace(texts, candidates=allowed))
    )
    assert (barred[~allowed] == 0).all()
    expected = free * allowed
    torch.testing.assert_close(barred, expected / expected.sum(-1, keepdim=True))


@SHAPES
@EVERY_ENCODER
def test_logits_are_the_weighted_mean_of_the_items_own(shape, encoder):
    model, texts = builders.model(encoder=encoder, shape=shape, classes=3), batch()
    texts = replace(texts, candidates=torch.tensor([[True, True, False]]).expand(4, 3)) if shape == "paired" else texts
    states = model.states(model.embed(texts), texts)
    weights = uniform(model.attend(states, texts), attended(model, texts))
    found = model(model.embed(texts), texts, uniform).logits
    torch.testing.assert_close(found, (weights[:, None] @ token_logits(model, states))[:, 0])


@SHAPES
def test_padding_and_order_change_nothing(shape):
    model = builders.model(shape=shape)
    narrow, wide = batch(), batch(width=20)
    expected = model(model.embed(narrow), narrow).logits
    torch.testing.assert_close(model(model.embed(wide), wide).logits, expected)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(model(model.embed(narrow[order]), narrow[order]).logits, expected[order])


def test_numbers_of_sentences_are_those_of_their_words():
    model, texts = builders.model(shape="hierarchical"), batch()
    real = attended(model, texts)
    values = torch.arange(real.numel()).reshape(real.shape).double() * real
    sizes = over_items(model, torch.ones(texts.ids.shape).double(), texts)
    torch.testing.assert_close(over_items(model, over_tokens(model, values, texts), texts), values * sizes)


def test_dropout_works_in_training_alone():
    rates = dict.fromkeys(("dropout_words", "dropout_sentences", "dropout_decoder"), 0.5)
    model, texts = builders.model(shape="hierarchical", **rates), batch()
    x = model.embed(texts)
    assert torch.equal(model(x, texts).logits, model(x, texts).logits)
    model.train()
    assert not torch.equal(model(x, texts).logits, model(x, texts).logits)


@pytest.mark.parametrize(
    "options",
    [{"shape": "round"}, {"dropout_words": 1.0}, {"shape": "hierarchical", "markers": True}, {"encoder": "magic"}],
)
def test_what_cannot_be_built_is_refused(options):
    with pytest.raises(AssayError):
        Architecture(**options)
