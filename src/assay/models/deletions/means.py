"""Attention-weighted means accumulated item by item: running sums for softmax, stored scores for other projections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.models.encoders import reordered
from assay.models.projections import Projection


class Pooled(ABC):
    """An attention-weighted mean over the items that N lanes have received so far."""

    @abstractmethod
    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        """Adds one item to the first lanes; an item of the lowest score has no weight beside any other."""

    @abstractmethod
    def joined(self, other: Pooled) -> Pooled:
        """The mean over the items of both; both must have the same projection."""

    @abstractmethod
    def reordered(self, order: Int[Tensor, "R N"]) -> Pooled:
        """Permutes the lanes of each row."""

    @abstractmethod
    def mean(self) -> Float[Tensor, "R N P"]:
        """The mean, in float32 at least; 0 where a lane has no item."""


@dataclass
class Means(Pooled):
    """Softmax: Σ exp(s − peak) and Σ exp(s − peak) v of each lane over the scores s and values v so far."""

    peak: Float[Tensor, "R N"]
    total: Float[Tensor, "R N"]
    value: Float[Tensor, "R N P"]

    @classmethod
    def of_nothing(cls, rows: int, lanes: int, like: Float[Tensor, "R 1 P"]) -> Means:
        """Lanes without any item yet; in float32 at least."""
        zeros = like.new_zeros(rows, lanes, like.shape[-1], dtype=torch.promote_types(like.dtype, torch.float32))
        return cls(torch.full_like(zeros[..., 0], torch.finfo(like.dtype).min), torch.zeros_like(zeros[..., 0]), zeros)

    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        lanes = slice(None, score.shape[1])
        peak, total, mean = self.peak[:, lanes], self.total[:, lanes], self.value[:, lanes]
        highest = torch.maximum(peak, score)
        shrunk, gained = (peak - highest).exp_(), (score - highest).exp_()
        total.mul_(shrunk).add_(gained)
        mean.mul_(shrunk[..., None]).addcmul_(gained[..., None], value)
        peak.copy_(highest)

    def joined(self, other: Pooled) -> Means:
        assert isinstance(other, Means)
        highest = torch.maximum(self.peak, other.peak)
        own, others = (self.peak - highest).exp(), (other.peak - highest).exp()
        value = self.value * own[..., None] + other.value * others[..., None]
        return Means(highest, self.total * own + other.total * others, value)

    def reordered(self, order: Int[Tensor, "R N"]) -> Means:
        return Means(self.peak.gather(1, order), self.total.gather(1, order), reordered(self.value, order))

    def mean(self) -> Float[Tensor, "R N P"]:
        return self.value / self.total.clamp(min=torch.finfo(self.total.dtype).tiny)[..., None]


@dataclass
class Kept(Pooled):
    """Any projection: all scores and values so far, of which the mean is computed at the end."""

    project: Projection
    lanes: int
    scores: list[Float[Tensor, "R N"]] = field(default_factory=list)
    values: list[Float[Tensor, "R N P"]] = field(default_factory=list)

    def add(self, score: Float[Tensor, "R n"], value: Float[Tensor, "R n P"]) -> None:
        more = self.lanes - score.shape[1]
        self.scores.append(F.pad(score, (0, more), value=torch.finfo(score.dtype).min))
        self.values.append(F.pad(value, (0, 0, 0, more)))

    def joined(self, other: Pooled) -> Kept:
        assert isinstance(other, Kept)
        return Kept(self.project, self.lanes, self.scores + other.scores, self.values + other.values)

    def reordered(self, order: Int[Tensor, "R N"]) -> Kept:
        scores = [score.gather(1, order) for score in self.scores]
        return Kept(self.project, self.lanes, scores, [reordered(value, order) for value in self.values])

    def mean(self) -> Float[Tensor, "R N P"]:
        scores = torch.stack(self.scores, dim=-1)
        wide = torch.promote_types(scores.dtype, torch.float32)
        weights = self.project(scores.to(wide), scores > torch.finfo(scores.dtype).min)
        total = torch.zeros_like(self.values[0], dtype=wide)
        for position, value in enumerate(self.values):
            total.addcmul_(weights[..., position, None], value)
        return total
