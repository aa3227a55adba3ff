"""The attribution of a self-explaining model, as the model itself computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.needs import demand
from assay.types import Batch, Model, at_least_float32


@runtime_checkable
class ExplainingModel(Model, Protocol):
    """A model that computes each word's contribution to each logit."""

    def relevance(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]: ...


@dataclass(frozen=True)
class OwnRelevance:
    """Each word's contribution to the class's logit as computed by a self-explaining model."""

    def unfit(self, model: Model) -> str | None:
        return None if isinstance(model, ExplainingModel) else "the model does not explain itself"

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        assert isinstance(model, ExplainingModel)
        relevance = model.relevance(model.embed(batch), batch)
        chosen = target[:, None, None].expand(-1, relevance.shape[1], 1)
        return at_least_float32(relevance.gather(2, chosen)[..., 0]) * batch.mask
