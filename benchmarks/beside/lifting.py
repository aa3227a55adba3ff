"""DeepLIFT where both have it: captum has no rule for attention, so the network averages its words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from assay.costs import measured as counted
from assay.explainers.relevance import DeepLift
from assay.models.config import Architecture
from assay.models.network import Classifier
from assay.types import Batch
from benchmarks.beside.turns import Scores, Text, Way

__all__ = ["WAYS", "counted"]

WORDS, TEXTS, LENGTH = 5000, 64, 30


class Mean(nn.Module):
    def forward(self, states: Tensor) -> Tensor:
        return states.mean(1)


def network() -> tuple[Classifier, Batch]:
    """Words, a hidden layer, their plain mean and a decoder; and random texts."""
    torch.manual_seed(0)
    model = Classifier(Architecture(encoder="average", alignment="dot"), WORDS, 2).eval()
    with torch.no_grad():
        model.alignment.project.weight.zero_()
    ids = torch.randint(4, WORDS, (TEXTS, LENGTH))
    return model, Batch(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros(TEXTS, dtype=torch.long))


def ours(folder: Path) -> Way:
    model, batch = network()

    def run(texts: Sequence[Text]) -> Scores:
        scores: Scores = DeepLift()(model, batch, batch.labels).tolist()
        return scores

    return run


def captum(folder: Path) -> Way:
    from captum import attr

    model, batch = network()
    margin = nn.Linear(model.decoder.in_features, 1, bias=False)
    margin.weight = nn.Parameter(model.decoder.weight[:1] - model.decoder.weight[1:])
    method = attr.DeepLift(nn.Sequential(model.encoder.projection, nn.ReLU(), Mean(), margin))

    def run(texts: Sequence[Text]) -> Scores:
        x = model.embed(batch).detach().requires_grad_()
        scores: Scores = method.attribute(x, torch.zeros_like(x), target=0).sum(-1).tolist()
        return scores

    return run


WAYS = {"ours": ours, "captum": captum}
