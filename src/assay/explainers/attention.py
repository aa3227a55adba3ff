"""Attention weights as they are, and the slopes of the answer at the weights and states that the decoder reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay import costs
from assay.explainers.needs import demand, no_pooling
from assay.models.paired import Paired
from assay.types import Batch, Model, PooledModel, attended, over_tokens, token_logits

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]
Candidates = Bool[Tensor, "B C"] | None


@torch.no_grad()
def attention(model: Model, batch: Batch, target: Target) -> Scores:
    """The weights of the last attention layer, whatever the class; a sentence's is shared among its words by theirs."""
    x = model.embed(batch)
    weights: Tensor = model(x, batch).attention[-1]
    return _shared(model, weights, x, batch) if isinstance(model, PooledModel) else weights.float()


@dataclass(frozen=True)
class AttentionGradient:
    """∂p/∂α_t with the states held fixed, signed: positive speaks for the class (Serrano and Smith, 2019).

    Where sentences are attended, each word has the slope of its sentence.
    """

    def unfit(self, model: Model) -> str | None:
        return no_pooling(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        model = _pooled(model)
        _, slope = _weight_slope(model, batch, target)
        return over_tokens(model, slope.float(), batch)


@dataclass(frozen=True)
class AttentionXGradient:
    """α_t · ∂p/∂α_t with the states held fixed, signed: positive speaks for the class (Serrano and Smith, 2019)."""

    def unfit(self, model: Model) -> str | None:
        return no_pooling(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        model = _pooled(model)
        weights, slope = _weight_slope(model, batch, target)
        return _shared(model, weights * slope, model.embed(batch), batch)


@dataclass(frozen=True)
class AttentionXValue:
    """‖α_t · v_t‖₂, the norm of what the decoder adds up for a token, whatever the class (Kobayashi et al., 2020).

    The value v_t is what the linear decoder makes of the state alone, its logits without the bias, less their mean
    over classes: a state that moves all logits alike moves no probability. Classes that are no candidates have no part.
    """

    def unfit(self, model: Model) -> str | None:
        return no_pooling(model)

    @torch.no_grad()
    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        model = _pooled(model)
        states, weights = _read(model, batch)
        values = token_logits(model, states) - token_logits(model, torch.zeros_like(states[:1, :1]))
        values = _centred(values.float(), _candidates(model, batch))
        norms: Tensor = torch.linalg.vector_norm(values, dim=-1)
        return _shared(model, weights.float() * norms, model.embed(batch), batch)


@dataclass(frozen=True)
class StateGradient:
    """‖∂p/∂h_t‖₂ for the state of each token, or of its sentence, which both the attention and the decoder read."""

    def unfit(self, model: Model) -> str | None:
        return no_pooling(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        model = _pooled(model)
        states, _ = _read(model, batch)
        with torch.enable_grad():
            states = states.requires_grad_()
            logits = model.decode(states, model.attend(states, batch))
            (slope,) = torch.autograd.grad(_chosen(logits, target, _candidates(model, batch)), states)
        costs.add(backward=len(batch))
        norms: Tensor = torch.linalg.vector_norm(slope.float(), dim=-1)
        return over_tokens(model, norms, batch)


def _pooled(model: Model) -> PooledModel:
    demand(no_pooling(model))
    assert isinstance(model, PooledModel)
    return model


@torch.no_grad()
def _shared(model: PooledModel, values: Float[Tensor, "B N"], x: Float[Tensor, "B T D"], batch: Batch) -> Scores:
    """What items have, shared among their tokens as these are attended within them."""
    return over_tokens(model, values.float(), batch) * model.within(x, batch).float()


@torch.no_grad()
def _read(model: PooledModel, batch: Batch) -> tuple[Float[Tensor, "B N M"], Float[Tensor, "B N"]]:
    """The states of a text, without what bars classes there, and the weights they get."""
    batch = replace(batch, candidates=None)
    states = model.states(model.embed(batch), batch)
    costs.add(forward=len(batch))
    return states, model.attend(states, batch)


def _weight_slope(
    model: PooledModel, batch: Batch, target: Target
) -> tuple[Float[Tensor, "B N"], Float[Tensor, "B N"]]:
    """The weights and the probability's gradient there, each weight free of the others; 0 on padding."""
    states, weights = _read(model, batch)
    with torch.enable_grad():
        weights = weights.requires_grad_()
        logits = model.decode(states, weights)
        (slope,) = torch.autograd.grad(_chosen(logits, target, _candidates(model, batch)), weights)
    costs.add(backward=len(batch))
    return weights.detach(), slope * attended(model, batch)


def _candidates(model: Model, batch: Batch) -> Candidates:
    """The classes that can be right, where the model bars the others."""
    return batch.candidates if isinstance(model, Paired) else None


def _chosen(logits: Float[Tensor, "B C"], target: Target, candidates: Candidates) -> Float[Tensor, ""]:
    """The sum of the probabilities of each text's class, among those that can be right."""
    wide = logits.float() if logits.dtype.itemsize < 4 else logits
    if candidates is not None:
        wide = wide.masked_fill(~candidates, torch.finfo(wide.dtype).min)
    return wide.softmax(-1).gather(1, target[:, None]).sum()


def _centred(values: Float[Tensor, "B N C"], candidates: Candidates) -> Float[Tensor, "B N C"]:
    """The values of the classes that can be right, less their mean; 0 for the others."""
    if candidates is None:
        return values - values.mean(-1, keepdim=True)
    allowed = candidates[:, None].to(values)
    return (values - (values * allowed).sum(-1, keepdim=True) / allowed.sum(-1, keepdim=True)) * allowed
