"""A model that aligns words decides by what it has aligned, and finds the words that decide."""

from random import Random

import numpy as np
import pytest
import torch

from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example
from assay.errors import AssayError
from assay.explainers.rationales import Rationale
from assay.models.architecture import Architecture
from assay.models.options import Training
from assay.models.predictions import groups, predict
from assay.models.recipes import Recipe
from assay.rationales import aligning
from assay.rationales.aligning import Aligning, train_transport
from assay.rationales.transport import Transport
from assay.types import SelectingModel

ANIMALS = ("cat", "dog", "owl", "hen")
FILLER = ("the", "a", "near", "old", "tree", "house", "was", "seen", "and", "there")
WANTED = Aligning(
    Transport(most=1, steps=30),
    Recipe(
        Architecture(encoder="average", embedding=16, hidden=8, alignment_size=16),
        training=Training(epochs=40, patience=40, batch_size=32, learning_rate=1e-2),
    ),
)


def pairs(count: int, seed: int) -> tuple[Example, ...]:
    """A text with one animal and a query with one; the label is whether it is the same."""
    random = Random(seed)
    made = []
    for turn in range(count):
        animal = random.choice(ANIMALS)
        other = animal if turn % 2 else random.choice([each for each in ANIMALS if each != animal])
        words = [random.choice(FILLER) for _ in range(6)]
        words.insert(random.randrange(7), animal)
        text = " ".join(words)
        start = len(" ".join(words[: words.index(animal)])) + (words.index(animal) > 0)
        asked = [random.choice(FILLER) for _ in range(2)]
        asked.insert(random.randrange(3), other)
        made.append(Example(text, turn % 2, ((start, start + len(animal)),), " ".join(asked)))
    return tuple(made)


CORPUS = Corpus("animals", ("other", "same"), pairs(400, 0), pairs(80, 1), pairs(100, 2))


@pytest.fixture(scope="module")
def model():
    return train_transport(CORPUS, WANTED)


@pytest.fixture(scope="module")
def rows(model):
    return tokenise(CORPUS.test, model.tokeniser, 100)[0]


def test_it_learns_and_aligns_the_words_that_decide(model, rows):
    right = predict(model.network, rows).argmax(-1) == [row.label for row in rows]
    hits = total = 0
    for _, batch in groups(model.network, rows):
        kept = model.network.selection(model.network.embed(batch), batch).kept
        hits, total = hits + int((kept & batch.truth).sum()), total + int(kept.sum())
    assert right.mean() > 0.95
    assert hits > 0.85 * total and total > 0.6 * len(rows)  # the other class may be what is left when nothing matches


def test_what_is_not_aligned_is_not_read(model, rows):
    network = model.network
    for _, batch in groups(network, rows[:20]):
        x = network.embed(batch)
        plan = network.alignment(x, batch)
        votes = network.votes(x, batch)
        by_hand = torch.einsum("bts,btsc->bc", (plan > 0.5).to(votes), votes) + network.bias
        torch.testing.assert_close(network(x, batch).logits, by_hand)
        assert (plan.sum((1, 2)) <= 1 + 1e-4).all()
        kept = network.selection(x, batch).kept
        assert torch.equal(kept, (plan > 0.5).any(-1))


def test_its_selection_is_an_explanation_like_any_other(model, rows):
    assert isinstance(model.network, SelectingModel)
    for _, batch in groups(model.network, rows[:5]):
        scores = Rationale()(model.network, batch, batch.labels)
        assert scores.shape == batch.ids.shape and (scores[~batch.mask] == 0).all()


def test_a_stored_model_answers_the_same_and_goes_on_where_it_stopped(model, rows, tmp_path):
    aligning.save(model, tmp_path)
    again = aligning.load(tmp_path)
    np.testing.assert_array_equal(predict(again.network, rows), predict(model.network, rows))
    assert train_transport(CORPUS, WANTED, tmp_path).history == again.history
    with pytest.raises(AssayError, match="other options"):
        train_transport(CORPUS, Aligning(Transport(most=2), WANTED.base), tmp_path)


def test_texts_without_a_query_are_refused():
    alone = Corpus("alone", ("a", "b"), (Example("one", 0), Example("two", 1)), (Example("one", 0),), ())
    with pytest.raises(AssayError, match="without one"):
        train_transport(alone, WANTED)
