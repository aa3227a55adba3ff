"""Training a landmark classifier, storing it, and what it says of its answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.corpora import corpus
from assay.errors import AssayError
from assay.influence.landmark_classifier import LandmarkModel, LandmarkRecipe, Layers, load, save, train
from assay.influence.landmark_kernels import Spectrum, Subsequences, WordVectors, units
from assay.influence.landmarks import (
    because,
    contrast,
    faithfulness,
    influence,
    reasons,
    relevance,
    sentence,
)
from assay.models.config import Training
from assay.writing import quoted

CORPUS = corpus("planted:keyword")
TEXTS, LABELS = [each.text for each in CORPUS.train[:500]], np.array([each.label for each in CORPUS.train[:500]])
UNSEEN, TRUE = [each.text for each in CORPUS.test[:150]], np.array([each.label for each in CORPUS.test[:150]])
SHORT = Training(epochs=2, patience=2)
WORDS = tuple(sorted({str(word) for text in TEXTS[:60] for word in units(text)}))
VECTORS = WordVectors(words=WORDS, table=np.random.default_rng(0).normal(size=(len(WORDS), 6)))
SMALL = LandmarkRecipe((Spectrum(),), landmarks=12, layers=Layers((5,)), training=SHORT)


@pytest.fixture(scope="module")
def model() -> LandmarkModel:
    recipe = LandmarkRecipe((Spectrum(),), landmarks=120, training=Training(epochs=30, patience=30, learning_rate=3e-3))
    return train(recipe, TEXTS, LABELS, CORPUS.classes)


def test_a_planted_corpus_is_learnt(model: LandmarkModel) -> None:
    assert (model.logits(UNSEEN).argmax(-1).numpy() == TRUE).mean() > 0.85
    assert not np.isin(model.indices, model.history["held"]).any()


def test_named_landmarks_matter_more_than_others(model: LandmarkModel) -> None:
    found = faithfulness(model, UNSEEN)
    assert found.named > 2 * max(found.alike, found.chance)
    assert found.above_chance > 0.95
    assert found.texts > 140


@pytest.mark.parametrize(
    "recipe",
    [
        SMALL,
        replace(SMALL, sets=2, kernels=(Spectrum(), Subsequences(length=2)), choice="uniform"),
        replace(SMALL, kernels=(VECTORS,)),
        replace(SMALL, layers=Layers((), frozen=True), choice="spread"),
        replace(SMALL, kernels=(Spectrum(unit="character"),)),
    ],
    ids=["one", "ensemble", "vectors", "linear", "characters"],
)
def test_the_same_seed_gives_the_same_classifier_and_it_can_be_stored(recipe, tmp_path) -> None:
    texts, labels = TEXTS[:60], LABELS[:60]
    once, again = (train(recipe, texts, labels, CORPUS.classes) for _ in range(2))
    np.testing.assert_array_equal(once.logits(UNSEEN[:9]), again.logits(UNSEEN[:9]))
    save(once, tmp_path / "x")
    read = load(tmp_path / "x")
    np.testing.assert_allclose(once.logits(UNSEEN[:9]), read.logits(UNSEEN[:9]), atol=1e-6)
    assert because(read, UNSEEN[0], 2, True, True) == because(once, UNSEEN[0], 2, True, True)
    assert (read.classes, read.learnt) == (once.classes, once.learnt)
    other = train(replace(recipe, training=replace(SHORT, seed=1)), texts, labels, CORPUS.classes)
    assert np.abs(np.asarray(other.logits(UNSEEN[:9]) - once.logits(UNSEEN[:9]))).max() > 1e-4


def test_a_frozen_projection_stays_and_another_is_trained() -> None:
    for frozen in (True, False):
        recipe = replace(SMALL, layers=Layers((5,), frozen=frozen))
        found = train(recipe, TEXTS[:60], LABELS[:60], CORPUS.classes)
        gram = found.sets[0].kernel(found.texts, found.texts)
        space = found.network.projections[0].detach().double()
        assert np.allclose(gram @ (space @ space.T).numpy() @ gram, gram, atol=1e-4) == frozen


def test_influence_is_minus_the_parts_at_the_places_of_landmarks(model: LandmarkModel) -> None:
    found = influence(model, UNSEEN[:5], target="logit")
    likeness = model.likeness(UNSEEN[:5])
    logits = model.logits(UNSEEN[:5])
    np.testing.assert_allclose(-found.scores.sum(1), logits.max(-1).values, rtol=1e-4)
    parts = relevance(model.network, likeness)[torch.arange(5), logits.argmax(-1)]
    np.testing.assert_allclose(found.scores[:, model.indices], -parts.double(), rtol=1e-6)
    elsewhere = np.setdiff1d(np.arange(500), model.indices)
    assert not found.scores[:, elsewhere].any()
    assert found.covered == 120 / 500
    margins = influence(model, UNSEEN[:5], np.zeros(5, dtype=int), "margin")
    np.testing.assert_allclose(-margins.scores.sum(1), (logits[:, 0] - logits[:, 1]).double(), rtol=1e-4, atol=1e-5)


def test_a_landmark_of_two_sets_has_the_sum_of_its_parts() -> None:
    recipe = replace(SMALL, landmarks=60, sets=2)
    found = train(recipe, TEXTS[:60], LABELS[:60], CORPUS.classes)
    assert len(found.indices) == 2 * len(np.unique(found.indices))
    scores = influence(found, UNSEEN[:4]).scores
    np.testing.assert_allclose(-scores.sum(1), found.logits(UNSEEN[:4]).max(-1).values.double(), rtol=1e-4, atol=1e-5)
    named = reasons(found, found.likeness(UNSEEN[:4]), found.logits(UNSEEN[:4]).argmax(-1))
    assert all(len(set(each.alike)) == len(each.alike) for each in named)


def test_a_sentence_names_what_speaks_for_the_answer(model: LandmarkModel) -> None:
    likeness = model.likeness(UNSEEN[:20])
    answers = model.network(likeness).argmax(-1)
    parts = contrast(relevance(model.network, likeness), answers).detach().numpy()
    for row, each in enumerate(reasons(model, likeness, answers)):
        own = np.flatnonzero((model.labels == int(answers[row])) & (likeness[row] > model.network.usual).numpy())
        best = own[parts[row, own].argmax()]
        assert each.alike[0] == model.indices[best]
        said = because(model, UNSEEN[row])
        name = CORPUS.classes[int(answers[row])]
        assert said == f"I answer {name} because it reminds me of {quoted(TEXTS[each.alike[0]])}, which is also {name}."
        assert LABELS[each.against].tolist() == [1 - int(answers[row])] * len(each.against)


def test_sentences_are_whole_whatever_they_name() -> None:
    assert quoted('He said “no” and\n "yes".') == "“He said ‘no’ and 'yes'.”"
    assert quoted("word " * 30) == f"“{' '.join(['word'] * 20)} …”"
    said = sentence("good", ["a", "b"], [("c", "bad")], [("d", "bad")])
    assert said == (
        "I answer good because it reminds me of “a” and “b”, which are also good, and not of “c”, which is bad, "
        "although it also reminds me of “d”, which is bad."
    )
    assert sentence("good", []) == "I answer good, and no text that it reminds me of is also good."


def test_what_cannot_be_is_said(tmp_path) -> None:
    with pytest.raises(AssayError, match="At least four"):
        train(SMALL, TEXTS[:3], LABELS[:3], CORPUS.classes)
    with pytest.raises(AssayError, match="no landmark classifier"):
        load(tmp_path)
    (tmp_path / "landmarks.json").write_text("{}", encoding="utf-8")
    with pytest.raises(AssayError, match="damaged"):
        load(tmp_path)
    with pytest.raises(AssayError, match="Unknown activation"):
        Layers(activation="step")
