"""Means under a softmax that are made item by item, so that no item need be kept."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.models.encoders import reordered


@dataclass
class Means:
    """For each of N lanes Σ exp(s − peak) and Σ exp(s − peak) v over the scores s and values v so far."""

    peak: Float[Tensor, "R N"]
    total: Float[Tensor, "R N"]
    value: Float[Tensor, "R N P"]

    @classmethod
    def of_nothing(cls, rows: int, lanes: int, like: Float[Tensor, "R 1 P"]) -> Means:
        """Those of lanes that have no item yet; in single precision at least."""
        zeros = like.new_zeros(rows, lanes, like.shape[-1], dtype=torch.promote_types(like.dtype, torch.float32))
        return cls(torch.full_like(zeros[..., 0], torch.finfo(like.dtype).min), torch.zeros_like(zeros[..., 0]), zeros)

    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        """One more item for the first lanes; an item of the lowest score counts nothing beside any other."""
        lanes = slice(None, score.shape[1])
        peak, total, mean = self.peak[:, lanes], self.total[:, lanes], self.value[:, lanes]
        highest = torch.maximum(peak, score)
        shrunk, gained = (peak - highest).exp_(), (score - highest).exp_()
        total.mul_(shrunk).add_(gained)
        mean.mul_(shrunk[..., None]).addcmul_(gained[..., None], value)
        peak.copy_(highest)

    def joined(self, other: Means) -> Means:
        """The means over the items of both."""
        highest = torch.maximum(self.peak, other.peak)
        own, others = (self.peak - highest).exp(), (other.peak - highest).exp()
        value = self.value * own[..., None] + other.value * others[..., None]
        return Means(highest, self.total * own + other.total * others, value)

    def reordered(self, order: Int[Tensor, "R N"]) -> Means:
        """The lanes of each row in another order."""
        return Means(self.peak.gather(1, order), self.total.gather(1, order), reordered(self.value, order))

    def mean(self) -> Float[Tensor, "R N P"]:
        return self.value / self.total.clamp(min=torch.finfo(self.total.dtype).tiny)[..., None]
