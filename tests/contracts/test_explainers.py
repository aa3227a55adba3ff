"""What every explainer owes its caller, checked over all of them and all encoders."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.needs import unfit
from assay.models.attention import ALIGNMENTS
from assay.models.encoders import ENCODERS
from tests import builders

SPARSE = {"input_reduction", "counterfactual", "anchors"}
"""They search for a few words: most scores are 0, and another precision may lead to another choice."""

CLASS_FREE = {"attention", "attention_x_value", "rollout", "flow", "leave_one_out", "random"}
"""Their scores are the same whatever the class, and their docstrings say so."""


def served(name, encoder):
    """Whether the explainer can serve models with this encoder."""
    return unfit(EXPLAINERS[name], builders.model(encoder=encoder)) is None


PAIRS = [(name, encoder) for name in EXPLAINERS for encoder in ENCODERS]
SERVED = [pair for pair in PAIRS if served(*pair)]
EVERY = pytest.mark.parametrize("name", EXPLAINERS)
EVERY_PAIR = pytest.mark.parametrize(("name", "encoder"), SERVED, ids=map("-".join, SERVED))
UNFIT = [pair for pair in PAIRS if pair not in SERVED]


def explained(name, model, batch):
    return EXPLAINERS[name](model, batch, batch.labels)


def some_model(name, **options):
    """A model that the explainer can serve."""
    return builders.model(encoder=next(encoder for other, encoder in SERVED if other == name), **options)


@EVERY
def test_every_explainer_serves_some_encoder(name):
    assert any(other == name for other, _ in SERVED)


@pytest.mark.parametrize(("name", "encoder"), UNFIT, ids=map("-".join, UNFIT))
def test_an_unfit_model_is_refused_with_the_reason(name, encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    reason = unfit(EXPLAINERS[name], model)
    with pytest.raises(AssayError) as refusal:
        explained(name, model, batch)
    assert str(reason) in str(refusal.value)


@EVERY_PAIR
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_one_finite_score_a_token_and_nothing_on_padding(name, encoder, alignment):
    batch = builders.batch()
    scores = explained(name, builders.model(encoder=encoder, alignment=alignment), batch)
    assert scores.shape == batch.ids.shape
    assert scores.isfinite().all()
    assert (scores[~batch.mask] == 0).all()
    if name in SPARSE:
        assert (scores >= 0).all()
    else:
        assert (scores[3] != 0).sum() > 6


@EVERY_PAIR
@pytest.mark.parametrize("markers", [False, True])
def test_padding_changes_nothing(name, encoder, markers):
    model = builders.model(encoder=encoder, markers=markers)
    narrow, wide = builders.batch(), builders.batch(width=20)
    torch.testing.assert_close(explained(name, model, wide)[:, :12], explained(name, model, narrow))


@EVERY_PAIR
def test_order_and_size_of_the_batch_change_nothing(name, encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    together = explained(name, model, batch)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(explained(name, model, batch[order]), together[order])
    alone = torch.cat([explained(name, model, batch[row : row + 1]) for row in range(len(batch))])
    torch.testing.assert_close(alone, together)


@EVERY
def test_the_same_call_gives_the_same_scores(name):
    model, batch = some_model(name), builders.batch()
    assert torch.equal(explained(name, model, batch), explained(name, model, batch))


@EVERY_PAIR
def test_the_model_is_left_as_it_was(name, encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    explained(name, model, batch)
    assert not model.training
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())


@EVERY_PAIR
def test_single_and_half_precision_work(name, encoder):
    batch = builders.batch()
    exact = explained(name, builders.model(encoder=encoder), batch)
    single = explained(name, builders.model(encoder=encoder, dtype=torch.float32), batch)
    assert single.isfinite().all()
    if name not in SPARSE:
        torch.testing.assert_close(single, exact, atol=1e-4, rtol=1e-3, check_dtype=False)
    half = explained(name, builders.model(encoder=encoder, dtype=torch.bfloat16), batch)
    assert single.dtype == half.dtype == torch.float32
    assert half.isfinite().all()


@EVERY
def test_labels_and_truth_are_not_looked_at(name):
    model, batch = some_model(name), builders.batch()
    blind = replace(batch, labels=1 - batch.labels, truth=batch.mask)
    target = batch.labels
    assert torch.equal(EXPLAINERS[name](model, blind, target), EXPLAINERS[name](model, batch, target))


@EVERY_PAIR
def test_the_class_matters_unless_the_explainer_is_free_of_it(name, encoder):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch()
    scores = torch.stack([EXPLAINERS[name](model, batch, torch.full((4,), label)) for label in range(3)])
    assert scores.isfinite().all()
    if name in CLASS_FREE:
        assert torch.equal(scores[0], scores[1]) and torch.equal(scores[0], scores[2])
    elif name not in SPARSE:  # few words may decide for several classes
        apart = (scores[:, None].abs() - scores[None].abs()).abs().amax((-1, -2))  # the sign alone is not enough
        assert (apart[~torch.eye(3, dtype=torch.bool)] > 1e-3 * scores.abs().max()).all()


@EVERY_PAIR
@pytest.mark.parametrize("markers", [False, True])
def test_a_single_word_gets_a_score(name, encoder, markers):
    model, batch = builders.model(encoder=encoder, classes=3, markers=markers), builders.batch((1,))
    scores = EXPLAINERS[name](model, batch, torch.tensor([2]))
    assert scores.shape == (1, 1)
    assert scores.isfinite().all()
