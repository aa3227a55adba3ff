"""Landmarks as a method of influence: a classifier of its own, or one that learns a network's logits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.data.corpora import corpus
from assay.influence.landmark_classifier import LandmarkRecipe
from assay.influence.landmark_kernels import Represented, Spectrum
from assay.influence.landmarks import Landmarks, contrast, logits, relevance
from assay.influence.setting import Method, Setting
from assay.models import recipes
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, learnable
from assay.models.textmodel import predict


@pytest.fixture(scope="module")
def setting() -> Setting:
    texts = corpus("planted:keyword")
    texts = replace(texts, train=texts.train[:400], dev=texts.dev[:100], test=texts.test[:60])
    architecture = Architecture(encoder="average", embedding=16, hidden=8, alignment_size=8)
    training = Training(epochs=12, learning_rate=1e-2)
    model = recipes.train(texts, Recipe(architecture, training=training))
    rows, queries, _ = learnable(replace(texts, dev=texts.test), model.tokeniser, 100)
    return Setting.of(model.network, rows, queries)


METHOD = Landmarks(recipe=LandmarkRecipe((Represented(),), landmarks=60, cutoff=1e-2))


def test_the_classifier_that_learns_a_networks_logits_answers_as_the_network(setting: Setting) -> None:
    assert isinstance(METHOD, Method)
    assert METHOD.unfit(setting) is None
    found = METHOD(setting)
    assert found.scores.shape == (len(setting.queries), len(setting.train))
    assert found.notes["agreement"] > 0.95
    assert found.notes["agreement_held_out"] > 0.9
    assert found.covered == 60 / len(setting.train)
    assert 1 <= found.notes["cancellation"] < 10
    known = logits(setting.network, setting.queries)
    margins = known.max(-1) - known.min(-1)
    assert np.corrcoef(-found.scores.sum(1), margins)[0, 1] > 0.8


def test_to_be_more_like_a_landmark_of_a_class_speaks_for_the_class(setting: Setting) -> None:
    model = METHOD.learnt(setting)
    likeness = model.likeness(setting.queries)
    asked = torch.from_numpy(setting.classes)
    gradients = (
        (contrast(relevance(model.network, likeness), asked) / (likeness - model.network.usual)).detach().numpy()
    )
    answers = logits(setting.network, setting.train).argmax(-1)[model.indices]
    same = answers == setting.classes[:, None]
    assert gradients[same].mean() > 0 > gradients[~same].mean()


def test_a_classifier_of_its_own_learns_the_labels(setting: Setting) -> None:
    method = Landmarks(recipe=LandmarkRecipe((Spectrum(),), landmarks=100), distilled=False)
    model = method.learnt(setting)
    labels = np.array([row.label for row in setting.queries])
    assert (model.logits(setting.queries).argmax(-1).numpy() == labels).mean() > 0.75
    assert 0.5 < method(setting).notes["agreement"] <= 1


def test_the_network_is_left_as_it_was(setting: Setting) -> None:
    before = predict(setting.network, setting.queries)
    Landmarks(recipe=LandmarkRecipe((Represented(),), landmarks=8, training=Training(epochs=1)))(setting)
    np.testing.assert_array_equal(predict(setting.network, setting.queries), before)
    assert all(not module._forward_pre_hooks for module in setting.network.modules())


def test_rows_with_candidates_are_not_for_landmarks(setting: Setting) -> None:
    rows = [replace(row, candidates=(0,)) for row in setting.train]
    assert "only some can be right" in str(Landmarks().unfit(replace(setting, train=rows)))
    assert "four" in str(Landmarks().unfit(replace(setting, train=rows[:2])))
