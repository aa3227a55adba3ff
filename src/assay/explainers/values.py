"""Value-based explanations of a self-attention layer: norms of weighted values, and value zeroing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay import costs
from assay.explainers.layer_positions import read_through, to_positions, to_tokens
from assay.explainers.needs import demand, no_layers
from assay.models import budget
from assay.models.stages import Stage, changed, recorded, unstaged
from assay.types import Batch, Model, StackedModel, at_least_float32

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]


@dataclass(frozen=True)
class ValueZeroing:
    """The share of each word in what is read, if a layer mixes what its outputs lose without a value.

    Mohebbi et al. (2023): the value of position j is set to 0 in one layer alone, and the cosine distance between what
    that layer then returns for position i and what it returned before is the part of j in i; parts are divided by their
    sum. Layers are multiplied as in rollout, with no residual added: distances of whole outputs have it already. The
    class makes no difference. What comes from markers around a text is not shown.
    """

    class_free: ClassVar[bool] = True

    def unfit(self, model: Model) -> str | None:
        return no_layers(model) or unstaged(model)

    @torch.no_grad()
    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        demand(self.unfit(model))
        assert isinstance(model, StackedModel)
        output, stages = recorded(model, batch)
        share = to_positions(at_least_float32(output.attention[-1]), model, batch)
        for stage in reversed(stages):
            share = read_through(share, _mixed(model, stage, share > 0))
        return to_tokens(share, model, batch)


def weighted_values(stage: Stage) -> Float[Tensor, "B S S"]:
    """‖Σ_h α_ij v_j W‖₂ over heads h: the norm of what position i gets from j (Kobayashi et al., 2020, eq. 7)."""
    merged, weights = at_least_float32(stage.merged()), at_least_float32(stage.weights)
    products = torch.einsum("bhjm,bgjm->bjhg", merged, merged)  # the sums themselves would be S times as large
    squares = torch.einsum("bhij,bjhg,bgij->bij", weights, products, weights)
    return squares.clamp(min=0).sqrt()


def _mixed(model: StackedModel, stage: Stage, reading: Tensor) -> Float[Tensor, "B S S"]:
    """Each position's share in a layer's outputs; undefined where a position is not read."""
    seen = stage.weights.amax(1) > 0  # what no head attends to has no part, also where rounding says otherwise
    example, position = (seen & reading[..., None]).any(1).nonzero(as_tuple=True)
    distances = at_least_float32(stage.weights).new_zeros(seen.shape)
    at_once = budget.room(seen.device, "versions", seen.shape[-1])
    for rows, positions in zip(torch.split(example, at_once), torch.split(position, at_once), strict=True):
        distances[rows, :, positions] = _lost(model, stage, rows, positions)
    costs.add(forward=len(example) / model.layers)
    distances = distances * seen
    whole = distances.sum(-1, keepdim=True)
    itself = torch.eye(seen.shape[-1]).to(whole)  # what changes with nothing comes from nowhere else
    return torch.where(whole > 0, distances / whole.clamp(min=torch.finfo(whole.dtype).tiny), itself)


def _lost(
    model: StackedModel, stage: Stage, rows: Int[Tensor, " N"], positions: Int[Tensor, " N"]
) -> Float[Tensor, "N S"]:
    """The cosine distance of a layer's outputs when one position's value is zeroed, per text."""
    kept = torch.arange(stage.weights.shape[-1], device=positions.device) != positions[:, None]
    with changed(model, lambda values: values * kept[:, None, :, None]):
        without = stage.call.again(rows)
    before, after = (F.normalize(at_least_float32(states), dim=-1) for states in (stage.call.states[rows], without))
    return (before - after).square().sum(-1) / 2  # one minus the cosine, exact also where it is small
