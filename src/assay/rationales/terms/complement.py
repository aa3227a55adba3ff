"""Loss of predictive words left in the complement."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play
from assay.rationales.terms.answers import AnswerCrossEntropy


@dataclass(frozen=True)
class CriticMargin:
    """Hinge loss max(0, cost of the predictor − cost of the critic + margin), the critic reading the rest.

    Yu et al. (2019).
    """

    margin: float = 2.0
    critic: str = "critic"
    mask: int = 0

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        known, left = AnswerCrossEntropy(mask=self.mask)(play), AnswerCrossEntropy(self.critic, "rest", self.mask)(play)
        return (known - left + self.margin).relu()
