"""What a model that explains itself says of its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.needs import demand
from assay.types import Batch, Model, at_least_float32


@runtime_checkable
class ExplainingModel(Model, Protocol):
    """A model that says what each word adds to each logit."""

    def relevance(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]: ...


@dataclass(frozen=True)
class OwnRelevance:
    """What each word adds to the logit of the class by the model's own account: of its concepts, or of its phrases."""

    def unfit(self, model: Model) -> str | None:
        return None if isinstance(model, ExplainingModel) else "the model does not explain itself"

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        assert isinstance(model, ExplainingModel)
        relevance = model.relevance(model.embed(batch), batch)
        chosen = target[:, None, None].expand(-1, relevance.shape[1], 1)
        return at_least_float32(relevance.gather(2, chosen)[..., 0]) * batch.mask
