"""What every edit of attention owes its caller, on weights alone and within models."""

from __future__ import annotations

import pytest
import torch

from assay.intervene import EDITS
from tests import builders, pretrained

LENGTHS = torch.tensor([7, 1, 4, 6])
KINDS = ("lstm", "hierarchical-gru", "paired-average", "structured", "bert")
EVERY = pytest.mark.parametrize("name", EDITS)
QUERIES = pytest.mark.parametrize("queries", [(), (3,), (2, 3)])


def attention(*queries, tokens=7):
    """Distributions over the real tokens of four texts, for each of their queries."""
    mask = torch.arange(tokens) < LENGTHS[:, None]
    wide = mask.reshape(4, *[1] * len(queries), tokens)
    scores = torch.randn(4, *queries, tokens, generator=torch.Generator().manual_seed(1))
    return scores.masked_fill(~wide, -torch.inf).softmax(-1), mask


def falling(mask):
    """Less weight on each token than on the one before."""
    weights = mask / torch.arange(1, mask.shape[1] + 1).double()
    return weights / weights.sum(-1, keepdim=True)


@EVERY
@QUERIES
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_an_edit_returns_distributions_over_real_tokens(name, queries, dtype):
    weights, mask = attention(*queries)
    edited = EDITS[name](attention()[0])(weights.to(dtype), mask)
    assert edited.shape == weights.shape and edited.dtype == dtype
    torch.testing.assert_close(edited.float().sum(-1), torch.ones(edited.shape[:-1]), atol=2e-2, rtol=0)
    if dtype != torch.bfloat16:
        torch.testing.assert_close(edited.sum(-1), torch.ones(edited.shape[:-1], dtype=dtype), atol=1e-6, rtol=0)
    assert (edited >= 0).all()
    assert (edited.masked_select(~mask.reshape(4, *[1] * len(queries), 7)) == 0).all()


@EVERY
@QUERIES
def test_an_edit_leaves_its_input_alone_and_does_the_same_at_each_call(name, queries):
    weights, mask = attention(*queries)
    before, edit = weights.clone(), EDITS[name](attention()[0])
    assert torch.equal(edit(weights, mask), edit(weights, mask))
    assert torch.equal(weights, before)


@EVERY
def test_wider_padding_changes_nothing(name):
    weights, mask = attention()
    wider = torch.nn.functional.pad(weights, (0, 5))
    edited = EDITS[name](weights)(weights, mask)
    again = EDITS[name](wider)(wider, torch.nn.functional.pad(mask, (0, 5)))
    assert torch.equal(torch.nn.functional.pad(edited, (0, 5)), again)


@EVERY
def test_order_and_size_of_the_batch_change_nothing_unless_the_edit_draws(name):
    weights, mask = attention()
    if hasattr(EDITS[name](weights), "seed"):
        pytest.skip("what is drawn for a row depends on its place in the batch")
    edited, order = EDITS[name](weights)(weights, mask), torch.tensor([2, 0, 3, 1])
    assert torch.equal(EDITS[name](weights[order])(weights[order], mask[order]), edited[order])
    alone = [EDITS[name](weights[row : row + 1])(weights[row : row + 1], mask[row : row + 1]) for row in range(4)]
    assert torch.equal(torch.cat(alone), edited)


@EVERY
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_takes_the_edit_and_is_left_as_it_was(name, kind):
    model = pretrained.pretrained(kind) if kind == "bert" else builders.kind(kind)
    batch = pretrained.batch() if kind == "bert" else builders.texts()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    with torch.no_grad():
        x = model.embed(batch)
        plain = model(x, batch)
        weights = falling(model.sequence(x, batch).mask) if kind == "bert" else plain.attention[-1]
        edited = model(x, batch, EDITS[name](weights))
        assert torch.equal(model(x, batch).logits, plain.logits)
    assert edited.logits.shape == plain.logits.shape and edited.logits.isfinite().all()
    if kind == "bert" or name != "replace":
        assert (edited.logits != plain.logits).any()
    else:
        torch.testing.assert_close(edited.logits, plain.logits)
    assert not model.training
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())
