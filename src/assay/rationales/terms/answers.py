"""Costs of wrong answers."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.rationales.play import Play


@dataclass(frozen=True)
class Task:
    """The cross-entropy of what a reader makes of a view; with `stopped`, the mask learns nothing from it."""

    player: str = "predictor"
    view: str = "selected"
    mask: int = 0
    stopped: bool = False

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        logits = play.read(self.player, self.view, self.mask, self.stopped).logits
        return F.cross_entropy(logits, play.batch.labels, reduction="none")
