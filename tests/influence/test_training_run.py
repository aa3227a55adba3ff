"""A training that is gone through again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from assay.data.corpora import corpus
from assay.data.examples import thinned
from assay.influence.training_run import TrainingRun
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train

SMALL = Recipe(
    Architecture(embedding=8, hidden=4, alignment_size=4, dropout_decoder=0.2),
    training=Training(epochs=3, batch_size=16, learning_rate=5e-3),
)


def test_the_same_training_gives_the_same_weights() -> None:
    texts = thinned(corpus("planted:keyword"), 120, 0)
    model = train(texts, SMALL)
    training_run = TrainingRun.of(model, texts)
    again = training_run.learn(np.ones(len(training_run.rows)))
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_an_example_without_a_share_leaves_no_trace() -> None:
    texts = thinned(corpus("planted:keyword"), 60, 0)
    training_run = TrainingRun.of(train(texts, SMALL), texts)
    shares = np.ones(len(training_run.rows))
    shares[7] = 0
    without = training_run.learn(shares)
    training_run.rows[7].ids[:] = training_run.rows[8].ids[
        0
    ]  # what it says does not matter any more; its length does, in batches
    again = training_run.learn(shares)
    moved = [not torch.equal(again.state_dict()[name], each) for name, each in without.state_dict().items()]
    assert not any(moved)
    assert any(
        not torch.equal(each, training_run.learn().state_dict()[name]) for name, each in again.state_dict().items()
    )


def test_steps_are_counted_and_watched() -> None:
    texts = thinned(corpus("planted:keyword"), 60, 0)
    training_run = TrainingRun.of(train(texts, SMALL), texts)
    seen: list[int] = []
    training_run.learn(watch=lambda number, network, optimiser: seen.append(number))
    assert seen == list(range(training_run.steps + 1))


def test_embeddings_decay_as_the_training_says() -> None:
    texts = thinned(corpus("planted:keyword"), 60, 0)
    for also in (False, True):
        chosen = replace(SMALL, training=replace(SMALL.training, epochs=1, decay=0.25, decay_embeddings=also))
        decay = TrainingRun.of(train(texts, chosen), texts).decay()
        assert decay.pop("embedding.weight") == 0.25 * also
        assert set(decay.values()) == {0.25}
