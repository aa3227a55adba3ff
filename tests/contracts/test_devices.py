"""One implementation for every device: what a GPU says equals what a CPU says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.audits import AUDITS
from assay.audits.cases import Case
from assay.explainers import EXPLAINERS
from assay.explainers.needs import unfit
from tests import builders

FEW = ("attention", "gradient", "occlusion", "lrp", "random")


def explained(name, model, batch):
    if (reason := unfit(EXPLAINERS[name], model)) is not None:
        pytest.skip(reason)
    return EXPLAINERS[name](model, batch, batch.labels)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPLAINERS)
@pytest.mark.parametrize("kind", builders.KINDS)
def test_a_gpu_gives_the_same_scores(name, kind):
    model, batch = builders.kind(kind, markers=kind in builders.MARKED), builders.distinct(builders.texts())
    here = explained(name, model, batch)
    there = explained(name, model.to("cuda"), batch.to("cuda")).cpu()
    torch.testing.assert_close(there, here, atol=1e-6, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPLAINERS)
@pytest.mark.parametrize("kind", builders.KINDS)
def test_a_gpu_works_in_half_precision(name, kind):
    model = builders.kind(kind, dtype=torch.bfloat16).to("cuda")
    scores = explained(name, model, builders.texts().to("cuda"))
    assert scores.isfinite().all() and scores.dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.parametrize("name", AUDITS)
@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("kind", ["lstm", "hierarchical-gru", "paired-lstm"])
def test_a_gpu_gives_the_same_audit(name, planted, kind):
    model, batch = builders.kind(kind), builders.texts((7, 1, 4, 12, 30))
    batch = replace(batch, truth=batch.mask & (batch.ids % 3 == 0))

    def measured(model, batch):
        explainers = {title: EXPLAINERS[title] for title in FEW}
        scores = {title: explainer(model, batch, batch.labels) for title, explainer in explainers.items()}
        case = Case(model, batch, scores, explainers=explainers, planted=planted)
        if (reason := AUDITS[name].unfit(case)) is not None:
            pytest.skip(reason)
        return AUDITS[name](case).measures

    here, there = measured(model, batch), measured(model.to("cuda"), batch.to("cuda"))
    for measure, values in here.items():
        torch.testing.assert_close(
            torch.from_numpy(there[measure]), torch.from_numpy(values), atol=1e-5, rtol=1e-4, equal_nan=True
        )


def transformer(kind, dtype=torch.float64):
    pretrained = pytest.importorskip("tests.pretrained")
    made = pretrained.attentive(dtype=dtype) if kind == "attentive" else pretrained.pretrained(kind, dtype=dtype)
    return made, pretrained.batch()


TRANSFORMERS = pytest.mark.parametrize("kind", ["bert", "gpt2", "modernbert", "deberta-v2", "attentive"])


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPLAINERS)
@TRANSFORMERS
def test_a_gpu_gives_the_same_scores_of_transformers(name, kind):
    model, batch = transformer(kind)
    here = explained(name, model, batch)
    there = explained(name, model.to("cuda"), batch.to("cuda")).cpu()
    torch.testing.assert_close(there, here, atol=1e-5, rtol=1e-4, check_dtype=False)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXPLAINERS)
@TRANSFORMERS
def test_a_gpu_explains_transformers_in_half_precision(name, kind):
    model, batch = transformer(kind, torch.bfloat16)
    scores = explained(name, model.to("cuda"), batch.to("cuda"))
    assert scores.isfinite().all() and scores.dtype == torch.float32
