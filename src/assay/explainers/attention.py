"""Attention weights as explanations, and gradients with respect to attention weights and hidden states.

A model that pools its states by one attention is asked about that one; any other about its stack of self-attention.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay import costs
from assay.errors import AssayError
from assay.explainers.needs import Choosy, Scores, Target, demand, no_layer, no_layers, no_pooling, no_weights
from assay.models.network import Paired
from assay.models.stages import Stage, recorded, unstaged
from assay.types import (
    Batch,
    Model,
    Output,
    PooledModel,
    SelectingModel,
    StackedModel,
    at_least_float32,
    attended,
    of_tokens,
    over_tokens,
    token_logits,
)

Candidates = Bool[Tensor, "B C"] | None
Items = Float[Tensor, "B N"]
Positions = Float[Tensor, "B S"]

# Scores of tokens, and of the positions (subwords, special tokens) of a self-attention layer.


def layered(model: Model, batch: Batch) -> Output:
    """The output with the attention weights of every layer, kept in the autograd graph."""
    assert isinstance(model, StackedModel)
    return model.layered(model.embed(batch).detach().requires_grad_(), batch)


def to_positions(pooled: Items, model: Model, batch: Batch) -> Positions:
    """Scores of tokens spread evenly over the positions of their subwords; other positions get 0."""
    if not isinstance(model, PooledModel):
        return pooled  # these are positions already
    assert isinstance(model, StackedModel)
    owners = model.token_index(batch)
    counts = of_tokens(pooled.new_ones(owners.shape), owners, pooled.shape[-1]).clamp(min=1)
    return (pooled / counts).gather(1, owners.clamp(min=0)) * (owners >= 0)


def to_tokens(values: Positions, model: Model, batch: Batch) -> Float[Tensor, "B T"]:
    """Scores of positions summed over the subwords of each token."""
    assert isinstance(model, StackedModel)
    return of_tokens(values, model.token_index(batch), batch.ids.shape[1]) * batch.mask


def read_through(rows: Positions, layer: Float[Tensor, "B S S"]) -> Positions:
    """The weights with which the positions of a layer are read, given those of its outputs: rows @ layer."""
    return (rows[:, None] @ layer).squeeze(1)


# Self-attention at the position that the classifier reads: weights, their gradients, weighted values.


def weighted_values(stage: Stage) -> Float[Tensor, "B S S"]:
    """‖Σ_h α_ij v_j W‖₂ over heads h: the norm of what position i gets from j (Kobayashi et al., 2020, eq. 7)."""
    merged, weights = at_least_float32(stage.merged()), at_least_float32(stage.weights)
    products = torch.einsum("bhjm,bgjm->bjhg", merged, merged)  # the sums themselves would be S times as large
    squares = torch.einsum("bhij,bjhg,bgij->bij", weights, products, weights)
    return squares.clamp(min=0).sqrt()


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


def chosen(logits: Float[Tensor, "B C"], target: Target, candidates: Candidates = None) -> Float[Tensor, ""]:
    """The summed probabilities of each text's class, among candidate classes."""
    values = at_least_float32(logits)
    if candidates is not None:
        values = values.masked_fill(~candidates, torch.finfo(values.dtype).min)
    return values.softmax(-1).gather(1, target[:, None]).sum()


@dataclass(frozen=True)
class Attention(Choosy):
    """The weights of the attention that the decoder or classifier reads, independent of the class.

    That is the attention that pools; the weight of a sentence is shared among its words by theirs. Of a stack of
    self-attention it is the last layer at the position that the classifier reads, the first of BERT or the last of a
    model that reads from left to right: the mean over heads, the sum over the subwords of a word. Another layer of a
    stack, and one head, can be named, both counted from 0; of a layer below attention that pools, its mean is shown.
    """

    class_free: ClassVar[bool] = True

    layer: int | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        check_number("layer", self.layer)
        check_number("head", self.head)

    def unfit(self, model: Model) -> str | None:
        if self.layer is None and isinstance(model, PooledModel):
            return None if self.head is None else "the attention that pools has no heads; name a layer"
        if isinstance(model, SelectingModel) and not model.attends:
            return "the model shows no attention, but the words that it selects; see rationale"
        if self == Attention() and no_layers(model) is not None:
            return None  # it may show some attention all the same
        return no_layer(model, self.layer)

    @torch.no_grad()
    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        if self.layer is not None or self.head is not None or _stack(model):
            return read_weights(model, batch, self.layer, self.head)
        x = model.embed(batch)
        shown = model(x, batch).attention
        demand(None if shown else "the model shows no attention")
        return _shared(model, shown[-1], x, batch) if isinstance(model, PooledModel) else at_least_float32(shown[-1])


@dataclass(frozen=True)
class AttentionGradient(Choosy):
    """∂p/∂α_t with the states held fixed, signed: positive speaks for the class (Serrano and Smith, 2019).

    Where sentences are attended, each word has the gradient of its sentence. Of a stack of self-attention the
    gradients at the weights of all layers, each free of the others, are summed for the position that is attended to.
    """

    times: ClassVar[bool] = False  # the weight itself

    def unfit(self, model: Model) -> str | None:
        return no_weights(model)

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        if not isinstance(model, PooledModel):
            return column_gradients(model, batch, target, self.times)
        weights, gradient = _weight_gradient(model, batch, target)
        if self.times:
            return _shared(model, weights * gradient, model.embed(batch), batch)
        return over_tokens(model, at_least_float32(gradient), batch)


@dataclass(frozen=True)
class AttentionXGradient(AttentionGradient):
    """α_t · ∂p/∂α_t with the states held fixed, signed: positive speaks for the class (Serrano and Smith, 2019).

    Of a stack of self-attention it is the sum of α_ij · ∂p/∂α_ij over all layers, heads and positions i that attend,
    for the position j that is attended to.
    """

    # differs from Barkan et al. (2021), who let nothing speak against the class (Grad-SAM: the mean of A ⊙ relu(∂A)),
    # and from Hao et al. (2021), who integrate the gradient from no attention to all of it, in each layer

    times: ClassVar[bool] = True


@dataclass(frozen=True)
class AttentionXValue(Choosy):
    """‖α_t · v_t‖₂, the norm of a token's weighted value, independent of the class (Kobayashi et al., 2020).

    The value v_t is what the linear decoder makes of the state alone, its logits without the bias, less their mean
    over classes: a state that moves all logits alike moves no probability. Classes that are no candidates have no part.

    Of a stack of self-attention it is ‖Σ_h α_ij v_j W‖₂ over the heads h of the last layer, W merging them, at the
    position i that the classifier reads, and the sum over the subwords of a word. Another `layer`, from 0, can be
    named. Layers are not multiplied, as in the paper: the norm of a sum is not the sum of norms.
    """

    class_free: ClassVar[bool] = True

    layer: int | None = None

    def __post_init__(self) -> None:
        check_number("layer", self.layer)

    def unfit(self, model: Model) -> str | None:
        if self.layer is None and isinstance(model, PooledModel):
            return None
        return no_weights(model) or no_layer(model, self.layer) or unstaged(model, merged=True)

    @torch.no_grad()
    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        if self.layer is not None or not isinstance(model, PooledModel):
            return read_values(model, batch, self.layer)
        states, weights = _read(model, batch)
        values = token_logits(model, states) - token_logits(model, torch.zeros_like(states[:1, :1]))
        values = _centred(at_least_float32(values), _candidates(model, batch))
        norms: Tensor = torch.linalg.vector_norm(values, dim=-1)
        return _shared(model, at_least_float32(weights) * norms, model.embed(batch), batch)


@dataclass(frozen=True)
class StateGradient(Choosy):
    """‖∂p/∂h_t‖₂ for the hidden state of each token, or of its sentence, input of both attention and decoder."""

    def unfit(self, model: Model) -> str | None:
        return no_pooling(model)

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        assert isinstance(model, PooledModel)
        states, _ = _read(model, batch)
        with torch.enable_grad():
            states = states.requires_grad_()
            logits = model.decode(states, model.attend(states, batch))
            (gradient,) = torch.autograd.grad(chosen(logits, target, _candidates(model, batch)), states)
        costs.add(backward=len(batch))
        norms: Tensor = torch.linalg.vector_norm(at_least_float32(gradient), dim=-1)
        return over_tokens(model, norms, batch)


def _stack(model: Model) -> bool:
    """Whether the model's only attention is a self-attention stack."""
    return not isinstance(model, PooledModel) and no_layers(model) is None


@torch.no_grad()
def _shared(model: PooledModel, values: Items, x: Float[Tensor, "B T D"], batch: Batch) -> Scores:
    """Values of items, distributed over their tokens by the attention within each item."""
    return at_least_float32(over_tokens(model, values, batch) * model.within(x, batch))


@torch.no_grad()
def _read(model: PooledModel, batch: Batch) -> tuple[Float[Tensor, "B N M"], Items]:
    """The hidden states of a text without class barriers, and their attention weights."""
    batch = replace(batch, candidates=None)
    states = model.states(model.embed(batch), batch)
    costs.add(forward=len(batch))
    return states, model.attend(states, batch)


def _weight_gradient(model: PooledModel, batch: Batch, target: Target) -> tuple[Items, Items]:
    """The attention weights and ∂p/∂α, each weight independent of the others; 0 on padding."""
    states, weights = _read(model, batch)
    with torch.enable_grad():
        weights = weights.requires_grad_()
        logits = model.decode(states, weights)
        (gradient,) = torch.autograd.grad(chosen(logits, target, _candidates(model, batch)), weights)
    costs.add(backward=len(batch))
    return weights.detach(), gradient * attended(model, batch)


def _candidates(model: Model, batch: Batch) -> Candidates:
    """The classes that can be right, where the model bars the others."""
    return batch.candidates if isinstance(model, Paired) else None


def _centred(values: Float[Tensor, "B N C"], candidates: Candidates) -> Float[Tensor, "B N C"]:
    """The values of candidate classes minus their mean; 0 for other classes."""
    if candidates is None:
        return values - values.mean(-1, keepdim=True)
    allowed = candidates[:, None].to(values)
    return (values - (values * allowed).sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True)) * allowed
