"""Removing what supports a decision most, and training again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

import numpy as np
import pytest

from assay.audits.influence_checks import Removal, supporting
from assay.errors import AssayError
from assay.influence.retraining import Retrained, measured
from assay.influence.setting import Influence, Setting
from assay.influence.unrolled import Unrolled
from tests.influence.training_runs import HARD, setting, training_run


@dataclass(frozen=True)
class Told:
    """Scores that were made before."""

    scores: np.ndarray

    def unfit(self, setting: Setting) -> str | None:
        return None

    def __call__(self, setting: Setting) -> Influence:
        return Influence(self.scores)


def test_the_examples_of_the_lowest_scores_support_a_margin_and_of_the_highest_a_loss() -> None:
    scores = np.array([[0.1, -2.0, 3.0, -1.0]])
    np.testing.assert_array_equal(supporting(scores, 2, True), [[False, True, False, True]])
    np.testing.assert_array_equal(supporting(scores, 1, False), [[False, False, True, False]])


def test_what_really_happens_is_measured_beside_what_is_predicted_and_chance() -> None:
    made, asked = training_run("average", rows=40, training=replace(HARD, batch_size=20, epochs=3))
    known = setting(made, asked)
    exact = Unrolled()(known)
    found = Removal(counts=(1, 8), draws=3)(known, {"exact": Told(exact.scores), "opposite": Told(-exact.scores)})
    by_name = {(each.method, each.count): each for each in found.removed}
    few, many = by_name["exact", 1], by_name["exact", 8]
    for row in (few, many):
        assert row.real.high < 0 and row.gain.high < 0 and row.predicted.high < 0
    assert many.real.mean < few.real.mean
    assert 0.8 < few.calibration < 1.2
    assert by_name["opposite", 8].real.mean > 0
    shares = np.ones((len(asked), len(made.rows)))
    shares[np.arange(len(asked)), exact.scores.argmin(1)] = 0
    expected = [measured(made.learn(own), known)[place] for place, own in enumerate(shares)]
    np.testing.assert_allclose(few.real.mean, np.mean(expected - Retrained(known).whole()), rtol=1e-6)
    assert json.loads(json.dumps(asdict(found)))["queries"] == 4


def test_decisions_that_turn_are_counted() -> None:
    made, asked = training_run("average", rows=24, training=replace(HARD, batch_size=12, epochs=6, learning_rate=0.02))
    known = setting(made, asked)
    labels = np.array([row.label for row in made.rows])
    blamed = np.where(labels[None] == known.classes[:, None], -1.0, 1.0)
    (one,) = Removal(counts=(11,), draws=1)(known, {"class": Told(blamed)}).removed
    assert one.turned is not None and one.turned > 0.5


def test_more_than_there_are_cannot_be_removed() -> None:
    made, asked = training_run("average")
    with pytest.raises(AssayError, match="ask for fewer"):
        Removal(counts=(12,))(setting(made, asked), {})
