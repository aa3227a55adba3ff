"""Deletions in rows of tokens, in the way that suits what encodes them, and what that costs."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.models.deletions.readings import Itself, Reading, Text
from assay.models.deletions.recurrent import recurrent
from assay.models.deletions.reread import reread
from assay.models.deletions.windowed import neighbours, windowed
from assay.models.encoders import Average, Convolution, Encoder, Nothing, Recurrent
from assay.models.projections import Projection, softmax

PAIRS = {"cpu": 1 << 16, "cuda": 1 << 22}  # of a removed and a remaining token, held at once: caches are small
FEW = 16  # numbers of a pair, which cost no more than the rest of it
KEPT = 1 << 26  # numbers of one row, beyond which a sentence is read again rather than kept


def rows_at_once(width: int, device: torch.device, project: Projection, size: int) -> int:
    """How many rows of so many tokens keep the square of the length within bounds, times the size of kept values."""
    pairs = PAIRS.get(device.type, 1 << 20) // (1 if project is softmax else max(1, size // FEW))
    return max(1, pairs // max(1, width) ** 2)


def without_each(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The value that attention gives without each token, or with a blank there; any number where there is no token."""
    if isinstance(reading.encoder, Recurrent) and not _too_long(reading, text):
        return recurrent(reading, text, blank)
    if isinstance(reading.encoder, Convolution | Average | Nothing):
        return windowed(reading, text, blank)
    return reread(reading, text, blank)


def _too_long(reading: Reading, text: Text) -> bool:
    """Whether the states of a sentence without each of its words are too many to be kept for a projection."""
    kept = text.mask.shape[1] * text.states.shape[1] * text.states.shape[2]
    return reading.project is not softmax and isinstance(reading.value, Itself) and kept > KEPT


def tokens_read(encoder: Encoder, lengths: Int[Tensor, " R"], blank: Tensor | None) -> Float[Tensor, " R"]:
    """How many tokens are read for all deletions in rows of these lengths, the whole row once among them."""
    count = lengths.double()
    if isinstance(encoder, Recurrent):  # for each token what stands on one side of it: half the row
        return count + count * count / 2
    if isinstance(encoder, Convolution | Average | Nothing):
        return count * (1 + len(neighbours(encoder, blank)))
    return count * (count if blank is None else count + 1)
