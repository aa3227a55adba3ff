"""Attention followed down through all layers of self-attention, from the attention that pools to the words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from assay.explainers.needs import demand, no_layers
from assay.types import Batch, Model, Output, PooledModel, StackedModel, of_tokens

RESOLUTION = 1 << 24  # of capacities: a flow is known to about this part of the whole, times the edges of a cut

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]


@dataclass(frozen=True)
class Rollout:
    """The share of the pooled attention that comes from each word if a layer is (A + I)/2 (Abnar and Zuidema, 2020).

    The mean over heads stands for A; the class makes no difference. What comes from markers around a text is not shown.
    """

    def unfit(self, model: Model) -> str | None:
        return no_layers(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        layers, pooled = _mixing(model, batch)
        share = _around(pooled, model, batch)
        for layer in reversed(layers):
            share = (share[:, None] @ layer).squeeze(1)
        return _inside(share, model, batch)


@dataclass(frozen=True)
class Flow:
    """The largest flow from the answer down to each word, layers being pipes (A + I)/2 (Abnar and Zuidema, 2020).

    The pooled attention gives the capacities of the topmost pipes, the mean over heads those of a layer; the class
    makes no difference. Every word is a problem of its own, solved on the processor: slower than all else here.
    """

    def unfit(self, model: Model) -> str | None:
        return no_layers(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        layers, pooled = _mixing(model, batch)
        top = _around(pooled, model, batch).double().cpu().numpy()
        matrices = torch.stack(layers, dim=1).double().cpu().numpy()
        flows = np.zeros(top.shape)
        for row, (above, pipes) in enumerate(zip(top, matrices, strict=True)):
            read = _reached(above, pipes)
            flows[row, read] = _flows(above[read], pipes[:, read][:, :, read])
        return _inside(torch.from_numpy(flows).float().to(pooled.device), model, batch)


@dataclass(frozen=True)
class Chefer:
    """Relevance of each word that every layer adds to by its mean over heads of relu(A ∂y/∂A) (Chefer et al., 2021).

    Starting from α ⊙ relu(∂y/∂α) for the pooled attention, or from the place that is read, a layer takes relevance R
    to R + R Ā. Scores are not
    negative, and all 0 where no attention speaks for the class. As in the paper, y is the class's logit: the slopes
    of a probability near 1 vanish, and with them all that a layer adds to R.
    """

    def unfit(self, model: Model) -> str | None:
        return no_layers(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        with torch.enable_grad():
            output = _layered(model, batch)
            chosen = output.logits.gather(1, target[:, None]).sum()
            learnt = [weights for weights in output.attention if weights.requires_grad]
            slopes = torch.autograd.grad(chosen, learnt)
        layers = [(weights.detach() * slope).float().relu() for weights, slope in zip(learnt, slopes, strict=True)]
        fixed = len(learnt) < len(output.attention)  # one place is read, whatever the attention
        pooled = output.attention[-1].float() if fixed else layers.pop()
        relevance = _around(pooled, model, batch)
        for layer in reversed(layers):
            relevance = relevance + (relevance[:, None] @ layer.mean(1)).squeeze(1)
        return _inside(relevance, model, batch)


def _layered(model: Model, batch: Batch) -> Output:
    demand(no_layers(model))
    assert isinstance(model, StackedModel)
    return model.layered(model.embed(batch).detach().requires_grad_(), batch)


@torch.no_grad()
def _mixing(model: Model, batch: Batch) -> tuple[list[Float[Tensor, "B S S"]], Scores]:
    """What each layer reads from where, its residual included, and the attention that pools."""
    *layers, pooled = (weights.float() for weights in _layered(model, batch).attention)
    itself = torch.eye(layers[0].shape[-1], device=pooled.device)
    mixed = [(layer.mean(1) + itself) / 2 for layer in layers]
    return [layer / layer.sum(-1, keepdim=True) for layer in mixed], pooled


def _around(pooled: Scores, model: Model, batch: Batch) -> Float[Tensor, "B S"]:
    """Numbers for tokens as numbers for the places of a layer, shared among those of a token; other places get 0."""
    if not isinstance(model, PooledModel):
        return pooled  # it is places that are read
    assert isinstance(model, StackedModel)
    places = model.places(batch)
    counts = of_tokens(torch.ones_like(places, dtype=pooled.dtype), places, pooled.shape[-1]).clamp(min=1)
    return (pooled / counts).gather(1, places.clamp(min=0)) * (places >= 0)


def _inside(values: Float[Tensor, "B S"], model: Model, batch: Batch) -> Scores:
    """The sum of the numbers of the places of each token."""
    assert isinstance(model, StackedModel)
    return of_tokens(values, model.places(batch), batch.ids.shape[1]) * batch.mask


def _reached(top: Float[np.ndarray, " S"], layers: Float[np.ndarray, "L S S"]) -> Bool[np.ndarray, " S"]:
    """The places that anything flows through; padding is none."""
    reached = top > 0
    for layer in layers[::-1]:
        reached = reached | (layer[reached] > 0).any(0)
    return np.asarray(reached)


def _flows(top: Float[np.ndarray, " S"], layers: Float[np.ndarray, "L S S"]) -> Float[np.ndarray, " S"]:
    """The maximum flow from the source above `top` to each place at the bottom."""
    count, places = layers.shape[:2]
    above = np.arange(count * places).reshape(count, places)[..., None]
    start = np.concatenate([np.zeros(places, int), np.broadcast_to(above + 1, layers.shape).ravel()])
    below = np.broadcast_to(above.swapaxes(1, 2) + 1 + places, layers.shape)
    end = np.concatenate([np.arange(places) + 1, below.ravel()])
    pipes = np.rint(RESOLUTION * np.concatenate([top, layers[::-1].ravel()])).astype(np.int32)
    nodes = 1 + (count + 1) * places
    graph = csr_array((pipes, (start, end)), shape=(nodes, nodes))
    lowest = range(nodes - places, nodes)
    return np.array([maximum_flow(graph, 0, sink).flow_value for sink in lowest]) / RESOLUTION
