"""Leave-one-out against reading each shorter text again, one at a time."""

from __future__ import annotations

import pytest
import torch

from assay.explainers import occlusion
from assay.explainers.occlusion import leave_one_out
from assay.models.attention import ALIGNMENTS
from assay.models.encoders import ENCODERS
from assay.types import Batch
from tests import builders


def reread(model, batch):
    """The distance between the answers for the text and for the text with one id removed."""
    scores = torch.zeros(batch.ids.shape, dtype=torch.float64)
    for row in range(len(batch)):
        ids = batch.ids[row, batch.mask[row]]
        whole = answer(model, ids)
        for place in range(len(ids)):
            shorter = torch.cat([ids[:place], ids[place + 1 :]])
            scores[row, place] = 0.5 * (answer(model, shorter) - whole).abs().sum()
    return scores


def answer(model, ids):
    if len(ids) == 0:  # nothing to attend to: the zero context
        return model.decoder.bias.softmax(-1)
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    return model(model.embed(batch), batch).probabilities[0]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("markers", [False, True])
@torch.no_grad()
def test_it_equals_reading_again_without_the_token(encoder, alignment, markers):
    model = builders.model(encoder=encoder, alignment=alignment, markers=markers, classes=3)
    batch = builders.batch((7, 1, 4, 12, 2), width=14)
    torch.testing.assert_close(
        leave_one_out(model, batch, batch.labels).double(), reread(model, batch), atol=1e-7, rtol=1e-6
    )


@pytest.mark.parametrize("encoder", ENCODERS)
def test_small_pieces_change_nothing(encoder, monkeypatch):
    model, batch = builders.model(encoder=encoder), builders.batch()
    at_once = leave_one_out(model, batch, batch.labels)
    monkeypatch.setattr(occlusion, "TOKENS", 13)
    monkeypatch.setattr(occlusion, "PAIRS", {"cpu": 300})
    torch.testing.assert_close(leave_one_out(model, batch, batch.labels), at_once)
