"""What every explainer owes its caller when the model is a transformer and words have subwords."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.nn.functional import pad

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.anchors import Anchors
from assay.explainers.gradients import SmoothGrad
from assay.explainers.needs import is_sparse, unfit
from tests import pretrained as made
from tests.contracts.covering import covering, fitting

KINDS = ("bert", "gpt2", "attentive")
QUICK = EXPLAINERS | {
    "anchors": Anchors(longest=2),
    "smoothgrad": SmoothGrad(samples=4),
}
"""All explainers; those that read most read less here."""

TEXTS = ("Not a good film, is it?", "Dull!", "A very unwatchable film", "It is long, not fun.")


@cache
def model(kind, dtype=torch.float64):
    return made.attentive(dtype=dtype) if kind == "attentive" else made.pretrained(kind, dtype=dtype)


@cache
def batch():
    return made.batch(TEXTS)


@cache
def scores(name, kind):
    return explained(name, kind, batch())


def explained(name, kind, texts):
    return QUICK[name](model(kind), texts, texts.labels)


@cache
def reason(name, kind):
    """Why the explainer cannot serve models of this kind, or None."""
    return unfit(QUICK[name], model(kind))


SERVED, UNFIT = fitting(EXPLAINERS, KINDS, lambda name, kind: reason(name, kind) is None)


@covering(UNFIT)
def test_an_unfit_model_is_refused_with_the_reason(name, kind):
    with pytest.raises(AssayError) as refusal:
        explained(name, kind, batch())
    assert reason(name, kind) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_most_explainers_serve_transformers():
    for kind in KINDS:
        assert sum(other == kind for _, other in SERVED) > 20


@covering(SERVED, each=1, turn=1)
def test_one_finite_score_a_word_and_nothing_on_padding(name, kind):
    found = scores(name, kind)
    assert found.shape == batch().ids.shape
    assert found.isfinite().all()
    assert (found[~batch().mask] == 0).all()
    if is_sparse(QUICK[name]):
        assert (found >= 0).all()
    else:
        assert (found[0] != 0).sum() >= 4


@covering(SERVED, each=1, turn=2)
def test_padding_changes_nothing(name, kind):
    narrow = batch()
    wide = replace(
        narrow,
        ids=pad(narrow.ids, (0, 4)),
        mask=pad(narrow.mask, (0, 4)),
        sentences=pad(narrow.sentences, (0, 4)),
        subwords=pad(narrow.subwords, (0, 2, 0, 4), value=-1),
    )
    found = explained(name, kind, wide)
    torch.testing.assert_close(found[:, : narrow.ids.shape[1]], scores(name, kind))
    assert (found[:, narrow.ids.shape[1] :] == 0).all()


@covering(SERVED, each=1, turn=3)
def test_order_and_size_of_the_batch_change_nothing(name, kind):
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(explained(name, kind, batch()[order]), scores(name, kind)[order])
    alone = torch.cat([explained(name, kind, batch()[row : row + 1]) for row in range(4)])
    torch.testing.assert_close(alone, scores(name, kind))


@covering(SERVED, each=1, turn=4)
def test_the_same_call_gives_the_same_scores_and_leaves_the_model_as_it_was(name, kind):
    network = model(kind)
    before = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    assert torch.equal(explained(name, kind, batch()), scores(name, kind))
    assert not network.training
    assert network.inner.config._attn_implementation == "sdpa"
    assert all(torch.equal(before[key], tensor) for key, tensor in network.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in network.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in network.modules())


@covering(SERVED, each=1, turn=5)
def test_a_single_word_gets_a_score(name, kind):
    found = explained(name, kind, made.batch(("unwatchable",)))
    assert found.shape == (1, 1)
    assert found.isfinite().all()


@covering(SERVED, each=1, turn=6)
def test_half_precision_works(name, kind):
    half = QUICK[name](model(kind, torch.bfloat16), batch()[:2], batch().labels[:2])
    assert half.dtype == torch.float32
    assert half.isfinite().all()
