"""Spans and sentences against reading each shorter text again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.errors import AssayError
from assay.explainers.occlusion import Occlusion, SentenceOcclusion, SpanOcclusion, every_span, span_drops
from assay.models.encoders import ENCODERS
from assay.models.erasure import REMOVALS
from assay.types import Batch
from tests import builders


def probability(model, ids, label):
    if not len(ids):
        return model.decoder.bias.softmax(-1)[label]
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    return model(model.embed(batch), batch).probabilities[0, label]


def without(model, batch, target, row, places):
    """The drop when these places of a text are cut out."""
    ids = batch.ids[row, batch.mask[row]]
    rest = torch.tensor([word for place, word in enumerate(ids.tolist()) if place not in places], dtype=torch.long)
    return probability(model, ids, target[row]) - probability(model, rest, target[row])


@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_given_spans_equal_cutting_them_out(encoder):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch(width=14)
    target = torch.tensor([2, 0, 1, 2])
    spans = torch.tensor([[3, 4, 9], [0, 0, 7], [1, 0, 1], [3, 11, 12], [0, 2, 3], [3, 0, 5]])
    expected = [without(model, batch, target, row, range(start, stop)) for row, start, stop in spans.tolist()]
    torch.testing.assert_close(span_drops(model, batch, target, spans), torch.stack(expected))


@torch.no_grad()
def test_a_token_gets_the_mean_share_of_the_spans_that_hold_it():
    model, batch = builders.model(), builders.batch((5, 1, 3, 2))
    for longest in (1, 2, 3, 9):
        expected = torch.zeros(batch.ids.shape, dtype=torch.float64)
        for row, length in enumerate(batch.lengths.tolist()):
            spans = [range(a, b) for a in range(length) for b in range(a + 1, min(a + longest, length) + 1)]
            for place in range(length):
                shares = [without(model, batch, batch.labels, row, s) / len(s) for s in spans if place in s]
                expected[row, place] = sum(shares) / len(shares)
        found = SpanOcclusion(longest)(model, batch, batch.labels)
        torch.testing.assert_close(found.double(), expected, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("removal", REMOVALS)
def test_spans_of_one_token_are_plain_occlusion(removal):
    model, batch = builders.model(markers=True), builders.batch()
    torch.testing.assert_close(
        SpanOcclusion(1, removal)(model, batch, batch.labels), Occlusion(removal)(model, batch, batch.labels)
    )


def test_every_span_is_listed_once_and_none_reaches_into_padding():
    found = [tuple(span) for span in every_span(builders.batch((4, 1, 2)), 3).tolist()]
    first = [
        (0, start, stop) for start, stop in [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 3), (2, 4), (0, 3), (1, 4)]
    ]
    assert sorted(found) == sorted([*first, (1, 0, 1), (2, 0, 1), (2, 1, 2), (2, 0, 2)])
    with pytest.raises(AssayError, match="at least 1 token"):
        every_span(builders.batch(), 0)


@torch.no_grad()
def test_a_sentence_is_cut_out_as_a_whole():
    model, batch = builders.model(), builders.batch((6, 1, 4), width=8)
    numbers = torch.tensor([[0, 0, 1, 1, 1, 4, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]])
    found = SentenceOcclusion()(model, replace(batch, sentences=numbers), batch.labels).double()
    drops = {(0, 0): (0, 1), (0, 1): (2, 3, 4), (0, 4): (5,), (1, 2): (0,), (2, 0): (0, 1, 2, 3)}
    expected = torch.zeros(3, 8, dtype=torch.float64)
    for (row, _), places in drops.items():
        expected[row, list(places)] = without(model, batch, batch.labels, row, places)
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-5)


def test_a_text_whose_sentences_are_not_known_is_one():
    model, batch = builders.model(), builders.batch()
    numbered = replace(batch, sentences=torch.zeros_like(batch.ids))
    for removal in ("delete", "zero"):
        explain = SentenceOcclusion(removal)
        assert torch.equal(explain(model, batch, batch.labels), explain(model, numbered, batch.labels))
        assert all(len(row[row != 0].unique()) == 1 for row in explain(model, batch, batch.labels))
