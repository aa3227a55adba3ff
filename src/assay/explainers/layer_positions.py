"""Maps scores between tokens and the positions (subwords, special tokens) of a self-attention layer."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from assay.explainers.needs import demand, no_layers
from assay.types import Batch, Model, Output, PooledModel, StackedModel, of_tokens


def layered(model: Model, batch: Batch) -> Output:
    """The output with the attention weights of every layer, kept in the autograd graph."""
    demand(no_layers(model))
    assert isinstance(model, StackedModel)
    return model.layered(model.embed(batch).detach().requires_grad_(), batch)


def to_positions(pooled: Float[Tensor, "B N"], model: Model, batch: Batch) -> Float[Tensor, "B S"]:
    """Scores of tokens spread evenly over the positions of their subwords; other positions get 0."""
    if not isinstance(model, PooledModel):
        return pooled  # these are positions already
    assert isinstance(model, StackedModel)
    owners = model.token_index(batch)
    counts = of_tokens(pooled.new_ones(owners.shape), owners, pooled.shape[-1]).clamp(min=1)
    return (pooled / counts).gather(1, owners.clamp(min=0)) * (owners >= 0)


def to_tokens(values: Float[Tensor, "B S"], model: Model, batch: Batch) -> Float[Tensor, "B T"]:
    """Scores of positions summed over the subwords of each token."""
    assert isinstance(model, StackedModel)
    return of_tokens(values, model.token_index(batch), batch.ids.shape[1]) * batch.mask


def read_through(rows: Float[Tensor, "B S"], layer: Float[Tensor, "B S S"]) -> Float[Tensor, "B S"]:
    """The weights with which the positions of a layer are read, given those of its outputs: rows @ layer."""
    return (rows[:, None] @ layer).squeeze(1)
