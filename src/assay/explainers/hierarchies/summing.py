"""Phrase scores as sums of token scores."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.explainers.hierarchies.scorers import Read
from assay.explainers.integrated import IntegratedGradients
from assay.types import Batch, Model


@dataclass(frozen=True)
class SummedGradients:
    """Integrated gradients summed over a phrase's words: of the whole text p(text) − p(baseline).

    No phrase is more than its words, so words never work together here.
    """

    baseline: str = "zero"
    tolerance: float = 1e-2

    def __post_init__(self) -> None:
        _ = self._words  # refuses options that mean nothing

    @property
    def _words(self) -> IntegratedGradients:
        return IntegratedGradients(self.baseline, self.tolerance)

    def unfit(self, model: Model) -> str | None:
        return self._words.unfit(model)

    def ready(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Read:
        words = self._words(model, batch, target).detach().double() * batch.mask
        return lambda chosen: (chosen.to(words) @ words[..., None])[..., 0]

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        return self.ready(model, batch, target)(chosen)
