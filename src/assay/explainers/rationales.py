"""The rationale of a model that selects words, as an explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.needs import demand
from assay.types import Batch, Model, SelectingModel


@dataclass(frozen=True)
class Rationale:
    """The model's selected words, ranked by selection probability, above all others; for any class."""

    class_free: ClassVar[bool] = True

    def unfit(self, model: Model) -> str | None:
        selecting = isinstance(model, SelectingModel)
        return None if selecting else "the model does not select the words that it reads"

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        assert isinstance(model, SelectingModel)
        selection = model.selection(model.embed(batch), batch)
        return (selection.kept + selection.chance.float()) / 2 * batch.mask
