"""Trainings without some examples: together as one by one, kept, and from other random weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence import replay, retraining
from assay.influence.retraining import Retrained, measured, seeded, subsets
from assay.models.recipes import drawn
from tests.influence.training_runs import HARD, setting, training_run


@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
def test_trainings_together_are_those_one_by_one(encoder: str) -> None:
    made, asked = training_run(encoder, dropout_decoder=0.2, dropout_words=0.1)
    known = setting(made, asked)
    removed = subsets(3, len(made.rows), 0.3)
    expected = [measured(made.learn(1.0 - own), known) for own in removed]
    np.testing.assert_allclose(Retrained(known).targets(removed), expected, rtol=1e-9)
    np.testing.assert_allclose(Retrained(known, at_once=1).targets(removed), expected, rtol=1e-12)
    np.testing.assert_allclose(Retrained(known, at_once=2).targets(removed), expected, rtol=1e-9)


def test_heads_that_learn_along_learn_together() -> None:
    made, asked = training_run("average", training=replace(HARD, mlm=0.5))
    known, removed = setting(made, asked), subsets(2, len(made.rows), 0.3)
    expected = [measured(made.learn(1.0 - own), known) for own in removed]
    np.testing.assert_allclose(Retrained(known).targets(removed), expected, rtol=1e-9)


def test_one_example_alone_is_removed_as_a_share_of_nothing() -> None:
    made, asked = training_run("average")
    known = setting(made, asked)
    shares = np.ones(len(made.rows))
    shares[5] = 0
    expected = measured(made.learn(shares), known) - measured(known.network, known)
    np.testing.assert_allclose(Retrained(known).alone([5, 6])[0], expected, rtol=1e-7)


def test_what_was_trained_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, asked = training_run("average")
    known, removed = setting(made, asked), subsets(5, len(made.rows), 0.3)
    expected = Retrained(known).targets(removed)
    learn, done = replay.learn_together, []

    def interrupted(*given: object) -> replay.Members:
        if done:
            raise KeyboardInterrupt
        done.append(given)
        return learn(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(retraining, "learn_together", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Retrained(known, tmp_path, at_once=2).targets(removed)
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(retraining, "learn_together", learn)
    np.testing.assert_allclose(Retrained(known, tmp_path, at_once=2).targets(removed), expected, rtol=1e-9)
    assert len(list(tmp_path.iterdir())) == 5
    monkeypatch.setattr(retraining, "learn_together", interrupted)  # nothing is left to do
    np.testing.assert_allclose(Retrained(known, tmp_path).targets(removed[::-1])[::-1], expected, rtol=1e-9)
    other = replace(known, target="loss")
    with pytest.raises(KeyboardInterrupt):
        Retrained(other, tmp_path).targets(removed)


def test_subsets_are_random_and_of_one_size() -> None:
    removed = subsets(6, 40, 0.25, seed=1)
    assert (removed.sum(1) == 10).all() and len(np.unique(removed, axis=0)) == 6
    assert (removed == subsets(6, 40, 0.25, seed=1)).all() and (removed != subsets(6, 40, 0.25, seed=2)).any()
    with pytest.raises(AssayError, match="nothing to remove"):
        subsets(2, 10, 0.01)


def test_another_seed_is_another_training() -> None:
    made, _ = training_run("average")
    other = seeded(made, 3)
    fresh = drawn(made.network.architecture, len(made.network.embedding.weight), 2, 3)
    assert all(
        torch.equal(own, new.double()) for own, new in zip(other.network.parameters(), fresh.parameters(), strict=True)
    )
    assert [list(group) for group in made.groups()] != [list(group) for group in other.groups()]


def test_without_a_course_nothing_is_trained() -> None:
    made, asked = training_run("average")
    known = replace(setting(made, asked), training_run=None)
    with pytest.raises(AssayError, match="not known"):
        Retrained(known).whole()
