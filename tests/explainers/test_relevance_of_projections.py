"""Relevance where attention weights are sparse or even, within layers too, and where embeddings stand beside states."""

from __future__ import annotations

import pytest
import torch

from assay.errors import AssayError
from assay.explainers import relevance
from assay.explainers.relevance import AttnLrp, DeepLift, Lrp, contrast, propagated
from assay.explainers.relevance_rules import of_weights
from assay.models.projections import projection
from assay.models.walk import GRADIENT
from tests import builders

OPTIONS = {
    "sparsemax": {"projection": "sparsemax"},
    "sparsegen": {"projection": "sparsegen(0.5)", "concat": True},
    "entmax": {"projection": "entmax(1.5)"},
    "uniform": {"projection": "uniform"},
    "concat": {"concat": True},
    "inner": {"encoder": "transformer", "inner": "sparsemax", "projection": "entmax(1.8)"},
}
OPTION = pytest.mark.parametrize("option", OPTIONS)
SHAPE = pytest.mark.parametrize(
    ("shape", "markers"), [("flat", False), ("flat", True), ("hierarchical", False), ("paired", True)]
)
TARGET = torch.tensor([0, 1, 2, 1])
CLOSE = {"atol": 1e-12, "rtol": 1e-9}
PARTS = ("biases", "positions", "markers", "query")


def networks(option, shape, markers, classes=3):
    """Models with a recurrence, where that is free, and without."""
    for encoder in ("lstm", "average") if option != "inner" else ("transformer",):
        chosen = {"encoder": encoder} | OPTIONS[option]
        yield builders.model(shape=shape, markers=markers, classes=classes, **chosen)


def slope(model, batch, target=TARGET):
    """What is explained, and its derivative with respect to the embeddings."""
    x = model.embed(batch).detach().requires_grad_()
    explained = contrast(model(x, batch).logits, target)
    return explained.detach(), torch.autograd.grad(explained.sum(), x)[0]


@OPTION
@SHAPE
def test_with_true_derivatives_the_reading_is_the_model(option, shape, markers):
    batch = builders.texts()
    for model in networks(option, shape, markers):
        explained, gradient = slope(model, batch)
        found = propagated(model, batch, TARGET, GRADIENT)
        torch.testing.assert_close(found.explained, explained, **CLOSE)
        expected = (model.embed(batch) * gradient).sum(-1).detach() * batch.mask
        torch.testing.assert_close(found.tokens, expected, **CLOSE)


@OPTION
@SHAPE
def test_relevance_is_conserved(option, shape, markers):
    for model in networks(option, shape, markers):
        shares = Lrp().shares(model, builders.texts(), TARGET)
        parts = shares.tokens.sum(-1) + sum(getattr(shares, part) for part in PARTS)
        torch.testing.assert_close(parts, shares.explained, atol=1e-11, rtol=1e-11)
        assert (shares.tokens[3] != 0).any()


@OPTION
@SHAPE
@pytest.mark.parametrize("baseline", ["zero", "mean"])
def test_differences_from_the_baseline_leave_nothing_over(option, shape, markers, baseline):
    batch = builders.texts()
    for model in networks(option, shape, markers):
        assert DeepLift(baseline).unfit(model) is None
        shares = DeepLift(baseline).shares(model, batch, TARGET)
        with torch.no_grad():
            blank = model.blank(baseline).expand(*batch.ids.shape, -1)
            expected = contrast(model(model.embed(batch), batch).logits - model(blank, batch).logits, TARGET)
        torch.testing.assert_close(shares.tokens.sum(-1), expected, atol=1e-10, rtol=0)


@OPTION
def test_a_near_baseline_gives_the_gradient(option, monkeypatch):
    batch = builders.texts()
    for model in networks(option, "flat", False):
        step = 1e-5 * torch.randn(*batch.ids.shape, 6, dtype=torch.float64)
        monkeypatch.setattr(
            relevance, "baseline", lambda *_, model=model, step=step: model.embed(batch).detach() - step
        )
        monkeypatch.setattr(relevance, "_blanks", lambda model, batch: (torch.arange(len(batch)), None))
        found = DeepLift().shares(model, batch, TARGET).tokens
        expected = (slope(model, batch)[1] * step).sum(-1) * batch.mask
        torch.testing.assert_close(found * 1e5, expected * 1e5, atol=5e-3, rtol=1e-2)


@pytest.mark.parametrize("name", ["sparsemax", "entmax(1.5)"])
def test_without_an_encoder_a_word_without_weight_has_no_relevance(name):
    model, batch = builders.model(encoder="none", projection=name), builders.batch()
    weights = model(model.embed(batch), batch).attention[-1]
    side = model.decoder.weight[batch.labels] - model.decoder.weight[1 - batch.labels]
    expected = weights * torch.einsum("btd,bd->bt", model.embed(batch), side)
    for method in (Lrp(), AttnLrp()):
        found = method.shares(model, batch, batch.labels).tokens
        assert (weights == 0)[batch.mask].any() and (found[weights == 0] == 0).all()
    torch.testing.assert_close(Lrp().shares(model, batch, batch.labels).tokens, expected.detach(), **CLOSE)


def test_embeddings_beside_encodings_have_what_the_decoder_makes_of_them():
    """With encodings that the decoder does not read, relevance is weight × decoder × embedding."""
    model, batch = builders.model(concat=True), builders.batch()
    with torch.no_grad():
        model.decoder.weight[:, : model.encoder.size] = 0
    weights = model(model.embed(batch), batch).attention[-1]
    side = (model.decoder.weight[batch.labels] - model.decoder.weight[1 - batch.labels])[:, model.encoder.size :]
    expected = weights * torch.einsum("btd,bd->bt", model.embed(batch), side)
    torch.testing.assert_close(Lrp().shares(model, batch, batch.labels).tokens, expected.detach(), **CLOSE)


def test_attention_aware_relevance_under_sparse_weights_has_its_closed_form():
    model = builders.model(encoder="average", alignment="dot", projection="sparsemax")
    batch = builders.batch((9,))
    x = model.embed(batch)[0]
    states = model.encoder.projection(x).relu()
    weights = model(x[None], batch).attention[-1][0]
    side, inside = model.decoder.weight[0] - model.decoder.weight[1], (weights > 0).double()
    values = states @ side
    score = model.alignment.project.weight[0] * model.alignment.scale
    by_weight = inside * (values - (inside @ values) / inside.sum())
    to_states = (weights[:, None] * side + by_weight[:, None] * score) / 2
    expected = ((to_states * (states > 0)) @ model.encoder.projection.weight * x).sum(-1)
    assert 1 < inside.sum() < 9
    torch.testing.assert_close(AttnLrp().shares(model, batch, batch.labels).tokens[0], expected.detach(), **CLOSE)


@pytest.mark.parametrize(
    "name", ["sparsemax", "sparsegen(0.7)", "entmax(1.2)", "entmax(1.5)", "entmax(1.8)", "uniform"]
)
@pytest.mark.parametrize("size", [1e-9, 1.0, 30.0])
def test_weights_leave_nothing_over(name, size):
    scores = size * torch.randn(8, 6, dtype=torch.float64)
    scores[4:, :2] = scores[:4, :2]  # some do not change
    mask = torch.tensor([True] * 5 + [False]).expand(8, 6).clone()
    mask[3], mask[7] = False, False  # a row has nothing
    leaf = scores.clone().requires_grad_()
    weights = of_weights(projection(name), leaf, mask)
    torch.testing.assert_close(weights.detach(), projection(name)(scores, mask), **CLOSE)
    for place in range(5):
        (found,) = torch.autograd.grad(weights[:4, place].sum(), leaf, retain_graph=True)
        difference = (weights[:4] - weights[4:]).detach()[:, place]
        parts = (found[:4] * (scores[:4] - scores[4:])).sum(-1)
        torch.testing.assert_close(parts, difference, atol=1e-13 * (1 + size), rtol=1e-9)
        assert found.isfinite().all() and (found[:, 5] == 0).all() and (found[3] == 0).all()


def test_a_projection_that_nobody_has_a_rule_for_is_refused():
    model, batch = builders.model(), builders.batch()
    model.project = lambda scores, mask: projection("softmax")(2 * scores, mask)
    assert Lrp().unfit(model) is None and AttnLrp().unfit(model) is None
    with pytest.raises(AssayError, match="no rule for its attention weights"):
        DeepLift()(model, batch, batch.labels)


@OPTION
@pytest.mark.parametrize("method", [Lrp(), AttnLrp(), DeepLift()], ids=["lrp", "attnlrp", "deeplift"])
def test_fewer_digits_give_finite_scores(option, method):
    batch = builders.texts()
    options = {"encoder": "lstm"} | OPTIONS[option]
    exact, single, half = (
        method(builders.model(dtype=dtype, **options), batch, batch.labels)
        for dtype in (torch.float64, torch.float32, torch.bfloat16)
    )
    assert single.isfinite().all() and half.isfinite().all()
    torch.testing.assert_close(single, exact.float(), atol=1e-4, rtol=1e-3)
