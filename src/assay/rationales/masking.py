"""Applies masks to embeddings: by interpolation towards a blank, or by deletion."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from assay.models.erasure import baseline, gathered, left
from assay.rationales.players import Reader
from assay.types import Batch


def blended(
    x: Float[Tensor, "B T D"], z: Float[Tensor, "B T"], blank: Float[Tensor, " D"] | Float[Tensor, "B T D"]
) -> Float[Tensor, "B T D"]:
    """Interpolates by the mask: z x + (1 − z) blank."""
    share = z[..., None].to(x.dtype)
    return share * x + (1 - share) * blank


def blank_of(reader: Reader, batch: Batch, name: str) -> Float[Tensor, " D"]:
    """The blank's embedding, in place of words of the batch."""
    return baseline(reader, batch, name)[0, 0]


def compacted(x: Float[Tensor, "B T D"], batch: Batch, z: Float[Tensor, "B T"]) -> tuple[Float[Tensor, "B W D"], Batch]:
    """Deletes unselected words and closes the gaps; a text without selected words is only padding."""
    kept = (z > 0) & batch.mask
    width = max(1, int(kept.sum(-1).max()))
    positions: Int[Tensor, "B W"] = left(kept)[:, :width]
    rows = positions.new_tensor(range(len(batch)))
    return x[rows[:, None], positions], gathered(batch, rows, positions, kept)
