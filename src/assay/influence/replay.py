"""Replay of a training: a learner that can be reset to before any step, with its random state."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.data.batches import by_tokens, collate
from assay.influence.adam import Moments, Rule
from assay.influence.training_run import TrainingRun
from assay.models import budget
from assay.models.fit import Step, class_weights, optimiser_of, stepper
from assay.models.objectives import Learning, heads
from assay.models.textmodel import TextModel
from assay.types import Batch

State = dict[str, Moments]
"""All that learns, by name."""

KEYS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")  # as PyTorch calls the moments


@dataclass(frozen=True)
class MicroBatch:
    """Some rows of a step that are read together."""

    indices: Int[np.ndarray, " n"]  # among the rows of the step
    batch: Batch
    weights: Float[Tensor, " n"]  # of each row in the loss of the step


def micro_batches(
    training_run: TrainingRun, group: Int[np.ndarray, " n"], weights: Tensor | None
) -> Iterator[MicroBatch]:
    """The rows of a step in the micro-batches in which training reads them."""
    rows, like = [training_run.rows[index] for index in group], next(training_run.network.parameters())
    device = like.device
    labels = torch.tensor([row.label for row in rows], device=device)
    total = len(rows) if weights is None else float(weights[labels].sum())
    lengths = np.array([len(row.ids) for row in rows])
    for each in by_tokens(lengths, budget.room(device, "training")):
        indices = np.sort(each)
        batch = collate([rows[index] for index in indices], training_run.network.classes).to(device)
        own = torch.ones(len(indices)) if weights is None else weights[batch.labels].cpu()
        yield MicroBatch(indices, batch, (own.double() / total).to(like))


@dataclass(frozen=True)
class Learner:
    """A network in training: its parameters (auxiliary heads included), optimiser and step function."""

    training_run: TrainingRun
    modules: nn.ModuleDict
    learning: Learning
    optimiser: torch.optim.Adam
    weights: Tensor | None
    step: Step

    @classmethod
    def of(cls, training_run: TrainingRun) -> Learner:
        """Before the first step."""
        network = deepcopy(training_run.network).train()
        learning = Learning(training_run.training, heads(network, training_run.training))
        modules = nn.ModuleDict({"network": network, "heads": learning.heads})
        optimiser = optimiser_of(modules, training_run.training)
        weights = class_weights(training_run.rows, network, training_run.training)
        step = stepper(network, optimiser, weights, training_run.lesson, learning)
        return cls(training_run, modules, learning, optimiser, weights, step)

    @property
    def network(self) -> TextModel:
        network = self.modules["network"]
        assert isinstance(network, TextModel)
        return network

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """All trained parameters, by name."""
        return {name: each for name, each in self.modules.named_parameters() if each.requires_grad}

    @property
    def rules(self) -> dict[str, Rule]:
        """The options of the optimiser for each parameter."""
        found = {id(each): Rule.of(group) for group in self.optimiser.param_groups for each in group["params"]}
        return {name: found[id(each)] for name, each in self.parameters.items()}

    def state(self) -> State:
        """A copy of all parameters and moments."""
        return {name: self._moments(each) for name, each in self.parameters.items()}

    def _moments(self, parameter: nn.Parameter) -> Moments:
        known, value = self.optimiser.state.get(parameter, {}), parameter.detach()
        mean, square, highest = (known[key].clone() if key in known else torch.zeros_like(value) for key in KEYS)
        return Moments(value.clone(), mean, square, highest, int(known.get("step", 0)))

    @torch.no_grad()
    def put(self, state: State) -> None:
        """Restores a state."""
        for name, parameter in self.parameters.items():
            own = state[name]
            parameter.copy_(own.value)
            moments = (own.mean, own.square, own.highest)
            self.optimiser.state[parameter] = {key: each.clone() for key, each in zip(KEYS, moments, strict=True)}
            self.optimiser.state[parameter]["step"] = torch.tensor(float(own.steps), device=parameter.device)

    def losses(self, micro_batch: MicroBatch) -> Float[Tensor, " n"]:
        """The loss of each row of a micro-batch, without its weight."""
        return self.training_run.lesson.losses(self.network, micro_batch.batch, self.learning)


RandomState = tuple[Tensor, ...]
"""Where the generators of random numbers stand."""


def random_state(device: torch.device) -> RandomState:
    """The present state of the random number generators."""
    common = torch.get_rng_state()
    return (common, torch.cuda.get_rng_state(device)) if device.type == "cuda" else (common,)


def set_random_state(states: RandomState, device: torch.device) -> None:
    """Restores the state of the random number generators."""
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


@dataclass(frozen=True)
class Trace:
    """A recorded training: rows and random state of each step, and the learner's state every so many steps."""

    groups: list[Int[np.ndarray, " n"]]
    random_states: list[RandomState]
    states: dict[int, State]
    every: int

    @classmethod
    def of(cls, learner: Learner, every: int) -> Trace:
        """Trains to the end and records it."""
        trace, device = cls([], [], {}, every), learner.training_run.network.device
        for number, group in enumerate(learner.training_run.groups()):
            if number % every == 0:
                trace.states[number] = learner.state()
            trace.groups.append(group)
            trace.random_states.append(random_state(device))
            learner.step([learner.training_run.rows[index] for index in group])
        return trace

    def stretches(self, learner: Learner) -> Iterator[tuple[int, list[State]]]:
        """Segments between recorded states, last first: the first step, and the recomputed state around each step."""
        for start in sorted(self.states, reverse=True):
            learner.put(self.states[start])
            found = [self.states[start]]
            for number in range(start, min(start + self.every, len(self.groups))):
                set_random_state(self.random_states[number], learner.training_run.network.device)
                learner.step([learner.training_run.rows[index] for index in self.groups[number]])
                found.append(learner.state())
            yield start, found
