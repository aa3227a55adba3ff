"""Leave-one-out by recomputation, for encoders in which every hidden state depends on all tokens."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.models import budget
from assay.models.deletions.readings import Reading, Text
from assay.models.erasure import left


def reread(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank in its position; all rows have one length."""
    row, removed = text.mask.nonzero(as_tuple=True)
    at_once = budget.room(text.x.device, "versions", text.x.shape[1])
    parts = [
        _without(reading, text, blank, (row[start : start + at_once], removed[start : start + at_once]))
        for start in range(0, len(row), at_once)
    ]
    values = torch.cat(parts)
    return values.new_zeros(*text.mask.shape, values.shape[-1]).index_put((row, removed), values)


def _without(
    reading: Reading, text: Text, blank: Tensor | None, versions: tuple[Tensor, Tensor]
) -> Float[Tensor, "N P"]:
    row, removed = versions
    x, seen = text.x[row], text.seen[row]
    gone = torch.arange(x.shape[1], device=x.device) == removed[:, None]
    if blank is None:
        order = left(seen & ~gone)
        x, seen = x.gather(1, order[..., None].expand_as(x)), (seen & ~gone).gather(1, order)
    else:
        x = torch.where(gone[..., None], blank, x)
    return reading.mean(reading.states(x, seen), seen)
