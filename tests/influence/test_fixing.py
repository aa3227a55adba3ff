"""Why an error: examples that were made to cause it are found, and without them it is gone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Example
from assay.errors import AssayError
from assay.influence.functions import InfluenceFunctions
from assay.influence.hybrid import Swapping, put, salient, swapped
from assay.influence.mislabelled import WAYS, Harmful, relabelled, repaired, right
from assay.influence.setting import Influence, Setting
from assay.influence.similarity import Vectors, query_gradients, train_products
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import TextModel, predict
from tests import pretrained
from tests.influence import signs

EXACT = InfluenceFunctions("explicit", damping=1e-3)
ODD = 4  # a word of the class 0 that is learnt as one of the class 1


def having(rows: list[Tokenised]) -> np.ndarray:
    return np.array([bool((row.ids == ODD).any()) for row in rows])


@pytest.fixture(scope="module")
def poisoned() -> tuple[TextModel, TrainingRun]:
    """A network that learnt from wrong labels wherever one word stands."""
    made = signs.rows(200)
    rows = [replace(row, label=1) if odd else row for row, odd in zip(made, having(made), strict=True)]
    training_run = signs.training_run(rows, 30)
    return training_run.learn(), training_run


@pytest.mark.slow
@pytest.mark.parametrize("way", [pytest.param(way, marks=() if way == "remove" else pytest.mark.slow) for way in WAYS])
def test_training_again_without_harmful_examples_mends_the_errors(
    poisoned: tuple[TextModel, TrainingRun], way: str
) -> None:
    network, training_run = poisoned
    bad = having(list(training_run.rows))
    indices = Harmful(EXACT, int(bad.sum()))(network, training_run, signs.rows(150, 1))
    repair = repaired(network, training_run, indices, test := signs.rows(300, 2), way)
    assert bad[repair.indices].mean() > 0.7
    assert repair.gained[1] > 0 and repair.after[0] - repair.before[0] == pytest.approx(repair.gained[0])
    odd = having(test)
    assert right(repair.network, test)[odd].mean() > right(network, test)[odd].mean() + 0.3
    assert repair.before[0] == right(network, test).mean() and repair.before[1] < repair.before[0] < repair.before[2]


def test_what_is_removed_or_relabelled_is_what_was_named() -> None:
    training_run = signs.training_run(signs.rows(60), 1)
    network = training_run.learn()
    rows = relabelled(network, training_run.rows, np.array([3, 7]))
    assert [index for index, row in enumerate(rows) if row.label != training_run.rows[index].label] == [3, 7]

    @dataclass(frozen=True)
    class Given:
        """An answer that is known."""

        def unfit(self, setting: Setting) -> str | None:
            return None

        def __call__(self, setting: Setting) -> Influence:
            scores = np.ones((len(setting.queries), len(setting.train)))
            scores[:, [5, 9]] = [-1, -2]
            return Influence(scores)

    indices = Harmful(Given())(network, training_run, signs.rows(150, 1))
    assert indices.tolist() == [9, 5]  # the others do no harm
    shares = np.ones(len(training_run.rows))
    shares[[5, 9]] = 0
    mended = repaired(network, training_run, indices, signs.rows(20, 2), "remove").network
    for name, each in training_run.learn(shares).state_dict().items():
        assert torch.equal(mended.state_dict()[name], each)
    with pytest.raises(AssayError, match="way to fix"):
        repaired(network, training_run, indices, signs.rows(20, 2), "burn")


def plain(setting: Setting, vectors: Vectors) -> Vectors:
    """As if all curvature were the same."""
    return vectors


def test_a_word_that_another_class_was_learnt_by_flips_texts() -> None:
    training_run = signs.training_run(signs.rows(160), 20)
    network = training_run.learn()
    queries = [row for row in signs.rows(60, 3) if right(network, [row])[0]][:25]
    setting = Setting.of(network, training_run.rows, queries, training_run=training_run)
    found = Swapping(plain, tries=3)(setting)
    scores = train_products(setting, query_gradients(setting)) * setting.weights / 160
    labels = np.array([row.label for row in training_run.rows])
    for number, (row, swap) in enumerate(zip(queries, found, strict=True)):
        taken = training_run.rows[swap.example]
        assert taken.label != setting.classes[number] and int(swap.row.ids[swap.position]) == int(taken.ids[swap.token])
        assert (swap.row.ids != row.ids).sum() <= 1
        best = np.where(labels != setting.classes[number], scores[number], -np.inf)
        assert scores[number, swap.example] >= np.sort(best)[-3]
        after = predict(network, [swap.row])[0]
        assert swap.flipped == (after.argmax() != setting.classes[number])
        assert swap.after == pytest.approx(after[setting.classes[number]], rel=1e-3)
    random = np.random.default_rng(0)
    examples = random.integers(160, size=(25, 3))
    tokens = np.array([[random.integers(len(training_run.rows[each].ids)) for each in row] for row in examples])
    chance = swapped(setting, salient(setting), examples, tokens)
    assert np.mean([swap.flipped for swap in found]) > np.mean([swap.flipped for swap in chance]) + 0.2


def test_words_in_pieces_are_put_whole() -> None:
    tokeniser = pretrained.tokeniser()
    texts = [Example("a good film", 1), Example("this unwatchable film", 0)]
    (one, other), _ = tokenise(texts, tokeniser, 60)
    assert one.subwords is not None and other.subwords is not None
    changed = put(one, 1, other, 1)
    assert changed.subwords is not None and changed.subwords[1].tolist() == other.subwords[1].tolist()
    assert changed.subwords[[0, 2], 0].tolist() == one.subwords[[0, 2], 0].tolist()
    assert one.subwords.shape[1] < changed.subwords.shape[1] and int(changed.ids[1]) == int(other.ids[1])
