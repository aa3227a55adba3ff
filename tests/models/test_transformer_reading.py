"""How transformers are read: in batches counted in subwords, and in half precision."""

from __future__ import annotations

import pytest
import torch

from assay.explainers import EXPLAINERS
from assay.models import budget
from assay.models.erasure import extents, query_lengths
from tests import builders, pretrained

LIMIT = 40
NAMES = ("occlusion", "occlusion_mask", "leave_one_out", "lime", "integrated_gradients")


def wide(model, run):
    """What `run` gives, and the subwords of the text in the largest pass."""
    seen = []
    with model.inner.base_model.register_forward_pre_hook(
        lambda part, given, named: seen.append(int(named["attention_mask"].shape.numel())), with_kwargs=True
    ):
        return run(), max(seen)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("queries", [None, ("is it good", "why", "a", "not dull")])
def test_passes_are_bounded_in_pieces_and_what_is_read_together_changes_nothing(monkeypatch, name, queries):
    model, batch = pretrained.pretrained("bert"), pretrained.batch(queries=queries)
    explain = lambda: EXPLAINERS[name](model, batch, batch.labels)  # noqa: E731
    expected, before = wide(model, explain)
    monkeypatch.setitem(budget.ROOM, "versions of stacks", (LIMIT, LIMIT))
    found, after = wide(model, explain)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    longest = int((extents(batch).sum(-1) + query_lengths(batch)).max()) + 3
    ends = 2 * len(batch) if name == "integrated_gradients" else 1  # the ends of all paths are read together
    nodes = 7 if name == "integrated_gradients" else 1
    assert after <= max(3 * LIMIT, nodes * longest, ends * longest)  # two special subwords come on top of each word
    assert after < before


def test_a_word_takes_as_many_places_as_it_has_pieces():
    batch = pretrained.batch()
    expected = [[sum(subword >= 0 for subword in word) for word in text] for text in batch.subwords.tolist()]
    assert extents(batch).tolist() == expected
    plain = builders.structured(builders.batch())
    assert torch.equal(extents(plain), plain.mask.long())
    assert query_lengths(plain).tolist() == [0] * len(plain)  # models of ours read the question once


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "gpt2"])
@pytest.mark.parametrize(
    "name", ["gradient", "gradient_norm", "input_x_gradient", "integrated_gradients", "smoothgrad", "occlusion", "lime"]
)
def test_scores_of_a_model_in_half_precision_are_finite_and_single(architecture, name):
    model, batch = pretrained.pretrained(architecture, dtype=torch.bfloat16), pretrained.batch()
    scores = EXPLAINERS[name](model, batch, batch.labels)
    assert scores.dtype == torch.float32
    assert scores.isfinite().all()
    assert scores[batch.mask].abs().sum() > 0


def test_attention_is_not_planned_for_every_shape_and_afterwards_all_is_as_before():
    model, texts, seen = pretrained.pretrained("bert"), pretrained.batch(), []
    model.inner.register_forward_hook(lambda *_: seen.append(torch.backends.cuda.cudnn_sdp_enabled()))
    before = torch.backends.cuda.cudnn_sdp_enabled()
    model(model.embed(texts), texts)
    assert seen == [False]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before
