"""Attention followed down through all layers of self-attention, from the attention that pools to the words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor

from assay.explainers.needs import demand, no_layers
from assay.types import Batch, Model, Output, StackedModel

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
        share = _around(pooled, layers[0])
        for layer in reversed(layers):
            share = (share[:, None] @ layer).squeeze(1)
        return _inside(share, batch)


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
        top = _around(pooled, layers[0]).double().cpu().numpy()
        matrices = torch.stack(layers, dim=1).double().cpu().numpy()
        first = layers[0].shape[-1] > batch.ids.shape[1]
        scores = np.zeros(batch.ids.shape)
        for row, count in enumerate(batch.lengths.tolist()):
            read = slice(None, count + 2 * first)  # markers stand around a text
            scores[row, :count] = _flows(top[row, read], matrices[row, :, read, read])[first : count + first]
        return torch.from_numpy(scores).float().to(pooled.device)


@dataclass(frozen=True)
class Chefer:
    """Relevance of each word that every layer adds to by its mean over heads of relu(A ∂y/∂A) (Chefer et al., 2021).

    Starting from α ⊙ relu(∂y/∂α) for the pooled attention, a layer takes relevance R to R + R Ā. Scores are not
    negative, and all 0 where no attention speaks for the class. As in the paper, y is the class's logit: the slopes
    of a probability near 1 vanish, and with them all that a layer adds to R.
    """

    def unfit(self, model: Model) -> str | None:
        return no_layers(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        with torch.enable_grad():
            output = _layered(model, batch)
            chosen = output.logits.gather(1, target[:, None]).sum()
            slopes = torch.autograd.grad(chosen, output.attention)
        *layers, pooled = (
            (weights.detach() * slope).float().relu() for weights, slope in zip(output.attention, slopes, strict=True)
        )
        relevance = _around(pooled, layers[0])
        for layer in reversed(layers):
            relevance = relevance + (relevance[:, None] @ layer.mean(1)).squeeze(1)
        return _inside(relevance, batch)


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


def _around(pooled: Scores, layer: Float[Tensor, "B *H S S"]) -> Float[Tensor, "B S"]:
    """Numbers for tokens as numbers for the places of a layer, which may have a marker at each end: those get 0."""
    return torch.nn.functional.pad(pooled, ((layer.shape[-1] - pooled.shape[-1]) // 2,) * 2)


def _inside(places: Float[Tensor, "B S"], batch: Batch) -> Scores:
    """The numbers of the places that hold a text's tokens."""
    tokens = batch.ids.shape[1]
    first = (places.shape[1] - tokens) // 2
    return places[:, first : first + tokens] * batch.mask


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
