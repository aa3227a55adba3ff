"""Replay of a training step by step, and several trainings at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.data.batches import by_tokens, collate
from assay.influence.training_run import TrainingRun
from assay.models import budget
from assay.models.fit import ClassifierTrainer, Members
from assay.models.textmodel import TextModel
from assay.types import Batch

SLACK = 1e-6  # that PyTorch adds to the norm of a gradient before it clips


@dataclass(frozen=True)
class Moments:
    """A parameter with Adam's running means: of gradients, of their squares, and the largest of the latter (amsgrad).

    Gradients of targets with respect to these (adjoints) have the same form, with one more axis in front.
    """

    value: Tensor
    mean: Tensor
    square: Tensor
    highest: Tensor
    steps: int = 0


@dataclass(frozen=True)
class Rule:
    """Adam (Kingma and Ba, 2015) with amsgrad (Reddi et al., 2018): its options for one parameter."""

    rate: float
    betas: tuple[float, float]
    smallest: float  # is added to the root of the squares
    decay: float

    @classmethod
    def of(cls, group: Mapping[str, Any]) -> Rule:
        """From a parameter group of PyTorch's optimiser."""
        return cls(group["lr"], tuple(group["betas"]), group["eps"], group["weight_decay"])

    def step(self, before: Moments, gradient: Tensor) -> Moments:
        """Parameter and moments after one step; `gradient` is clipped, and without weight decay."""
        decayed = gradient + self.decay * before.value
        mean = before.mean.lerp(decayed, 1 - self.betas[0])
        square = self.betas[1] * before.square + (1 - self.betas[1]) * decayed.square()
        highest = torch.maximum(before.highest, square)
        length, root = self._corrections(before.steps + 1)
        value = before.value - length * mean / (highest.sqrt() / root + self.smallest)
        return Moments(value, mean, square, highest, before.steps + 1)

    def backward(self, before: Moments, after: Moments, gradient: Tensor, adjoints: Moments) -> tuple[Moments, Tensor]:
        """Backward pass of one step: adjoints before it, but for the path through the gradient, and the gradient's."""
        length, root = self._corrections(after.steps)
        deviation = after.highest.sqrt()
        spread = deviation / root + self.smallest
        moved = length * adjoints.value / spread
        mean = adjoints.mean - moved
        # a square of 0 belongs to what never had a gradient, so nothing goes through its root
        steep = torch.where(after.highest > 0, 0.5 / (root * deviation), 0.0)
        highest = adjoints.highest + moved * (after.mean / spread * steep)
        risen = after.highest > before.highest
        square = adjoints.square + highest * risen
        decayed = gradient + self.decay * before.value
        by_gradient = (1 - self.betas[0]) * mean + 2 * (1 - self.betas[1]) * decayed * square
        value = adjoints.value + self.decay * by_gradient
        return Moments(value, self.betas[0] * mean, self.betas[1] * square, highest * ~risen), by_gradient

    def _corrections(self, steps: int) -> tuple[float, float]:
        """Bias corrections after so many steps: the step length, and the factor of the square root."""
        return self.rate / (1 - self.betas[0] ** steps), math.sqrt(1 - self.betas[1] ** steps)


def adam_states(
    network: nn.Module, optimiser: torch.optim.Optimizer
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The name, options and state of each parameter that Adam has moved."""
    names = {id(each): name for name, each in network.named_parameters()}
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            state = optimiser.state.get(parameter, {})
            if id(parameter) in names and "exp_avg_sq" in state:
                yield names[id(parameter)], group, state


def divided(group: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Adam's second moment of a parameter, and the denominator of its steps."""
    moment = state.get("max_exp_avg_sq", state["exp_avg_sq"]).detach()
    root = (moment / (1 - group["betas"][1] ** float(state["step"]))).sqrt()
    return moment, root + group["eps"]


Tensors = Mapping[str, Tensor]


def shrinkage(gradients: Tensors, limit: float | None) -> Float[Tensor, S] | float:
    """Gradient clipping: the factor of each of S networks' gradients [S, ...], 1 where within the limit."""
    return 1.0 if limit is None else (limit / (norms(gradients) + SLACK)).clamp(max=1.0)


def norms(gradients: Tensors) -> Float[Tensor, S]:
    """The norm of all gradients together, for each network."""
    found: Tensor = torch.stack([each.flatten(1).norm(dim=1) for each in gradients.values()]).norm(dim=0)
    return found


def clipping_backward(gradients: Tensors, adjoints: Tensors, limit: float | None) -> dict[str, Tensor]:
    """Backward pass of gradient clipping: adjoints [Q, ...] of raw gradients, from those of clipped ones."""
    if limit is None:
        return dict(adjoints)
    norm = norms({name: each[None] for name, each in gradients.items()})[0]
    share = limit / (norm + SLACK)
    if share >= 1:
        return dict(adjoints)
    along = torch.stack([adjoints[name].flatten(1) @ each.flatten() for name, each in gradients.items()]).sum(0)
    pull = along * share / ((norm + SLACK) * norm)
    return {name: share * adjoints[name] - pull.view(-1, *[1] * each.dim()) * each for name, each in gradients.items()}


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
    trainer: ClassifierTrainer

    @classmethod
    def of(cls, training_run: TrainingRun) -> Learner:
        """Before the first step."""
        return cls(training_run, training_run.trainer())

    @property
    def network(self) -> TextModel:
        return self.trainer.network

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        return self.trainer.optimiser

    @property
    def weights(self) -> Tensor | None:
        """The weights of the classes."""
        return self.trainer.weights

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """All trained parameters, by name."""
        return {name: each for name, each in self.trainer.learner.named_parameters() if each.requires_grad}

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
        return self.training_run.lesson.losses(self.network, micro_batch.batch, self.trainer.learning)


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
            learner.trainer.step(group)
        return trace

    def stretches(self, learner: Learner) -> Iterator[tuple[int, list[State]]]:
        """Segments between recorded states, last first: the first step, and the recomputed state around each step."""
        for start in sorted(self.states, reverse=True):
            learner.put(self.states[start])
            found = [self.states[start]]
            for number in range(start, min(start + self.every, len(self.groups))):
                set_random_state(self.random_states[number], learner.training_run.network.device)
                learner.trainer.step(self.groups[number])
                found.append(learner.state())
            yield start, found


def learn_together(training_run: TrainingRun, shares: Float[np.ndarray, "S N"]) -> Members:
    """Trains networks together, each with its own weights of the rows; `TrainingRun.learn` of each, up to rounding."""
    with torch.random.fork_rng():
        members = Members.of([training_run.trainer()] * len(shares))
        for group in training_run.groups():
            members.step(group, torch.from_numpy(shares[:, group]))
    return members
