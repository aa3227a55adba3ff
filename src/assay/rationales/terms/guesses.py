"""Costs of answers that are not what a guide has guessed."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.rationales.play import Play


@dataclass(frozen=True)
class Guess:
    """The cross-entropy of what a reader makes of a view with the class that masks depend on (Yu et al., 2019)."""

    player: str = "predictor"
    view: str = "selected"
    mask: int = 0
    stopped: bool = False

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        assert play.condition is not None
        logits = play.read(self.player, self.view, self.mask, self.stopped).logits
        return F.cross_entropy(logits, play.condition, reduction="none")
