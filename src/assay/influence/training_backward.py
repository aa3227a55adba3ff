"""Backward pass through a whole training, step by step: the gradient of targets by the weight of each example."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import AssayError
from assay.influence.replay import (
    Learner,
    MicroBatch,
    Moments,
    State,
    Trace,
    clipping_backward,
    micro_batches,
    set_random_state,
    shrinkage,
)
from assay.models.walk import UnfusedOps

ALIKE = 0.1  # how far a gradient that is computed again may be from what it was, as a share of its norm


class SafeNorms(UnfusedOps):
    """Context manager: makes norm() twice differentiable at 0.

    The norm of a vector of zeros, such as the embedding of padding, has no second derivative; here it has 0.
    """

    def norm(self, function: Any, vectors: Tensor, *rest: Any, **named: Any) -> Tensor:
        if named.get("p") != "fro" or not isinstance(named.get("dim"), int):
            plain: Tensor = function(vectors, *rest, **named)
            return plain
        found = length(vectors, named["dim"])
        return found.unsqueeze(named["dim"]) if named.get("keepdim") else found

    def normalize(self, function: Any, vectors: Tensor, *rest: Any, **named: Any) -> Tensor:
        if named.get("p") != 2.0:
            plain: Tensor = function(vectors, *rest, **named)
            return plain
        return vectors / length(vectors, named["dim"]).unsqueeze(named["dim"]).clamp(min=named["eps"])

    def cosine(self, function: Any, one: Tensor, other: Tensor, *rest: Any, **named: Any) -> Tensor:
        if rest or set(named) != {"dim"}:
            plain: Tensor = function(one, other, *rest, **named)
            return plain
        sizes = (length(each, named["dim"]).clamp(min=1e-8) for each in (one, other))
        return (one * other).sum(named["dim"]) / math.prod(sizes)

    operations: ClassVar = {**UnfusedOps.operations, "norm": norm, "normalize": normalize, "cosine_similarity": cosine}


def length(vectors: Tensor, dim: int) -> Tensor:
    """The Euclidean norm along an axis."""
    squares = vectors.square().sum(dim)
    some = squares > 0
    return torch.where(some, torch.where(some, squares, 1.0).sqrt(), 0.0)


@dataclass
class BackwardPass:
    """Reverse-mode differentiation of a training: adjoints of some targets, taken back one step at a time."""

    learner: Learner
    trace: Trace
    adjoints: dict[str, Moments]
    gap: float = 0.0  # between means of gradients as they were and as they are found again, largest share

    @classmethod
    def of(cls, learner: Learner, trace: Trace, asked: Mapping[str, Tensor]) -> BackwardPass:
        """The adjoints after the last step, from the gradients of the targets."""
        count = len(next(iter(asked.values())))
        adjoints = {}
        for name, each in learner.parameters.items():
            own = asked.get(name.removeprefix("network.")) if name.startswith("network.") else None
            own = each.new_zeros(count, *each.shape) if own is None else own
            nothing = torch.zeros_like(own)
            adjoints[name] = Moments(own, nothing, nothing, nothing)
        return cls(learner, trace, adjoints)

    def step(self, number: int, before: State, after: State) -> Float[np.ndarray, "Q n"]:
        """Goes one step back; returns the gradient of the targets by the weight of each example in that step."""
        self.learner.put(before)
        group = self.trace.groups[number]
        like = next(iter(self.learner.parameters.values()))
        shares = like.new_ones(len(group)).requires_grad_()
        read = list(micro_batches(self.learner.training_run, group, self.learner.weights))
        set_random_state(self.trace.random_states[number], shares.device)
        graphs = [self._gradient(each, shares, len(read) == 1) for each in read]
        names = {name for graph in graphs for name in graph}
        raw = {
            name: torch.stack([graph[name].detach() for graph in graphs if name in graph]).sum(0)
            for name in self.learner.parameters
            if name in names
        }
        wanted = self._through_optimiser(raw, before, after)
        if len(read) > 1:  # the graph of one micro_batch at a time
            set_random_state(self.trace.random_states[number], shares.device)
        found = np.zeros((len(next(iter(wanted.values()))), len(group)))
        for index, micro_batch in enumerate(read):
            graph = graphs[index] if len(read) == 1 else self._gradient(micro_batch, shares, True)
            found += self._through_gradient(graph, wanted, shares)
        return found

    def _gradient(self, micro_batch: MicroBatch, shares: Tensor, twice: bool) -> dict[str, Tensor]:
        """The gradient of one micro-batch as training computes it; parameters that it does not reach are left out."""
        parameters = self.learner.parameters
        with SafeNorms(), torch.enable_grad():
            losses = self.learner.losses(micro_batch)
            loss = (losses * shares[micro_batch.indices].to(losses) * micro_batch.weights).sum()
            found = torch.autograd.grad(loss, list(parameters.values()), create_graph=twice, allow_unused=True)
        return {name: each for name, each in zip(parameters, found, strict=True) if each is not None}

    def _through_optimiser(self, raw: Mapping[str, Tensor], before: State, after: State) -> dict[str, Tensor]:
        """Backward through optimiser and clipping: updates the adjoints, returns those of the gradients."""
        limit = self.learner.training_run.training.clip
        share = shrinkage({name: each[None] for name, each in raw.items()}, limit)
        clipped, wanted, rules = {name: each * share for name, each in raw.items()}, {}, self.learner.rules
        self._compare(clipped, before, after)
        for name, each in clipped.items():
            self.adjoints[name], wanted[name] = rules[name].backward(
                before[name], after[name], each, self.adjoints[name]
            )
        return clipping_backward(raw, wanted, limit)

    def _compare(self, clipped: Mapping[str, Tensor], before: State, after: State) -> None:
        """Raises where the recomputed gradient differs from that of the training, as dropout could not be repeated."""
        rules = self.learner.rules
        apart = [
            (rules[name].step(before[name], each).mean - after[name].mean).norm() / (1 - rules[name].betas[0])
            for name, each in clipped.items()
        ]
        size = torch.stack([each.norm() for each in clipped.values()]).norm().clamp(min=1e-30)
        self.gap = max(self.gap, float(torch.stack(apart).norm() / size))
        if self.gap > ALIKE:
            raise AssayError(
                f"A step of training could not be computed again (its gradient is {self.gap:.1g} of its size away), "
                "which happens where fused attention drops weights; train the model without that dropout."
            )

    def _through_gradient(
        self, graph: Mapping[str, Tensor], wanted: Mapping[str, Tensor], shares: Tensor
    ) -> Float[np.ndarray, "Q n"]:
        """Adds to the adjoints what passes through the gradient (a second derivative); returns those of the shares."""
        parameters = self.learner.parameters
        found = torch.autograd.grad(
            list(graph.values()),
            [*parameters.values(), shares],
            [wanted[name] for name in graph],
            is_grads_batched=True,
            allow_unused=True,
        )
        for name, each in zip(parameters, found[:-1], strict=True):
            if each is not None:
                own = self.adjoints[name]
                self.adjoints[name] = replace(own, value=own.value + each)
        return found[-1].double().cpu().numpy()
