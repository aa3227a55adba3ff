"""A cache of the probabilities of versions of a few texts."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.models.erasure import version_probabilities
from assay.types import Batch, Model


class Versions:
    """The cached probabilities of versions of texts, each text with the class to explain."""

    def __init__(self, model: Model, batch: Batch, target: Int[Tensor, " B"], removal: str = "delete") -> None:
        self.model, self.batch, self.target, self.removal = model, batch, target, removal
        self._numbers: dict[bytes, int] = {}
        self._answers: Float[Tensor, "K C"] | None = None

    def __len__(self) -> int:
        """The number of versions computed."""
        return len(self._numbers)

    def probabilities(self, example: Int[Tensor, " N"], kept: Bool[Tensor, "N T"]) -> Float[Tensor, "N C"]:
        """The probabilities, in float64, of versions of the texts `example` with only the `kept` words left."""
        kept = kept & self.batch.mask[example]
        before = len(self._numbers)
        numbers = np.array(
            [self._numbers.setdefault(name, len(self._numbers)) for name in _names(example, kept)], dtype=np.int64
        )
        asked, first = np.unique(numbers, return_index=True)
        new = torch.as_tensor(first[asked >= before], device=kept.device)
        if len(new):
            read = version_probabilities(self.model, self.batch, example[new], kept[new], self.removal).double()
            self._answers = read if self._answers is None else torch.cat([self._answers, read])
        assert self._answers is not None
        return self._answers[torch.as_tensor(numbers, device=kept.device)]

    def worth(self, example: Int[Tensor, " N"], kept: Bool[Tensor, "N T"]) -> Float[Tensor, " N"]:
        """v(S) = p(class | only the words S are left)."""
        return self.probabilities(example, kept).gather(1, self.target[example, None])[:, 0]

    def lead(self, example: Int[Tensor, " N"], kept: Bool[Tensor, "N T"]) -> Float[Tensor, " N"]:
        """p(class) minus the largest p of another class, with only these words left."""
        answers, column = self.probabilities(example, kept), self.target[example, None]
        return (answers.gather(1, column) - answers.scatter(1, column, 0.0).amax(1, keepdim=True))[:, 0]


def _names(example: Int[Tensor, " N"], kept: Bool[Tensor, "N T"]) -> list[bytes]:
    """A byte string per version, as the cache key."""
    texts = example.cpu().numpy().astype(np.int32)[:, None].view(np.uint8)
    packed = np.concatenate([texts, np.packbits(kept.cpu().numpy(), axis=1)], axis=1)
    return packed.view(f"V{packed.shape[1]}")[:, 0].tolist() if len(packed) else []
