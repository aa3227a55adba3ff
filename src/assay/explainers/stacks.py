"""Self-attention at the position that the classifier reads: weights, their gradients, weighted values."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.layer_positions import layered, read_through, to_positions, to_tokens
from assay.explainers.needs import demand
from assay.explainers.values import weighted_values
from assay.models.stages import recorded
from assay.types import Batch, Model, StackedModel, at_least_float32

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]


def check_number(name: str, number: object) -> None:
    """Raises an error for an invalid layer or head number."""
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 0):
        raise AssayError(f"{name} must be a whole number of at least 0, got {number!r}.")


@torch.no_grad()
def read_weights(model: Model, batch: Batch, layer: int | None, head: int | None) -> Scores:
    """The attention weights of a layer, by default the last, at the readout: of one head, or averaged."""
    *layers, above = map(at_least_float32, layered(model, batch).attention)
    weights = layers[-1 if layer is None else layer]
    heads = weights.shape[1]
    missing = head is not None and head >= heads
    demand(f"a layer of the model has heads 0 to {heads - 1}, and no head {head}" if missing else None)
    shown = weights.mean(1) if head is None else weights[:, head]
    return to_tokens(read_through(to_positions(above, model, batch), shown), model, batch)


def column_gradients(model: Model, batch: Batch, target: Target, times: bool) -> Scores:
    """∂p/∂α summed over layers, heads and attending positions, `times` the weight itself or not.

    Weights of 0 have no part: a model that reads from left to right never attends to what comes later.
    """
    with torch.enable_grad():
        output = layered(model, batch)
        weights = output.attention[:-1]
        gradients = torch.autograd.grad(chosen(output.logits, target), weights)
    factors = [weight.detach() if times else weight > 0 for weight in weights]
    parts = [gradient * factor for gradient, factor in zip(gradients, factors, strict=True)]
    return to_tokens(torch.stack([at_least_float32(part).sum((1, 2)) for part in parts]).sum(0), model, batch)


@torch.no_grad()
def read_values(model: Model, batch: Batch, layer: int | None) -> Scores:
    """The norms of the weighted values of a layer, by default the last, at the readout."""
    assert isinstance(model, StackedModel)
    output, stages = recorded(model, batch)
    above = to_positions(at_least_float32(output.attention[-1]), model, batch)
    return to_tokens(read_through(above, weighted_values(stages[-1 if layer is None else layer])), model, batch)


def chosen(
    logits: Float[Tensor, "B C"], target: Target, candidates: Bool[Tensor, "B C"] | None = None
) -> Float[Tensor, ""]:
    """The summed probabilities of each text's class, among candidate classes."""
    values = at_least_float32(logits)
    if candidates is not None:
        values = values.masked_fill(~candidates, torch.finfo(values.dtype).min)
    return values.softmax(-1).gather(1, target[:, None]).sum()
