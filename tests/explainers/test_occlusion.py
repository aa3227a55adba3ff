"""Leave-one-out and occlusion against reading each changed text again, one at a time."""

from __future__ import annotations

import pytest
import torch
from captum.attr import FeatureAblation

from assay import costs
from assay.errors import AssayError
from assay.explainers.occlusion import Occlusion, leave_one_out
from assay.models import budget
from assay.models.encoders import ALIGNMENTS, ENCODERS
from assay.types import BLANKS, Batch, Output
from tests import builders


def reread(model, batch):
    """The answers for each text with one id removed, and for the whole."""
    without = torch.full((*batch.ids.shape, model.decoder.out_features), torch.nan, dtype=torch.float64)
    whole = []
    for row in range(len(batch)):
        ids = batch.ids[row, batch.mask[row]]
        whole.append(answer(model, ids))
        for place in range(len(ids)):
            without[row, place] = answer(model, torch.cat([ids[:place], ids[place + 1 :]]))
    return torch.stack(whole)[:, None], without


def answer(model, ids):
    if len(ids) == 0:  # nothing to attend to: the zero context
        return model.decoder.bias.softmax(-1)
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    return model(model.embed(batch), batch).probabilities[0]


@torch.no_grad()
def padded(model):
    """The model with padding that is not the origin."""
    model.embedding.weight[0] = 0.3
    return model


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("markers", [False, True])
@torch.no_grad()
def test_deletions_equal_reading_again_without_the_token(encoder, alignment, markers):
    model = padded(builders.model(encoder=encoder, alignment=alignment, markers=markers, classes=3))
    batch = builders.batch((7, 1, 4, 12, 2, 15), width=16)
    target = torch.tensor([2, 0, 1, 2, 0, 1])
    whole, without = reread(model, batch)
    close = {"atol": 1e-7, "rtol": 1e-6}
    distance = (whole - without).abs().sum(-1).nan_to_num() / 2
    torch.testing.assert_close(leave_one_out(model, batch, target).double(), distance, **close)
    drops = torch.stack([(whole - without)[row, :, label] for row, label in enumerate(target)]).nan_to_num()
    torch.testing.assert_close(Occlusion()(model, batch, target).double(), drops, **close)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("blank", BLANKS)
@pytest.mark.parametrize("markers", [False, True])
def test_blanks_equal_captums_ablation(encoder, blank, markers):
    model = padded(builders.model(encoder=encoder, markers=markers, classes=3))
    batch, target = builders.batch((7, 1, 4, 12, 2, 15), width=16), torch.tensor([2, 0, 1, 2, 0, 1])
    x = model.embed(batch).detach()
    features = torch.arange(16)[None, :, None].expand_as(x)
    ablation = FeatureAblation(lambda moved: model(moved, batch).probabilities)
    with torch.no_grad():
        theirs = ablation.attribute(x, model.blank(blank).expand_as(x), target, feature_mask=features)
    expected = theirs[..., 0] * batch.mask
    ours = Occlusion(blank)(model, batch, target).double()
    torch.testing.assert_close(ours, expected, atol=1e-7, rtol=1e-6)


class Linear:
    """p(class 1) is one half and a weight for each word, in each of which its embedding consists."""

    def __init__(self, weights):
        self.vectors = weights[:, None]
        self.ordinary = 4

    def embed(self, batch):
        return self.vectors[batch.ids]

    def blank(self, name):
        return torch.zeros_like(self.vectors[0])

    def __call__(self, x, batch, edit=None):
        one = 0.5 + (x[..., 0] * batch.mask).sum(-1)
        return Output(torch.stack([1 - one, one], dim=-1).log(), ())


@pytest.mark.parametrize("removal", ["delete", "zero"])
def test_on_a_linear_model_they_are_its_coefficients(removal):
    weights = torch.linspace(-0.03, 0.03, builders.WORDS, dtype=torch.float64)
    model, batch = Linear(weights), builders.batch()
    ones = torch.ones(len(batch), dtype=torch.long)
    expected = weights[batch.ids] * batch.mask
    torch.testing.assert_close(Occlusion(removal)(model, batch, ones).double(), expected, atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(Occlusion(removal)(model, batch, 1 - ones).double(), -expected, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_small_pieces_change_nothing(encoder, removal, monkeypatch):
    model, batch = builders.model(encoder=encoder), builders.batch()
    at_once = Occlusion(removal)(model, batch, batch.labels)
    monkeypatch.setitem(budget.ROOM, "versions", (13, 13))
    monkeypatch.setitem(budget.ROOM, "deleted pairs", (300, 300))
    torch.testing.assert_close(Occlusion(removal)(model, batch, batch.labels), at_once)


def test_shared_work_is_counted_as_the_part_of_the_texts_that_is_read():
    batch = builders.batch((7, 4), width=9)
    cost = {}
    for encoder in ENCODERS:
        with costs.measured() as spent:
            leave_one_out(builders.model(encoder=encoder), batch, batch.labels)
        cost[encoder] = spent.forward
        assert spent.backward == 0
    once = 2  # each text as it is
    assert cost["transformer"] == once + 7 + 4
    assert cost["lstm"] == cost["gru"] == once + 7 / 2 + 4 / 2
    assert cost["cnn"] == once + 2 * 12  # six neighbours on each side
    assert cost["average"] == once


def test_what_cannot_be_removed_so_is_refused_in_one_sentence():
    model, batch = builders.model(), builders.batch()
    with pytest.raises(AssayError, match="did you mean 'delete'"):
        Occlusion("deleted")(model, batch, batch.labels)

    class Tableless:
        def embed(self, batch):
            return model.embed(batch)

        def __call__(self, x, batch, edit=None):
            return model(x, batch)

    assert Occlusion().unfit(Tableless()) is None
    with pytest.raises(AssayError, match="cannot be used here: the model has no embedding for nothing"):
        Occlusion("mean")(Tableless(), batch, batch.labels)
