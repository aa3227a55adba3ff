"""Attention propagated through all layers of a stack, and the values that it weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from torch import Tensor
from torch.nn import functional as F

from assay import costs
from assay.explainers.attention import layered, read_through, to_positions, to_tokens
from assay.explainers.needs import Choosy, Scores, Target, no_layers
from assay.models import budget
from assay.models.stages import Stage, changed, recorded, unstaged
from assay.types import Batch, Model, StackedModel, at_least_float32

# Attention propagated through all layers of a self-attention stack: rollout, flow and Chefer's relevance.
#
# What is read is the attention that pools, or the position that a classifier reads: the first, as of BERT, or the last.


RESOLUTION = 1 << 24  # of capacities: a flow is known to about this part of the whole, times the edges of a cut


Top = Float[np.ndarray, " S"]
Pipes = Float[np.ndarray, "L S S"]


class Layered(Choosy):
    """An explainer of a stack of self-attention."""

    def unfit(self, model: Model) -> str | None:
        return no_layers(model)


@dataclass(frozen=True)
class Rollout(Layered):
    """The share of what is read that comes from each word if a layer is (A + I)/2 (Abnar and Zuidema, 2020).

    The mean over heads stands for A; the class makes no difference. What comes from markers around a text is not shown.
    """

    class_free: ClassVar[bool] = True

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        layers, pooled = _mixing(model, batch)
        share = to_positions(pooled, model, batch)
        for layer in reversed(layers):
            share = read_through(share, layer)
        return to_tokens(share, model, batch)


@dataclass(frozen=True)
class Flow(Layered):
    """The largest flow from the answer down to each word, layers being pipes (A + I)/2 (Abnar and Zuidema, 2020).

    What is read gives the capacities of the topmost pipes, the mean over heads those of a layer; the class makes no
    difference. Into a word in subwords it flows through all of them at once: flows to single subwords would count the
    same pipes several times. Every word is a problem of its own, solved on the processor: slower than all else here.
    """

    class_free: ClassVar[bool] = True

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        layers, pooled = _mixing(model, batch)
        assert isinstance(model, StackedModel)
        top = to_positions(pooled, model, batch).double().cpu().numpy()
        matrices = torch.stack(layers, dim=1).double().cpu().numpy()
        owned = model.token_index(batch).cpu().numpy()
        flows = np.zeros(batch.ids.shape)
        for row, (above, pipes, owners) in enumerate(zip(top, matrices, owned, strict=True)):
            there = _reached(above, pipes)
            words, found = _flows(above[there], pipes[:, there][:, :, there], owners[there])
            flows[row, words] = found
        return torch.from_numpy(flows).to(pooled) * batch.mask


@dataclass(frozen=True)
class Chefer(Layered):
    """Relevance of each word that every layer adds to by its mean over heads of relu(A ∂y/∂A) (Chefer et al., 2021).

    Starting from α ⊙ relu(∂y/∂α) for the attention that pools, or from the position that is read, a layer takes
    relevance R to R + R Ā. Scores are not negative, and all 0 where no attention speaks for the class. As in the
    paper, y is the class's logit: the gradients of a probability near 1 vanish, and with them what a layer adds to R.
    """

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        with torch.enable_grad():
            output = layered(model, batch)
            chosen = output.logits.gather(1, target[:, None]).sum()
            learnt = [weights for weights in output.attention if weights.requires_grad]
            gradients = torch.autograd.grad(chosen, learnt)
        weighted = (weights.detach() * gradient for weights, gradient in zip(learnt, gradients, strict=True))
        layers = [at_least_float32(each).relu() for each in weighted]
        fixed = len(learnt) < len(output.attention)  # one position is read, whatever the attention
        pooled = at_least_float32(output.attention[-1]) if fixed else layers.pop()
        relevance = to_positions(pooled, model, batch)
        for layer in reversed(layers):
            relevance = relevance + read_through(relevance, layer.mean(1))
        return to_tokens(relevance, model, batch)


@torch.no_grad()
def _mixing(model: Model, batch: Batch) -> tuple[list[Float[Tensor, "B S S"]], Scores]:
    """The mixing matrix of each layer, its residual connection included, and the weights of the readout."""
    *layers, pooled = map(at_least_float32, layered(model, batch).attention)
    itself = torch.eye(layers[0].shape[-1], device=pooled.device)
    mixed = [(layer.mean(1) + itself) / 2 for layer in layers]
    return [layer / layer.sum(-1, keepdim=True) for layer in mixed], pooled


def _reached(top: Top, layers: Pipes) -> Bool[np.ndarray, " S"]:
    """The positions with any flow; padding has none."""
    reached = top > 0
    for layer in layers[::-1]:
        reached = reached | (layer[reached] > 0).any(0)
    return np.asarray(reached)


def _flows(
    top: Top, layers: Pipes, owners: Int[np.ndarray, " S"]
) -> tuple[Int[np.ndarray, " W"], Float[np.ndarray, " W"]]:
    """The words that own positions at the bottom, and the maximum flow to each from the source."""
    count, positions = layers.shape[:2]
    above = np.arange(count * positions).reshape(count, positions)[..., None] + 1
    lowest = 1 + count * positions + np.flatnonzero(owners >= 0)
    words, word = np.unique(owners[owners >= 0], return_inverse=True)
    sinks = 1 + (count + 1) * positions + np.arange(len(words))
    inner = np.broadcast_to(above, layers.shape), np.broadcast_to(above.swapaxes(1, 2) + positions, layers.shape)
    start = np.concatenate([np.zeros(positions, int), inner[0].ravel(), lowest])
    end = np.concatenate([np.arange(positions) + 1, inner[1].ravel(), sinks[word]])
    rooms = np.concatenate([top, layers[::-1].ravel(), np.full(len(lowest), 2.0)])  # no more than 1 comes from above
    nodes = 1 + (count + 1) * positions + len(words)
    graph = csr_array((np.rint(RESOLUTION * rooms).astype(np.int32), (start, end)), shape=(nodes, nodes))
    return words, np.array([maximum_flow(graph, 0, sink).flow_value for sink in sinks]) / RESOLUTION


# Value-based explanations of a self-attention layer: norms of weighted values, and value zeroing.


@dataclass(frozen=True)
class ValueZeroing(Choosy):
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
    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        assert isinstance(model, StackedModel)
        output, stages = recorded(model, batch)
        share = to_positions(at_least_float32(output.attention[-1]), model, batch)
        for stage in reversed(stages):
            share = read_through(share, _mixed(model, stage, share > 0))
        return to_tokens(share, model, batch)


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
