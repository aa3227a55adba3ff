"""Cross-entropy of a reader's prediction."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.rationales.play import Play


@dataclass(frozen=True)
class AnswerCrossEntropy:
    """The cross-entropy of a reader on a view; with `stopped`, no gradient reaches the mask.

    The right answer is the label, or where it is `guessed`, the class that masks depend on (Yu et al., 2019).
    """

    player: str = "predictor"
    view: str = "selected"
    mask: int = 0
    stopped: bool = False
    guessed: bool = False

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        logits = play.read(self.player, self.view, self.mask, self.stopped).logits
        wanted = play.condition if self.guessed else play.batch.labels
        assert wanted is not None
        return F.cross_entropy(logits, wanted, reduction="none")
