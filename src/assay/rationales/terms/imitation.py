"""Imitation of a teacher's saliency."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.rationales.decoding import Decoding
from assay.rationales.play import Play
from assay.rationales.relaxations.saliency import Saliency


@dataclass(frozen=True)
class Imitation:
    """The mean binary cross-entropy of probabilities with the decoded saliency of the teacher (Jain et al., 2020)."""

    saliency: str = "attention"
    decoding: Decoding = field(default_factory=Decoding)

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        mask = play.grouping.mask
        wanted = self.decoding(Saliency().chance(play.salient(self.saliency), mask), mask)
        costs = F.binary_cross_entropy(play.drawn.chance, wanted.expand_as(play.drawn.chance), reduction="none")
        return (costs * mask[:, None]).mean(1).sum(-1) / mask.sum(-1)
