"""Leave-one-out for attention over the words of a text, with or without a query."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay import costs
from assay.models.deletions.readings import Text, of_text
from assay.models.deletions.rows import rows_at_once, tokens_read, without_each
from assay.models.network import Classifier, Paired
from assay.types import Batch

Logits = tuple[Float[Tensor, "B C"], Float[Tensor, "B T C"]]
"""Of each text as it is, and of each without its t-th token."""


def word_deletions(
    model: Classifier | Paired, x: Float[Tensor, "B T D"], batch: Batch, blank: Float[Tensor, " D"] | None
) -> Logits:
    """The logits of each text, and without its t-th token, or with a blank there."""
    rows = rows_at_once(batch.ids.shape[1], x.device, model.project, model.decoder.out_features)
    parts = [slice(start, start + rows) for start in range(0, len(batch), rows)]
    found = [_some(model, x[part], batch[part], blank) for part in parts]
    whole, logits = (torch.cat(each) for each in zip(*found, strict=True))
    alone = (batch.lengths < 2) & (blank is None)
    if alone.any():
        logits[alone] = _nothing_left(model, x[alone], batch[alone.nonzero()[:, 0]])[:, None]
    return whole, logits


def _some(model: Classifier | Paired, x: Tensor, batch: Batch, blank: Tensor | None) -> Logits:
    """The same for a few texts, of two words at least where one is deleted."""
    markers = int(model.architecture.markers)
    around, mask = model.surrounded(x, batch.mask) if markers else (x, batch.mask)
    seen = nn.functional.pad(batch.mask, (markers, markers))
    if costs.current() is not None:
        lengths = mask.sum(-1)
        costs.add(forward=float((tokens_read(model.encoder, lengths, blank) / lengths.clamp(min=1)).sum()))
    reading = of_text(model, batch)
    text = Text(around, mask, seen, reading.states(around, mask))
    without = without_each(reading, text, blank)[:, markers : markers + x.shape[1]]
    return reading.mean(text.states, seen), without


def _nothing_left(model: Classifier | Paired, x: Tensor, batch: Batch) -> Float[Tensor, "B C"]:
    """The logits of a text without any word: those of the zero context vector."""
    empty = replace(batch, mask=torch.zeros_like(batch.mask))
    states = model.states(x, empty)
    return model.decode(states, torch.zeros_like(states[..., 0]))
