"""Chooses the leave-one-out algorithm by encoder, and counts what it costs."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.models import budget
from assay.models.deletions.readings import Itself, Reading, Text
from assay.models.deletions.recurrent import recurrent
from assay.models.deletions.reread import reread
from assay.models.deletions.windowed import neighbours, windowed
from assay.models.encoders import Average, Convolution, Encoder, Nothing, Recurrent
from assay.models.projections import Projection, softmax

FEW = 16  # numbers of a pair, which cost no more than the rest of it
KEPT = 1 << 26  # numbers of one row, beyond which a sentence is read again rather than kept


def rows_at_once(width: int, device: torch.device, project: Projection, size: int) -> int:
    """The number of rows of a width whose pairwise values fit into memory at once."""
    numbers = 1 if project is softmax else max(1, size // FEW)
    return budget.room(device, "deleted pairs", numbers * width**2)


def without_each(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank there; arbitrary where there is no token."""
    if isinstance(reading.encoder, Recurrent) and not _too_long(reading, text):
        return recurrent(reading, text, blank)
    if isinstance(reading.encoder, Convolution | Average | Nothing):
        return windowed(reading, text, blank)
    return reread(reading, text, blank)


def _too_long(reading: Reading, text: Text) -> bool:
    """Whether the leave-one-out states of a sentence are too many to keep for a projection other than softmax."""
    kept = text.mask.shape[1] * text.states.shape[1] * text.states.shape[2]
    return reading.project is not softmax and isinstance(reading.value, Itself) and kept > KEPT


def tokens_read(encoder: Encoder, lengths: Int[Tensor, " R"], blank: Tensor | None) -> Float[Tensor, " R"]:
    """The number of tokens encoded for all deletions in rows of these lengths, the whole row included once."""
    count = lengths.double()
    if isinstance(encoder, Recurrent):  # for each token what stands on one side of it: half the row
        return count + count * count / 2
    if isinstance(encoder, Convolution | Average | Nothing):
        return count * (1 + len(neighbours(encoder, blank)))
    return count * (count if blank is None else count + 1)
