"""What every explainer owes its caller, checked over all of them and all encoders."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.explainers import EXPLAINERS
from assay.models.attention import ALIGNMENTS
from assay.models.encoders import ENCODERS
from tests import builders

EVERY = pytest.mark.parametrize("name", EXPLAINERS)
ENCODER = pytest.mark.parametrize("encoder", ENCODERS)


def explained(name, model, batch):
    return EXPLAINERS[name](model, batch, batch.labels)


@EVERY
@ENCODER
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_one_finite_score_a_token_and_nothing_on_padding(name, encoder, alignment):
    batch = builders.batch()
    scores = explained(name, builders.model(encoder=encoder, alignment=alignment), batch)
    assert scores.shape == batch.ids.shape
    assert scores.isfinite().all()
    assert (scores[~batch.mask] == 0).all()
    assert (scores[3] != 0).sum() > 6


@EVERY
@ENCODER
@pytest.mark.parametrize("markers", [False, True])
def test_padding_changes_nothing(name, encoder, markers):
    model = builders.model(encoder=encoder, markers=markers)
    narrow, wide = builders.batch(), builders.batch(width=20)
    torch.testing.assert_close(explained(name, model, wide)[:, :12], explained(name, model, narrow))


@EVERY
@ENCODER
def test_order_and_size_of_the_batch_change_nothing(name, encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    together = explained(name, model, batch)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(explained(name, model, batch[order]), together[order])
    alone = torch.cat([explained(name, model, batch[row : row + 1]) for row in range(len(batch))])
    torch.testing.assert_close(alone, together)


@EVERY
def test_the_same_call_gives_the_same_scores(name):
    model, batch = builders.model(), builders.batch()
    assert torch.equal(explained(name, model, batch), explained(name, model, batch))


@EVERY
@ENCODER
def test_the_model_is_left_as_it_was(name, encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    explained(name, model, batch)
    assert not model.training
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())


@EVERY
@ENCODER
def test_single_and_half_precision_work(name, encoder):
    batch = builders.batch()
    exact = explained(name, builders.model(encoder=encoder), batch)
    single = explained(name, builders.model(encoder=encoder, dtype=torch.float32), batch)
    torch.testing.assert_close(single, exact, atol=1e-4, rtol=1e-3)
    half = explained(name, builders.model(encoder=encoder, dtype=torch.bfloat16), batch)
    assert half.dtype == torch.float32
    assert half.isfinite().all()


@EVERY
def test_labels_and_truth_are_not_looked_at(name):
    model, batch = builders.model(), builders.batch()
    blind = replace(batch, labels=1 - batch.labels, truth=batch.mask)
    target = batch.labels
    assert torch.equal(EXPLAINERS[name](model, blind, target), EXPLAINERS[name](model, batch, target))
