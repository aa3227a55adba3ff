from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.audits.cases import Case, PreparedAudit, Resources
from assay.audits.marked_words import Plausibility
from assay.data.batches import Tokenised
from assay.data.text import TextOptions, Tokeniser
from assay.models.store import Trained
from assay.types import Batch
from tests import builders

TRUTH = torch.tensor([[0, 1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]]).bool()
SCORES = torch.tensor(
    [[0.1, 0.9, 0.2, 0.8, 0.0, 0.0, -0.7, 0.0], [0.5, 0.1, 0.0, -0.9, 0.0, 0.0, 0.0, 0.0], [1.0, 0, 0, 0, 0, 0, 0, 0]]
)


def case(batch: Batch, planted: bool = False) -> Case:
    return Case(builders.model(), batch, {"any": SCORES[: len(batch)]}, planted=planted)


@pytest.fixture
def batch() -> Batch:
    return replace(builders.batch((8, 4, 8)), truth=TRUTH)


def row(truth: torch.Tensor | None, length: int) -> Tokenised:
    places = torch.arange(length)
    spans = torch.stack([places, places + 1], 1)
    return Tokenised(0, places + 4, spans, torch.zeros_like(places), 0, truth)


def resources(*rows: Tokenised) -> Resources:
    trained = Trained(builders.model(), Tokeniser.fit(["a b"], TextOptions()), ("no", "yes"))
    return Resources(trained, {}, list(rows))


def test_the_numbers_are_those_worked_by_hand(batch: Batch) -> None:
    found = Plausibility(share=0.375)(case(batch)).measures
    # text 0: 3 of 8 tokens: 1, 3 and 2, one span of three over a marked one of two, IOU 2/3
    # text 1: 2 of 4 tokens (1.5 becomes 2): 0 and 1, a span of two over a marked one of one, IOU 1/2; 3 is missed
    expected = {
        "token_precision": [2 / 3, 1 / 2],
        "token_recall": [1, 1 / 2],
        "token_f1": [4 / 5, 1 / 2],
        "iou_precision": [1, 1],
        "iou_recall": [1, 1 / 2],
        "iou_f1": [1, 2 / 3],
        # text 0: hits at ranks 1 and 3; text 1: at ranks 1 and 4, since -.9 is the lowest
        "average_precision": [(1 + 2 / 3) / 2, (1 + 2 / 4) / 2],
        "auprc": [1 / 2 + (1 / 2 + 2 / 3) / 4, 1 / 2 + (1 / 3 + 2 / 4) / 4],
    }
    assert {*found} == {f"{name}:any" for name in expected}
    for name, values in expected.items():
        np.testing.assert_allclose(found[f"{name}:any"], [*values, np.nan], err_msg=name)


def test_the_share_is_the_mean_over_all_texts_with_evidence() -> None:
    audit = Plausibility()
    assert isinstance(audit, PreparedAudit)
    some = row(torch.tensor([True, False, False, False]), 4), row(torch.tensor([True, True]), 2)
    none = row(torch.zeros(5, dtype=torch.bool), 5), row(None, 3)
    assert audit.prepared(resources(*some, *none)).share == (1 / 4 + 1) / 2
    assert audit.prepared(resources(*none)).share is None


def test_without_preparation_the_share_is_that_of_the_batch(batch: Batch) -> None:
    alone, told = Plausibility()(case(batch)), Plausibility(share=(2 / 8 + 2 / 4) / 2)(case(batch))
    for name, values in told.measures.items():
        np.testing.assert_array_equal(alone.measures[name], values)
    other = Plausibility(share=0.9)(case(batch)).measures
    assert other["token_f1:any"][0] != told.measures["token_f1:any"][0]


def test_planted_words_and_texts_that_nobody_marked_are_not_its_business(batch: Batch) -> None:
    assert Plausibility().unfit(case(batch)) is None
    assert "planted" in Plausibility().unfit(case(batch, planted=True))
    unmarked = replace(batch, truth=None)
    assert "does not mark" in Plausibility().unfit(case(unmarked))


def test_a_batch_without_evidence_in_a_corpus_that_has_some_has_no_numbers(batch: Batch) -> None:
    for planted in (False, True):  # nothing in such a batch tells what its corpus is
        unmarked = case(replace(batch, truth=None), planted)
        assert Plausibility(share=0.2).unfit(unmarked) is None
        assert all(np.isnan(values).all() for values in Plausibility(share=0.2)(unmarked).measures.values())


def test_a_missing_score_leaves_its_text_undefined(batch: Batch) -> None:
    scores = SCORES.clone()
    scores[1, 0] = torch.nan
    found = Plausibility(share=0.25)(Case(builders.model(), batch, {"any": scores})).measures
    for values in found.values():
        assert np.isnan(values).tolist() == [False, True, True]
