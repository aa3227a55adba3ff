"""What a person may ask for, and what each mistake says."""

from __future__ import annotations

import pytest

from assay.errors import AssayError
from assay.intervene.edits import ACTS, Act

MISTAKES = {
    "unknown": ({"kind": "funiform"}, "did you mean 'uniform'"),
    "below 0": ({"kind": "set", "weights": {0: -0.1}}, "between 0 and 1"),
    "above 1": ({"kind": "set", "weights": {0: 1.5}}, "between 0 and 1"),
    "together above 1": ({"kind": "set", "weights": {0: 0.6, 1: 0.6}}, "sum to at most 1"),
    "no number": ({"kind": "set", "weights": {0: float("nan")}}, "between 0 and 1"),
    "epsilon": ({"epsilon": 1.0}, "epsilon"),
    "epsilon that is no number": ({"epsilon": float("nan")}, "epsilon"),
    "layer": ({"layer": -1}, "at least 0"),
    "seed": ({"seed": -1}, "at least 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake) -> None:
    given, sentence = MISTAKES[mistake]
    with pytest.raises(AssayError, match=sentence):
        Act(**given)


@pytest.mark.parametrize("kind", ACTS)
def test_every_act_can_be_asked_for_by_its_name_alone(kind) -> None:
    assert Act(kind).kind == kind


def test_weights_that_add_up_to_one_but_for_rounding_are_taken() -> None:
    for weights in (dict.fromkeys(range(10), 0.1), {0: 0.7, 1: 0.2, 2: 0.1}):
        assert Act("set", weights).weights == weights
