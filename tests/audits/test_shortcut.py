"""What the audits of planted words find: `shortcut`, and `truth` beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from assay.audits.cases import Case
from assay.audits.marked_words import Shortcut, Truth
from assay.types import Batch, Edit, Output

# ids 5, 6 and 7 add 3, 1 and .2 to the log-odds of class 1; every text starts from -.5
WEIGHTS = torch.tensor([0, 0, 0, 0, 0, 3.0, 1.0, 0.2, 0, 0], dtype=torch.float64)
IDS = torch.tensor([[5, 8, 9, 0], [5, 5, 8, 6], [8, 7, 9, 9], [6, 8, 9, 0], [8, 9, 8, 9]])
MASK = IDS > 0
TRUTH = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]).bool()
SCORES = {
    "first": torch.tensor([[0.9, 0.1, 0.0, 0.0]]).repeat(5, 1),
    "turned": torch.tensor([[-0.9, 0.1, 0.0, 0.0]]).repeat(5, 1),
}


@dataclass(frozen=True)
class Additive:
    def embed(self, batch: Batch) -> torch.Tensor:
        return WEIGHTS[batch.ids][..., None]

    def __call__(self, x: torch.Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        total = (x[..., 0] * batch.mask).sum(-1) - 0.5
        return Output(torch.stack([torch.zeros_like(total), total], -1), ())


@pytest.fixture
def case() -> Case:
    return Case(Additive(), Batch(IDS, MASK, torch.zeros(5).long(), truth=TRUTH), SCORES, planted=True)


def test_words_are_used_where_the_answer_is_another_without_them(case: Case) -> None:
    # 0: 2.5 to -.5, another decision; 1: 6.5 to 5.5, hardly any change; 2: the decision stays and moves little;
    # 3: .5 to -.5, a small change but another decision; 4: nothing is marked
    assert case.predicted.tolist() == [1, 1, 0, 1, 0]
    np.testing.assert_array_equal(Shortcut()(case).measures["used:model"], [1, 0, 0, 1, np.nan])


def test_a_move_of_the_probability_counts_without_another_decision(case: Case) -> None:
    ids = torch.tensor([[6, 5]])  # 3.5 to 2.5 moves the probability from .971 to .924
    batch = Batch(ids, ids > 0, torch.zeros(1).long(), truth=torch.tensor([[True, False]]))
    moved = 1 / (1 + np.exp(-3.5)) - 1 / (1 + np.exp(-2.5))
    one = Case(Additive(), batch, {}, planted=True)
    assert Shortcut(moved=moved - 1e-6)(one).measures["used:model"] == [1]
    assert Shortcut(moved=moved + 1e-6)(one).measures["used:model"] == [0]
    against = replace(batch, ids=torch.tensor([[9, 9]]))
    assert Shortcut()(replace(one, batch=against)).measures["used:model"] == [0]


def test_a_rise_counts_like_a_fall() -> None:
    ids = torch.tensor([[7, 8]])  # class 0 at .574 rises to .622 without the word that speaks against it
    batch = Batch(ids, ids > 0, torch.zeros(1).long(), truth=torch.tensor([[True, False]]))
    one = Case(Additive(), batch, {}, planted=True)
    assert one.predicted.tolist() == [0]
    assert Shortcut(moved=0.04)(one).measures["used:model"] == [1]


def test_explainers_are_judged_by_the_texts_in_which_the_words_are_used(case: Case) -> None:
    found = Shortcut()(case).measures
    np.testing.assert_array_equal(found["shown:first"], [1, np.nan, np.nan, 1, np.nan])
    np.testing.assert_array_equal(found["shown:turned"], [0, np.nan, np.nan, 0, np.nan])
    assert {*found} == {"used:model", "shown:first", "shown:turned"}


def test_truth_ranks_scores_as_they_are_and_by_size(case: Case) -> None:
    found = Truth()(case).measures
    np.testing.assert_allclose(found["auprc:first"], [1, 1 / 4, 1 / 2, 1, np.nan])
    np.testing.assert_allclose(found["auprc:turned"], [1 / 3, 1 / 3, 1, 1 / 3, np.nan])
    np.testing.assert_array_equal(found["auprc_size:turned"], found["auprc_size:first"])
    np.testing.assert_array_equal(found["auprc_size:first"], found["auprc:first"])
    np.testing.assert_array_equal(found["precision:first"], [1, 0, 0, 1, np.nan])
    np.testing.assert_array_equal(found["precision:turned"], [0, 0, 1, 0, np.nan])


@pytest.mark.parametrize("audit", [Shortcut(), Truth()])
def test_only_planted_words_are_known_to_decide(audit: Shortcut | Truth, case: Case) -> None:
    assert audit.unfit(case) is None
    assert "does not plant" in audit.unfit(replace(case, planted=False))
    assert "does not plant" in audit.unfit(replace(case, batch=replace(case.batch, truth=None)))
