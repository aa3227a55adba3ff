"""A classifier whose logits are what its phrases, stored phrases and the whole text say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.data.batches import tokenise
from assay.data.examples import Corpus, Example
from assay.explainers.baselines import OwnRelevance
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, initialise
from assay.models.store import Checkpoint
from assay.models.textmodel import groups
from assay.rationales.selfexplaining import Phrases, SelfExplaining, phrases
from assay.rationales.trainers import Lesson, SelfExplainLesson, SelfExplanation
from assay.types import Batch
from tests import pretrained
from tests.rationales.concepts.planted import CLASSES, reviews, tokeniser

WORDS = tokeniser()
RECIPE = Recipe(Architecture(encoder="average", embedding=16, hidden=8, alignment_size=8))
OPTIONS = SelfExplanation(
    width=3,
    stored=60,
    lesson=SelfExplainLesson(every=3),
    base=replace(RECIPE, training=Training(epochs=2, learning_rate=1e-2, batch_size=16)),
)
PAPER = tuple(
    Example(text, place % 3) for place, text in enumerate([*pretrained.TEXTS, "A dull, long film.", "Fun, very good!"])
)


def ours() -> SelfExplaining:
    rows, _ = tokenise(reviews(40, 0), WORDS, 100)
    reader = initialise(RECIPE, WORDS, 4).double()
    return OPTIONS.begun(reader, WORDS, rows, [each.text for each in reviews(40, 0)])


def transformer() -> SelfExplaining:
    words = pretrained.tokeniser()
    rows, _ = tokenise(PAPER, words, 60)
    return OPTIONS.begun(pretrained.attentive(), words, rows, [each.text for each in PAPER])


def texts(model: SelfExplaining) -> Batch:
    if model.store.pieces is not None:
        return pretrained.batch()
    return next(groups(model, tokenise(reviews(6, 5), WORDS, 100)[0]))[1]


KINDS = pytest.mark.parametrize("made", [ours, transformer], ids=["network", "transformer"])


@KINDS
def test_logits_are_exactly_the_sum_of_their_parts(made):
    model = made().eval()
    batch = texts(model)
    x = model.embed(batch)
    parts, reader = model.explained(x, batch), model.reader
    assert torch.equal(model(x, batch).logits, parts.whole + parts.phrases.sum(1) + parts.neighbours.sum(1))
    states = reader.states(x, batch)
    weights = reader.attend(states, batch)
    text = (weights[:, None] @ states).squeeze(1)
    torch.testing.assert_close(parts.whole, reader.decode(states, weights))
    owner, length = parts.grouping.owner[0], int(batch.lengths[0])
    count = int(owner[:length].max()) + 1
    for number in range(count):  # written out from the formula
        mean = states[0, :length][owner[:length] == number].mean(0)
        expected = 0.1 / count * (mean.relu() - text[0].relu()) @ model.local.weight.T
        torch.testing.assert_close(parts.phrases[0, number], expected)
    assert not parts.phrases[0, count:].any()
    stored = model.store.vectors[parts.nearest[0]]
    attention = (stored @ model.query(text[0]) / text.shape[-1] ** 0.5).softmax(0)
    torch.testing.assert_close(parts.neighbours[0], 0.1 * attention[:, None] * stored @ model.shared.weight.T)


@KINDS
def test_the_nearest_phrases_are_those_with_the_largest_inner_products(made):
    model = made().eval()
    batch = texts(model)
    found = model.explained(model.embed(batch), batch)
    states = model.reader.states(model.embed(batch), batch).detach()
    text = (model.reader.attend(states, batch)[:, None] @ states).squeeze(1)
    for row in range(len(batch)):
        products = [float(text[row].detach() @ vector) for vector in model.store.vectors]
        assert found.products[row].tolist() == pytest.approx(sorted(products, reverse=True)[:5])
        places = found.nearest[row].tolist()
        assert [products[place] for place in places] == pytest.approx(found.products[row].tolist())
        assert len(set(places)) == 5


@KINDS
def test_the_store_is_what_the_network_makes_of_its_phrases_now(made):
    model = made().eval()
    before = model.store.vectors.clone()
    assert before.any()
    with torch.no_grad():
        for parameter in model.reader.parameters():
            parameter.mul_(1.1)
    model.refresh()
    assert not torch.allclose(model.store.vectors, before)
    for place in (0, 3, len(model.store) - 1):  # each phrase by itself, read as a text that was never stored
        words = pretrained.tokeniser() if model.store.pieces is not None else WORDS
        row = tokenise([Example(model.store.texts[place], 0)], words, 60)[0]
        _, batch = next(groups(model, row))
        states = model.reader.states(model.embed(batch), batch)
        alone = (model.reader.attend(states, batch)[:, None] @ states).squeeze()
        torch.testing.assert_close(model.store.vectors[place], alone)


@KINDS
def test_words_share_what_their_phrases_add(made):
    model = made().eval()
    batch = texts(model)
    x = model.embed(batch)
    parts, relevance = model.explained(x, batch), model.relevance(x, batch)
    torch.testing.assert_close(relevance.sum(1), parts.phrases.sum(1))
    assert not relevance[~batch.mask].any()
    scores = OwnRelevance()(model, batch, torch.ones_like(batch.labels))
    torch.testing.assert_close(scores.double(), relevance[..., 1], rtol=1e-5, atol=1e-7)
    owner = parts.grouping.owner[0, : int(batch.lengths[0])]
    assert all(len({round(float(s), 9) for s in scores[0, : len(owner)][owner == n]}) == 1 for n in owner.unique())


def test_phrases_end_with_marks_and_after_their_width():
    batch = Batch(
        torch.tensor([[5, 6, 9, 7, 8, 5, 6, 7, 9, 9], [5, 9, 6, 0, 0, 0, 0, 0, 0, 0]]),
        torch.tensor([[True] * 10, [True] * 3 + [False] * 7]),
        torch.zeros(2, dtype=torch.long),
    )
    grouping = Phrases(3, (9,))(batch)
    assert grouping.owner[0].tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert grouping.owner[1, :3].tolist() == [0, 0, 1] and grouping.mask.sum(-1).tolist() == [4, 2]
    stops = set(phrases(pretrained.tokeniser()).stops)
    assert stops == {words.ids[0] for words in pretrained.tokeniser()([",", ".", "!", "?"])}


def test_learning_keeps_the_store_fresh_and_goes_on_after_an_interruption(tmp_path):
    corpus = Corpus("reviews", CLASSES, tuple(reviews(160, 0)), tuple(reviews(40, 1)), ())
    rows, dev = (tokenise(examples, WORDS, 100)[0] for examples in (corpus.train, corpus.dev))
    lesson = Lesson(corpus, WORDS, rows, dev)
    model, history = OPTIONS.learnt(lesson, None)
    assert isinstance(model, SelfExplaining) and model.steps == 20
    kept = model.store.vectors.clone()
    model.refresh()
    torch.testing.assert_close(model.store.vectors, kept)
    assert history["losses"][1] < history["losses"][0]

    file = tmp_path / "checkpoint.safetensors"
    first = replace(OPTIONS, base=replace(OPTIONS.base, training=replace(OPTIONS.base.training, epochs=1)))
    first.learnt(lesson, Checkpoint(file, {}))
    again, _ = OPTIONS.learnt(lesson, Checkpoint(file, {}))
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor)
