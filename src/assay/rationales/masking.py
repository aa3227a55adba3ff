"""How a mask changes what is read."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor

from assay.models.erasure import baseline, gathered, left
from assay.rationales.players import Reader
from assay.types import Batch


def blended(
    x: Float[Tensor, "B T D"], z: Float[Tensor, "B T"], blank: Float[Tensor, " D"] | Float[Tensor, "B T D"]
) -> Float[Tensor, "B T D"]:
    """z x + (1 − z) blank: words that are not selected give way to a blank."""
    share = z[..., None].to(x.dtype)
    return share * x + (1 - share) * blank


def blank_of(reader: Reader, batch: Batch, name: str) -> Float[Tensor, " D"]:
    """The embedding of a blank for words of the batch."""
    return baseline(reader, batch, name)[0, 0]


def compacted(x: Float[Tensor, "B T D"], batch: Batch, z: Float[Tensor, "B T"]) -> tuple[Float[Tensor, "B W D"], Batch]:
    """The selected words alone, moved together; of a text without any, nothing is left but padding."""
    kept = (z > 0) & batch.mask
    width = max(1, int(kept.sum(-1).max()))
    positions: Int[Tensor, "B W"] = left(kept)[:, :width]
    rows = positions.new_tensor(range(len(batch)))
    return x[rows[:, None], positions], gathered(batch, rows, positions, kept)
