"""Shared by audits of stacked self-attention: whether it can be edited, and predictions under edits in every layer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.audits.cases import Case
from assay.explainers.needs import no_layers, no_pooling
from assay.models import budget
from assay.models.erasure import capacity, extents, query_lengths
from assay.models.hf_body import Body
from assay.types import Batch, Edit, Model, PooledModel, StackedModel


def stacked(model: Model) -> bool:
    """Whether the prediction comes from a stack of attention layers without attention pooling."""
    return no_layers(model) is None and not isinstance(model, PooledModel)


def without_attention(case: Case) -> str | None:
    """Why audits that edit attention, pooling or stacked, do not apply, or None."""
    return no_pooling(case.model) if not stacked(case.model) else _closed(case.model)


def without_stack(case: Case) -> str | None:
    """Why audits that edit the attention of layers do not apply, or None."""
    if not stacked(case.model):
        return no_layers(case.model) or "one attention pools the words; the audits of that attention change it"
    return _closed(case.model)


def _closed(model: Model) -> str | None:
    return model.traits.unedited if isinstance(model, Body) else None


def of_stack(case: Case) -> StackedModel:
    """The stacked model of a case."""
    assert isinstance(case.model, StackedModel)
    return case.model


def widths(batch: Batch) -> Int[Tensor, " B"]:
    """Approximate sequence lengths of the texts in a layer."""
    return extents(batch).sum(-1) + query_lengths(batch)


def parts(case: Case) -> Iterator[slice]:
    """The batch in parts whose attention weights fit into memory."""
    device, longest = case.batch.mask.device, max(1, int(widths(case.batch).max()))
    each = of_stack(case).layers * longest**2
    step = max(1, min(budget.room(device, "edited stack", each), capacity(case.model, device) // longest))
    for start in range(0, len(case.batch), step):
        yield slice(start, start + step)


@torch.no_grad()
def answers(case: Case, edits: Iterator[Edit], versions: int) -> Float[Tensor, "B N C"]:
    """Probabilities of edited versions of each text."""
    batch, device = case.batch, case.batch.mask.device
    x = case.model.embed(batch)
    example = torch.arange(len(batch), device=device).repeat_interleave(versions)
    step = max(1, capacity(case.model, device) // max(1, int(widths(batch).max())))
    groups = [example[start : start + step] for start in range(0, len(example), step)]
    found = [case.model(x[rows], batch[rows], next(edits)).probabilities for rows in groups]
    return torch.cat(found).reshape(len(batch), versions, -1)


def seeds(seed: int) -> Iterator[int]:
    """A seed for each time that chance is needed."""
    return count(seed * 100_003)
