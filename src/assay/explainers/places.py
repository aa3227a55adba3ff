"""From what is read above a stack of self-attention to the places of its layers, and from these to words."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from assay.explainers.needs import demand, no_layers
from assay.types import Batch, Model, Output, PooledModel, StackedModel, of_tokens


def layered(model: Model, batch: Batch) -> Output:
    """The answer with the weights of every layer, open to gradients."""
    demand(no_layers(model))
    assert isinstance(model, StackedModel)
    return model.layered(model.embed(batch).detach().requires_grad_(), batch)


def around(pooled: Float[Tensor, "B N"], model: Model, batch: Batch) -> Float[Tensor, "B S"]:
    """Numbers for tokens as numbers for the places of a layer, shared among those of a token; other places get 0."""
    if not isinstance(model, PooledModel):
        return pooled  # it is places that are read
    assert isinstance(model, StackedModel)
    places = model.places(batch)
    counts = of_tokens(pooled.new_ones(places.shape), places, pooled.shape[-1]).clamp(min=1)
    return (pooled / counts).gather(1, places.clamp(min=0)) * (places >= 0)


def inside(values: Float[Tensor, "B S"], model: Model, batch: Batch) -> Float[Tensor, "B T"]:
    """The sum of the numbers of the places of each token."""
    assert isinstance(model, StackedModel)
    return of_tokens(values, model.places(batch), batch.ids.shape[1]) * batch.mask


def read(rows: Float[Tensor, "B S"], layer: Float[Tensor, "B S S"]) -> Float[Tensor, "B S"]:
    """What is read of each place of a layer by what reads so much of each of its outputs."""
    return (rows[:, None] @ layer).squeeze(1)
