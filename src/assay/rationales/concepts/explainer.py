"""Concept sensitivity as an explainer of words."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.explainers.needs import demand
from assay.models.networks import Hierarchical
from assay.models.steering import STATES, levels, steered
from assay.models.textmodel import TextModel
from assay.rationales.concepts.directions import Direction
from assay.types import Batch, Model, of_tokens, over_tokens


@dataclass(frozen=True)
class ConceptSensitivity:
    """Directional derivative of the class's logit by each word's hidden state: ∂logit / ∂h_t · v.

    Summed over words, or over sentences where those are what moves, it is the directional derivative of TCAV.
    """

    direction: Direction

    def unfit(self, model: Model) -> str | None:
        there = isinstance(model, TextModel) and self.direction.level in levels(model)
        return None if there else f"the model has no level {self.direction.level!r}"

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
        assert isinstance(model, TextModel)
        at = steered(model, batch, self.direction.level)
        (gradients,) = torch.autograd.grad(at.logits.gather(1, target[:, None]).sum(), at.shift)
        moved = gradients @ self.direction.vector.to(gradients)
        if self.direction.level == STATES and isinstance(model, Hierarchical):
            return over_tokens(model, moved, batch)
        return of_tokens(moved, at.token_index, batch.ids.shape[1])
