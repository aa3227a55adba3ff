"""Presets: the sizes that the papers give, and the start and the decay of embeddings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.text import PAD, SPECIAL, UNKNOWN
from assay.errors import AssayError
from assay.models import recipes
from assay.models.config import Architecture
from assay.models.recipes import drawn, initialise, train
from assay.run.api import recipe
from tests.models.test_training import SMALL, corpus


@pytest.mark.parametrize(
    ("name", "encoder", "embedding", "width"),
    [("sst", "lstm", 50, 256), ("sst", "cnn", 50, 256), ("babi1", "lstm", 50, 60), ("babi3", "cnn", 50, 32)],
)
def test_jain_wallace_has_the_widths_of_appendix_a(name, encoder, embedding, width):
    sizes = recipe("jain-wallace", corpus=name, encoder=encoder).architecture
    assert (sizes.encoder, sizes.embedding, 2 * sizes.hidden) == (encoder, embedding, width)
    assert drawn(sizes, 10, 2, 0).encoder.size == width


def test_both_encoders_of_babi_are_trained_alike():
    one, other = (recipe("jain-wallace", corpus="babi2", encoder=encoder) for encoder in ("lstm", "cnn"))
    assert (one.training, one.text) == (other.training, other.text)


@pytest.mark.parametrize("std", [0.1, 1.0])
def test_embeddings_start_at_random_as_far_from_0_as_asked(std):
    table = drawn(Architecture(embedding=50, embedding_std=std), 1000, 2, 0).embedding.weight.detach()
    assert abs(float(table[1:].std()) / std - 1) < 0.02
    assert not table[0].any()


def test_words_with_a_vector_take_it_and_only_the_others_are_drawn(monkeypatch):
    known = np.full(50, 3.0, dtype=np.float32)

    def glove(words):
        found = np.array([word == "film" for word in words])
        return np.where(found[:, None], known, 0).astype(np.float32), found

    monkeypatch.setattr(recipes, "glove", glove)
    shape = Architecture(vectors="glove", embedding=50, hidden=8, alignment_size=4, embedding_std=2.0)
    tokeniser = train(corpus(), SMALL).tokeniser
    words = list(tokeniser.vocabulary)
    table = initialise(replace(SMALL, architecture=shape), tokeniser, 2).embedding.weight.detach()
    drawn_ones = [place for place, word in enumerate(words) if word not in ("film", PAD)]
    assert np.array_equal(table[words.index("film")].numpy(), known)
    assert abs(float(table[drawn_ones].std()) - 2) < 0.2


@pytest.mark.parametrize("decays", [False, True])
def test_embeddings_decay_only_where_asked(decays):
    """The word for unknown words is in no text of training, so that nothing but decay moves it."""
    plan = replace(SMALL, training=replace(SMALL.training, decay=0.01, decay_embeddings=decays))
    model = train(corpus(), plan)
    before = initialise(plan, model.tokeniser, 2).embedding.weight.detach()[SPECIAL.index(UNKNOWN)]
    after = model.network.embedding.weight.detach()[SPECIAL.index(UNKNOWN)]
    assert torch.equal(before, after) != decays
    assert (after.abs() < before.abs()).all() == decays


def test_an_embedding_that_is_nowhere_drawn_from_is_refused():
    with pytest.raises(AssayError, match="standard deviation of embeddings must be above 0, got 0"):
        Architecture(embedding_std=0.0)
