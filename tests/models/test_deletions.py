"""Deletions that share their work against reading each version of a text again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay import costs
from assay.explainers.occlusion import removed_probabilities
from assay.models import budget, deletions
from assay.models.deletions import RunningMeans, StoredMeans, deletion_logits, shares_work
from assay.models.encoders import ALIGNMENTS, ENCODERS
from assay.models.erasure import filler, version_probabilities
from assay.models.projections import projection
from assay.types import attended
from tests import builders

LENGTHS = (7, 1, 4, 12, 2, 15)
SHAPES = pytest.mark.parametrize("shape", ["flat", "hierarchical", "paired"])
EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
REMOVALS = pytest.mark.parametrize("removal", ["delete", "mean"])
CLOSE = {"atol": 1e-10, "rtol": 1e-10}
OTHERWISE = {
    "sparsemax": {"projection": "sparsemax"},
    "entmax": {"projection": "entmax(1.5)"},
    "uniform": {"projection": "uniform"},
    "concat": {"concat": True},
    "sparse-concat": {"projection": "sparsegen(0.3)", "concat": True},
}
EVERY_OTHER = pytest.mark.parametrize("other", OTHERWISE)


def texts(shape, lengths=LENGTHS, width=18):
    """Texts with long, short and one-word sentences; a pair has a class that it cannot have."""
    batch = builders.structured(builders.batch(lengths, width=width))
    allowed = torch.arange(3) != torch.arange(len(lengths))[:, None] % 4
    return replace(batch, candidates=allowed) if shape == "paired" else batch


@torch.no_grad()
def model(**options):
    """A model with padding that is not the origin."""
    made = builders.model(classes=3, **options)
    made.embedding.weight[0] = 0.3
    return made


def reread(model, batch, removal="delete"):
    """The probabilities without each token, each version read as a text of its own."""
    example, removed = batch.mask.nonzero(as_tuple=True)
    kept = torch.arange(batch.ids.shape[1]) != removed[:, None]
    return version_probabilities(model, batch, example, kept, removal)


def shared(model, batch, removal="delete"):
    assert shares_work(model)
    whole, logits = deletion_logits(model, model.embed(batch), batch, filler(model, batch, removal))
    assert logits.isfinite().all() and not logits.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(whole.softmax(-1), model(model.embed(batch), batch).probabilities, **CLOSE)
    return logits[batch.mask].softmax(-1)


@SHAPES
@EVERY_ENCODER
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@REMOVALS
def test_shared_work_gives_what_reading_again_gives(shape, encoder, alignment, removal):
    network, batch = model(shape=shape, encoder=encoder, alignment=alignment), texts(shape)
    if shares_work(network):
        torch.testing.assert_close(shared(network, batch, removal), reread(network, batch, removal), **CLOSE)
    else:
        assert encoder == "transformer" and shape != "hierarchical"


@SHAPES
@EVERY_ENCODER
@EVERY_OTHER
@REMOVALS
def test_other_projections_and_embeddings_beside_encodings_share_their_work_too(shape, encoder, other, removal):
    batch = texts(shape)
    for alignment in ALIGNMENTS if shape == "paired" else ["additive"]:
        network = model(shape=shape, encoder=encoder, alignment=alignment, **OTHERWISE[other])
        if shares_work(network):
            torch.testing.assert_close(shared(network, batch, removal), reread(network, batch, removal), **CLOSE)
        else:
            assert encoder == "transformer" and shape != "hierarchical"


def test_sparse_weights_are_zero_in_these_tests():
    for shape in ("flat", "hierarchical", "paired"):
        network, batch = model(shape=shape, **OTHERWISE["sparse-concat"]), texts(shape)
        weights = network(network.embed(batch), batch).attention
        real = (batch.mask, attended(network, batch))[-len(weights) :]
        assert all((each[there] == 0).any() for each, there in zip(weights, real, strict=True))


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@REMOVALS
@pytest.mark.parametrize("other", [{}, OTHERWISE["sparse-concat"]], ids=["softmax", "sparse-concat"])
def test_pairs_may_have_markers(encoder, alignment, removal, other):
    network = model(shape="paired", encoder=encoder, alignment=alignment, markers=True, **other)
    batch = texts("paired")
    torch.testing.assert_close(shared(network, batch, removal), reread(network, batch, removal), **CLOSE)


@EVERY_ENCODER
@REMOVALS
@pytest.mark.parametrize("words", [1, 4, 18])
def test_sentences_may_be_of_one_word_or_of_all(encoder, removal, words):
    network, batch = model(shape="hierarchical", encoder=encoder), texts("hierarchical")
    batch = replace(batch, sentences=torch.arange(18).expand_as(batch.ids) // words)
    assert attended(network, batch).sum(-1).tolist() == [-(-length // words) for length in LENGTHS]
    torch.testing.assert_close(shared(network, batch, removal), reread(network, batch, removal), **CLOSE)


def test_sentences_with_gaps_in_their_numbers_are_those_of_the_words_left():
    """As input reduction has them when it has deleted whole sentences."""
    network, batch = model(shape="hierarchical"), texts("hierarchical")
    batch = replace(batch, sentences=batch.sentences * 3 + 5)
    torch.testing.assert_close(shared(network, batch), reread(network, batch), **CLOSE)
    without = replace(batch, sentences=None)
    torch.testing.assert_close(shared(network, without), reread(network, without), **CLOSE)


@SHAPES
@pytest.mark.parametrize("encoder", ["gru", "cnn", "none", "transformer"])
@REMOVALS
@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
def test_small_pieces_change_nothing(shape, encoder, removal, projection, monkeypatch):
    network, batch = model(shape=shape, encoder=encoder, projection=projection), texts(shape)
    at_once = removed_probabilities(network, batch, removal)[batch.mask]
    for what, size in (("deleted pairs", 300), ("versions", 13)):
        monkeypatch.setitem(budget.ROOM, what, (size, size))
    torch.testing.assert_close(removed_probabilities(network, batch, removal)[batch.mask], at_once, **CLOSE)


@REMOVALS
def test_sentences_that_are_too_long_to_be_kept_are_read_again(removal, monkeypatch):
    network, batch = model(shape="hierarchical", **OTHERWISE["sparse-concat"]), texts("hierarchical")
    kept = shared(network, batch, removal)
    monkeypatch.setattr(deletions, "STORED", 100)
    monkeypatch.setattr(deletions, "recurrent", None)
    torch.testing.assert_close(shared(network, batch, removal), kept, **CLOSE)


@SHAPES
@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
def test_texts_of_one_word_and_none_are_answered(shape, projection):
    network = model(shape=shape, projection=projection)
    one = texts(shape, lengths=(1, 1), width=1)
    torch.testing.assert_close(shared(network, one), reread(network, one), **CLOSE)
    none = replace(one, mask=torch.zeros_like(one.mask))
    assert [each.shape for each in deletion_logits(network, network.embed(none), none)] == [(2, 3), (2, 1, 3)]


@SHAPES
@pytest.mark.parametrize("encoder", ["lstm", "average"])
@REMOVALS
@pytest.mark.parametrize("other", [{}, {"projection": "entmax(1.3)", "concat": True}], ids=["softmax", "entmax"])
def test_half_precision_is_near(shape, encoder, removal, other):
    batch = texts(shape)
    exact = removed_probabilities(model(shape=shape, encoder=encoder, **other), batch, removal)[batch.mask]
    half = model(shape=shape, encoder=encoder, dtype=torch.bfloat16, **other)
    found = removed_probabilities(half, batch, removal)[batch.mask]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, atol=0.1, rtol=0)


def test_reading_a_hierarchy_in_part_is_counted_as_the_part_that_is_read():
    batch = builders.batch((6, 3), width=7)
    batch = replace(batch, sentences=torch.tensor([[0, 0, 0, 0, 1, 2, 2], [0, 0, 0, 0, 0, 0, 0]]))
    # Sentences of 4, 1 and 1 words, and of 3; a text of 6 words and 3 sentences is 9 steps, the other 4.
    above = [3 + 4 * 3 + 2 * 2, 1 + 3 * 1]  # once, and once for each word; an emptied sentence is not read
    below = {
        "gru": [6 + (16 + 1 + 1) / 2, 3 + 9 / 2],
        "none": [6, 3],
        "cnn": [6 + 6 * 12, 3 + 3 * 12],
        "transformer": [16 + 1 + 1, 9],
    }
    for encoder, words in below.items():
        network = builders.model(shape="hierarchical", encoder=encoder)
        with costs.measured() as spent:
            removed_probabilities(network, batch)
        expected = (words[0] + above[0]) / 9 + (words[1] + above[1]) / 4
        assert spent.forward == pytest.approx(expected)
        assert spent.backward == 0


def test_a_pair_is_counted_as_a_text():
    batch = builders.texts((7, 4), width=9)
    with costs.measured() as spent:
        removed_probabilities(builders.model(shape="paired", encoder="lstm"), batch)
    assert spent.forward == pytest.approx(2 + 7 / 2 + 4 / 2)


@pytest.mark.parametrize("size", [1.0, 30.0, 1000.0])
def test_means_that_grow_are_those_of_a_softmax(size):
    scores, values = size * torch.randn(3, 5, 9).double(), torch.randn(3, 5, 9, 2).double()
    first, second = (RunningMeans.of_nothing(3, 5, values[:, :1, 0]) for _ in range(2))
    order = torch.tensor([4, 2, 0, 1, 3])
    for item in range(9):
        mean, lanes = (first, slice(None)) if item < 4 else (second, order.argsort())
        mean.add(scores[:, lanes, item], values[:, lanes, item])
    expected = (scores.softmax(-1)[..., None] * values).sum(2)
    torch.testing.assert_close(first.joined(second, order.expand(3, 5)).mean(), expected)


@pytest.mark.parametrize("name", ["softmax", "sparsemax", "entmax(1.5)"])
def test_items_that_are_kept_are_projected_at_the_end(name):
    """Lanes may have got items at different times, and some of the lowest score."""
    scores, values = torch.randn(3, 5, 9).double(), torch.randn(3, 5, 9, 2).double()
    lowest, there = torch.finfo(torch.float64).min, torch.rand(3, 5, 9) < 0.8
    scores = scores.masked_fill(~there, lowest)
    first, second = (StoredMeans(projection(name), 5) for _ in range(2))
    for item in range(9):
        lanes = slice(None, 5 if item % 2 else 3)
        (first if item < 4 else second).add(scores[:, lanes, item], values[:, lanes, item])
    there[:, 3:, ::2] = False
    expected = (projection(name)(scores, there)[..., None] * values).sum(2)
    same = torch.arange(5).expand(3, 5)
    torch.testing.assert_close(first.joined(second, same).mean(), expected)
    order, nothing = torch.tensor([[4, 2, 0, 1, 3]]).expand(3, 5), StoredMeans(projection(name), 5)
    torch.testing.assert_close(nothing.joined(first.joined(second, same), order).mean(), expected[:, order[0]])
    half = StoredMeans(projection(name), 5)
    half.add(scores[..., 1].bfloat16(), values[:, :, 1].bfloat16())
    assert half.mean().dtype == torch.float32


def test_an_item_of_the_lowest_score_counts_nothing_beside_others():
    lowest = torch.finfo(torch.float64).min
    means, value = RunningMeans.of_nothing(1, 3, torch.zeros(1, 1, 2).double()), torch.ones(1, 3, 2).double()
    means.add(torch.full((1, 3), lowest, dtype=torch.float64), 5 * value)
    means.add(torch.tensor([[-800.0, 0.0]]).double(), value[:, :2])
    means.add(torch.full((1, 1), lowest, dtype=torch.float64), 7 * value[:, :1])
    torch.testing.assert_close(means.mean()[:, :2], value[:, :2])
    assert (RunningMeans.of_nothing(1, 3, value[:, :1]).mean() == 0).all()
