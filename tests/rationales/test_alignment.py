"""Two words decide, one of the text and one of the query: they must be the ones that are aligned."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from assay.data.batches import collate, tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.explainers.baselines import Rationale
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe
from assay.models.textmodel import graded
from assay.rationales.aligner import Aligner, Transport
from assay.rationales.aligner import drawn_aligner as drawn
from assay.rationales.rationale_store import load
from assay.rationales.trainers import TransportRecipe, train_model
from assay.types import SelectingModel
from tests import builders

SMALL = Recipe(
    Architecture(encoder="none", embedding=16, hidden=8, alignment_size=16),
    training=Training(epochs=7, patience=7, batch_size=64, learning_rate=1e-2, decay=0.0),
)
WANTED = TransportRecipe(Transport(most=1, exact=True, epsilon=0.1, steps=30), SMALL)


def pairs(seed: int, count: int) -> tuple[Example, ...]:
    """The class is whether the letters of two words have the same parity; neither word alone tells it."""
    chance, found = random.Random(seed), []
    for _ in range(count):
        left, right = chance.randrange(6), chance.randrange(6)
        text = [f"filler{chance.choice('abcdefghijklmnopqrst')}" for _ in range(8)]
        query = [f"asked{chance.choice('abcdefghij')}" for _ in range(3)]
        text[chance.randrange(8)], query[chance.randrange(3)] = f"left{'abcdef'[left]}", f"right{'abcdef'[right]}"
        start = " ".join(text).index("left")
        found.append(Example(" ".join(text), (left + right) % 2, ((start, start + 5),), " ".join(query)))
    return tuple(found)


@pytest.fixture(scope="module")
def planted() -> Corpus:
    return Corpus("pairs", ("same", "other"), pairs(0, 1500), pairs(1, 100), pairs(2, 200))


@pytest.fixture(scope="module")
def learnt(planted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("aligner")
    return train_model(planted, WANTED, folder), folder


@pytest.mark.slow
def test_the_deciding_words_are_aligned_and_decide(planted, learnt):
    model, _ = learnt
    rows, _ = tokenise(planted.test, model.tokeniser, 100)
    assert graded(model.network, rows)[0] > 0.97
    batch = collate(rows)
    plan = model.network.alignment(model.network.embed(batch), batch) > 0.5
    words = model.tokeniser.vocabulary
    left, right = (torch.tensor([word.startswith(name) for word in words]) for name in ("left", "right"))
    known = left[batch.ids][:, :, None] & right[batch.query.ids][:, None, :]
    assert (plan & known).sum() / known.sum() > 0.95
    assert (plan & known).sum() / plan.sum() > 0.95


def test_the_selection_is_what_is_aligned_and_an_explanation(planted, learnt):
    network = learnt[0].network
    batch = collate(tokenise(planted.test[:20], learnt[0].tokeniser, 100)[0])
    assert isinstance(network, SelectingModel)
    selection = network.selection(network.embed(batch), batch)
    assert (selection.kept == batch.truth).float().mean() > 0.99
    assert (selection.chance <= 1).all() and (selection.chance >= 0).all()
    scores = Rationale()(network, batch, batch.labels)
    assert (scores.argmax(-1) == batch.truth.float().argmax(-1)).float().mean() > 0.9


def test_a_stored_model_answers_the_same_and_other_options_are_refused(planted, learnt):
    model, folder = learnt
    batch = collate(tokenise(planted.test[:20], model.tokeniser, 100)[0])
    again = load(folder)
    assert again.network is not model.network and again.classes == model.classes
    torch.testing.assert_close(
        *(each(each.embed(batch), batch).logits for each in (model.network, again.network)), atol=0, rtol=0
    )
    assert train_model(planted, WANTED, folder).history == again.history
    with pytest.raises(AssayError, match="other options"):
        train_model(planted, replace(WANTED, transport=Transport()), folder)


@pytest.fixture
def network() -> Aligner:
    return drawn(SMALL.architecture, Transport(most=2), builders.WORDS, 3, seed=0).double().eval()


def test_the_answer_is_the_sum_of_what_aligned_pairs_say(network):
    batch = builders.texts((7, 1, 4))
    x = network.embed(batch)
    plan, votes = network.alignment(x, batch), network.votes(x, batch)
    answer = network(x, batch).logits
    for row in range(3):
        aligned = [votes[row, t, s] for t, s in (plan[row] > 0.5).nonzero().tolist()]
        torch.testing.assert_close(answer[row], torch.stack([network.bias, *aligned]).sum(0))
    assert (plan.sum((1, 2)) <= 2 + 1e-5).all()


def test_padding_changes_no_answer(network):
    narrow, wide = builders.texts((7, 1, 4)), builders.texts((7, 1, 4), width=11)
    for mode in (True, False):
        network.train(mode)
        torch.testing.assert_close(*(network(network.embed(each), each).logits for each in (narrow, wide)))


def test_a_text_without_a_query_is_refused(network):
    batch = builders.batch()
    with pytest.raises(AssayError, match="pairs"):
        network(network.embed(batch), batch)
    with pytest.raises(AssayError, match="planted:keyword"):
        train_model(corpus("planted:keyword"), TransportRecipe())


@pytest.mark.slow
def test_a_taxonomy_is_aligned_word_by_word():
    texts = corpus("planted:entail")
    base = replace(SMALL, architecture=Architecture(encoder="average", embedding=32, hidden=16, alignment_size=32))
    training = Training(epochs=25, patience=25, batch_size=64, learning_rate=5e-3)
    model = train_model(
        texts, TransportRecipe(Transport(most=3, price=0.2, steps=50), replace(base, training=training))
    )
    rows, _ = tokenise(texts.test, model.tokeniser, 100)
    batch = collate(rows)
    kept = model.network.selection(model.network.embed(batch), batch).kept
    assert graded(model.network, rows)[0] > 0.85
    assert 2 * (kept & batch.truth).sum() / (kept.sum() + batch.truth.sum()) > 0.5
