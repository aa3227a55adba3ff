"""Result of a self-explaining classifier: the terms whose sum is the logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from assay.rationales.units import Grouping
from assay.types import Batch

SHOWN = 5  # phrases of a text that an account has


@dataclass(frozen=True)
class Explained:
    """Terms of the logits: the whole text, its phrases, and the nearest stored phrases.

    `nearest` are indices in the store, `products` their inner products with the text.
    """

    whole: Float[Tensor, "B C"]
    phrases: Float[Tensor, "B U C"]
    neighbours: Float[Tensor, "B K C"]
    nearest: Int[Tensor, "B K"]
    products: Float[Tensor, "B K"]
    grouping: Grouping
    weights: Float[Tensor, "B T"]

    @property
    def logits(self) -> Float[Tensor, "B C"]:
        return self.whole + self.phrases.sum(1) + self.neighbours.sum(1)

    @property
    def spoken(self) -> tuple[Float[Tensor, " B"], Float[Tensor, "B U"], Float[Tensor, "B K"]]:
        """The contributions of text, phrases and stored phrases to the answer, less their mean over classes."""
        answer = self.logits.argmax(-1)
        parts = self.whole[:, None], self.phrases, self.neighbours
        apart = [each - each.mean(-1, keepdim=True) for each in parts]
        whole, phrases, stored = (
            each.gather(2, answer[:, None, None].expand(-1, each.shape[1], 1))[..., 0] for each in apart
        )
        return whole[:, 0], phrases, stored


def accounts(explained: Explained, batch: Batch, texts: Sequence[str]) -> list[dict[str, Any]]:
    """As JSON values: for each text, the contribution of the whole, its strongest phrases and the nearest stored ones.

    A phrase goes from one word up to before another; a stored one is written out, as one of `texts`.
    """
    whole, phrases, stored = (each.tolist() for each in explained.spoken)
    nearest = explained.nearest.tolist()
    owners, real = explained.grouping.owner.tolist(), explained.grouping.mask.sum(-1).tolist()
    found = []
    for row, length in enumerate(batch.lengths.tolist()):
        words = owners[row][:length]
        ends = [(words.index(unit), length - words[::-1].index(unit)) for unit in range(real[row])]
        own = [{"start": start, "stop": stop, "by": by} for (start, stop), by in zip(ends, phrases[row], strict=False)]
        near = [{"text": texts[index], "by": by} for index, by in zip(nearest[row], stored[row], strict=True)]
        found.append(
            {
                "parts": {"whole": whole[row], "phrases": sum(phrases[row]), "stored": sum(stored[row])},
                "phrases": _strongest(own)[:SHOWN],
                "stored": _strongest(near),
            }
        )
    return found


def _strongest(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(said, key=lambda each: -each["by"])
