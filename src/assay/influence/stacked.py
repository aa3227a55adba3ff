"""Several trainings at once (vmap): the same steps for networks that weight the examples differently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call, vmap

from assay.influence.adam import Moments, shrinkage
from assay.influence.replay import Learner, MicroBatch, micro_batches
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import TextModel
from assay.models.walk import UnfusedOps
from assay.types import Batch

PREFIX = "learner.network."


class MicroBatchLosses(nn.Module):
    """The losses of a micro-batch as a module, so that its parameters can be replaced."""

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.learner, self.read = learner.modules, learner.losses

    def forward(self, micro_batch: MicroBatch) -> Float[Tensor, " n"]:
        return self.read(micro_batch)


class BatchLogits(nn.Module):
    """The logits of a batch as a module, with parameter names as in `MicroBatchLosses`."""

    def __init__(self, network: TextModel) -> None:
        super().__init__()
        self.learner = nn.ModuleDict({"network": network})

    def forward(self, batch: Batch) -> Float[Tensor, "B C"]:
        network: Any = self.learner["network"]
        logits: Tensor = network(network.embed(batch), batch).logits
        return logits


@dataclass(frozen=True)
class Stacked:
    """Networks that were trained together, their parameters stacked."""

    network: TextModel  # any of them; its parameters do not count
    parameters: dict[str, Float[Tensor, "S ..."]]

    @property
    def count(self) -> int:
        """The number of networks."""
        return len(next(iter(self.parameters.values())))

    def logits(self, batch: Batch) -> Float[Tensor, "S B C"]:
        """The logits of each network."""
        with UnfusedOps(), torch.no_grad():
            module = BatchLogits(self.network.eval())
            found: Tensor = vmap(lambda own: functional_call(module, own, (batch,)))(self.parameters)
        return found


def learn(training_run: TrainingRun, shares: Float[np.ndarray, "S N"]) -> Stacked:
    """Trains networks together, each with its own weights of the rows; `TrainingRun.learn` of each, up to rounding.

    Up to rounding.
    """
    with torch.random.fork_rng():
        learner = Learner.of(training_run)
        module, count = MicroBatchLosses(learner), len(shares)
        rules = {f"learner.{name}": rule for name, rule in learner.rules.items()}
        state = {}
        for name, own in learner.state().items():
            nothing = torch.zeros_like(own.value).expand(count, *own.value.shape)
            state[f"learner.{name}"] = Moments(own.value.expand_as(nothing), nothing, nothing, nothing)
        for group in training_run.groups():
            part = torch.from_numpy(shares[:, group]).to(next(iter(state.values())).value)
            gradients = _gradients(module, state, list(micro_batches(training_run, group, learner.weights)), part)
            share = shrinkage(gradients, training_run.training.clip)
            for name, each in gradients.items():
                shrunk = each * (share if isinstance(share, float) else share.view(-1, *[1] * (each.dim() - 1)))
                state[name] = rules[name].step(state[name], shrunk)
    values = {name: own.value for name, own in state.items() if name.startswith(PREFIX)}
    return Stacked(learner.network, values)


def _gradients(
    module: MicroBatchLosses, state: dict[str, Moments], read: list[MicroBatch], shares: Float[Tensor, "S n"]
) -> dict[str, Tensor]:
    """The gradient of one step's loss for each network; parameters that none of them reaches are left out."""
    values = {name: own.value.detach().requires_grad_() for name, own in state.items()}
    total: dict[str, Tensor] = {}
    for micro_batch in read:
        with UnfusedOps(), torch.enable_grad():
            each = vmap(lambda own, read=micro_batch: functional_call(module, own, (read,)), randomness="same")
            losses = each(values) * shares[:, micro_batch.indices] * micro_batch.weights
            found = torch.autograd.grad(losses.sum(), list(values.values()), allow_unused=True)
        for name, gradient in zip(values, found, strict=True):
            if gradient is not None:
                total[name] = total[name] + gradient if name in total else gradient
    return total
