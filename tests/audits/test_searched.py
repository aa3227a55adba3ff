"""The published search beside the furthest attention: it never goes further, and both are what they are alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.audits.cases import Case, trust
from assay.audits.equal_predictions import ALIKE, Adversary, Searched
from assay.intervene.adversary import Search
from assay.report.facts import KINDS
from assay.report.tables import kind
from assay.stories import Story, story_of
from tests import builders


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(builders.kind("gru", classes=2), builders.texts((7, 1, 4, 12, 9)), {})


def test_the_search_never_goes_further_than_the_furthest(case: Case) -> None:
    found = Searched(steps=60)(case).measures
    assert (found["searched"] <= found["jsd"] + 1e-9).all()
    assert (found["searched"] < found["jsd"] - ALIKE).any()  # sixty steps are few
    np.testing.assert_array_equal(found["reached"], (found["jsd"] - found["searched"] <= ALIKE).astype(float))


def test_both_numbers_are_those_of_the_parts_alone(case: Case) -> None:
    found = Searched(steps=30, epsilon=0.05).__call__(case).measures
    np.testing.assert_allclose(found["jsd"], Adversary(epsilon=0.05)(case).measures["jsd"], rtol=1e-12)
    alone = Search(30)(case.values, case.weights, case.items, 0.05, 5).jsd[:, 0].numpy()
    np.testing.assert_allclose(found["searched"], alone, rtol=1e-12)
    far = found["jsd"] > ALIKE
    np.testing.assert_allclose(found["found"][far], alone[far] / found["jsd"][far], rtol=1e-12)


def test_a_single_word_leaves_nothing_to_find(case: Case) -> None:
    found = Searched(steps=5)(case).measures
    assert found["jsd"][1] == 0 and np.isnan(found["found"][1]) and found["reached"][1] == 1


def test_more_steps_find_more(case: Case) -> None:
    few, many = (Searched(steps=steps)(case).measures["searched"] for steps in (10, 200))
    assert (many >= few - 1e-12).all() and many.sum() > few.sum()
    assert torch.isfinite(torch.from_numpy(many)).all()


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_what_a_search_found_is_never_called_exact(classes: int) -> None:
    given = trust(Searched(), builders.kind("gru", classes=classes), classes)
    assert given == "search"
    for earlier in ("exact", "bracket", "lower bound", given):  # the first three stand in older records
        assert "a search" in KINDS[kind(story_of(Searched()), earlier)] and "exact for each text" not in KINDS["search"]
    assert kind(Story(), "exact") == "exact"
