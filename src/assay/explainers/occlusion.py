"""What changes when a token is taken away."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.metrics.divergence import tvd
from assay.models.classifier import Classifier
from assay.models.deletions import deletion_logits, shares_work
from assay.types import Batch, Model

TOKENS = 32_768  # read at once
PAIRS = {"cpu": 1 << 16, "cuda": 1 << 22}  # of a deleted and a remaining token, held at once: caches are small


@torch.no_grad()
def leave_one_out(model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
    """The total variation distance between the answers with and without each token (Jain and Wallace, 2019)."""
    x = model.embed(batch)
    whole = model(x, batch).probabilities
    without = _shared(model, x, batch) if shares_work(model) else _each(model, x, batch)
    return tvd(without.softmax(-1), whole[:, None].to(without)).float() * batch.mask


def _shared(model: Model, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]:
    """As few rows at a time as keep the square of the length within bounds."""
    rows = max(1, PAIRS.get(x.device.type, 1 << 20) // batch.ids.shape[1] ** 2)
    parts = [slice(start, start + rows) for start in range(0, len(batch), rows)]
    return torch.cat([deletion_logits(cast(Classifier, model), x[part], batch[part]).float() for part in parts])


def _each(model: Model, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]:
    """Every text without every token, read from the start, as many at once as memory allows."""
    tokens = x.shape[1]
    places = torch.arange(tokens, device=x.device)
    width = max(1, tokens - 1)
    kept = (places[:width] + (places[:width] >= places[:, None])).clamp(max=tokens - 1)  # [T, T-1]
    example, deleted = batch.mask.nonzero(as_tuple=True)
    rows = max(1, TOKENS // width)
    answers: list[Tensor] = []
    for start in range(0, len(example), rows):
        chosen, order = example[start : start + rows], kept[deleted[start : start + rows]]
        shorter = replace(
            batch[chosen],
            ids=batch.ids[chosen[:, None], order],
            mask=places[:width] < batch.lengths[chosen, None] - 1,
            truth=None,
        )
        answers.append(model(x[chosen[:, None], order], shorter).logits.float())
    logits = torch.cat(answers)
    return logits.new_zeros(len(batch), tokens, logits.shape[-1]).index_put((example, deleted), logits)
