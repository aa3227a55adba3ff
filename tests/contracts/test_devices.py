"""One implementation for every device: what a GPU says equals what a CPU says."""

from __future__ import annotations

import pytest
import torch

from assay.audits import AUDITS
from assay.audits.cases import Case
from assay.explainers import EXPLAINERS
from assay.models.encoders import ENCODERS
from tests import builders


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPLAINERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_gpu_gives_the_same_scores(name, encoder):
    model, batch = builders.model(encoder=encoder, markers=True), builders.batch()
    here = EXPLAINERS[name](model, batch, batch.labels)
    moved, there = model.to("cuda"), batch.to("cuda")
    torch.testing.assert_close(EXPLAINERS[name](moved, there, there.labels).cpu(), here, atol=1e-6, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPLAINERS)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_gpu_works_in_half_precision(name, encoder):
    model = builders.model(encoder=encoder, dtype=torch.bfloat16).to("cuda")
    batch = builders.batch().to("cuda")
    scores = EXPLAINERS[name](model, batch, batch.labels)
    assert scores.isfinite().all() and scores.dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.parametrize("name", AUDITS)
def test_a_gpu_gives_the_same_audit(name):
    model, batch = builders.model(), builders.batch((7, 1, 4, 12, 30))
    object.__setattr__(batch, "truth", batch.mask & (batch.ids % 3 == 0))

    def measured(model, batch):
        scores = {title: explainer(model, batch, batch.labels) for title, explainer in EXPLAINERS.items()}
        return AUDITS[name](Case(model, batch, scores)).measures

    here, there = measured(model, batch), measured(model.to("cuda"), batch.to("cuda"))
    for measure, values in here.items():
        torch.testing.assert_close(
            torch.from_numpy(there[measure]), torch.from_numpy(values), atol=1e-5, rtol=1e-4, equal_nan=True
        )
