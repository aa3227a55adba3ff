"""A network in training that can be put back to before any step, dropout and all."""

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
from assay.influence.course import Course
from assay.models.objectives import Learning
from assay.models.regularisers import heads
from assay.models.textmodel import TextModel
from assay.models.training import TRAINING_TOKENS, Step, class_weights, optimiser_of, stepper
from assay.types import Batch

State = dict[str, Moments]
"""All that learns, by name."""

KEYS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")  # as PyTorch calls the moments


@dataclass(frozen=True)
class Portion:
    """Some rows of a step that are read together."""

    places: Int[np.ndarray, " n"]  # among the rows of the step
    batch: Batch
    weights: Float[Tensor, " n"]  # of each row in the loss of the step


def portions(course: Course, group: Int[np.ndarray, " n"], weights: Tensor | None) -> Iterator[Portion]:
    """The rows of a step in the portions in which training reads them."""
    rows, like = [course.rows[place] for place in group], next(course.network.parameters())
    device = like.device
    labels = torch.tensor([row.label for row in rows], device=device)
    total = len(rows) if weights is None else float(weights[labels].sum())
    lengths = np.array([len(row.ids) for row in rows])
    for each in by_tokens(lengths, TRAINING_TOKENS.get(device.type, 8_192)):
        places = np.sort(each)
        batch = collate([rows[place] for place in places], course.network.classes).to(device)
        own = torch.ones(len(places)) if weights is None else weights[batch.labels].cpu()
        yield Portion(places, batch, (own.double() / total).to(like))


@dataclass(frozen=True)
class Learner:
    """A network, all that learns with it, and the step that training consists of."""

    course: Course
    modules: nn.ModuleDict
    learning: Learning
    optimiser: torch.optim.Adam
    weights: Tensor | None
    step: Step

    @classmethod
    def of(cls, course: Course) -> Learner:
        """Before the first step."""
        network = deepcopy(course.network).train()
        learning = Learning(course.training, heads(network, course.training))
        modules = nn.ModuleDict({"network": network, "heads": learning.heads})
        optimiser = optimiser_of(modules, course.training)
        weights = class_weights(course.rows, network, course.training)
        step = stepper(network, optimiser, weights, course.lesson, learning)
        return cls(course, modules, learning, optimiser, weights, step)

    @property
    def network(self) -> TextModel:
        network = self.modules["network"]
        assert isinstance(network, TextModel)
        return network

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """All that learns, by name."""
        return {name: each for name, each in self.modules.named_parameters() if each.requires_grad}

    @property
    def rules(self) -> dict[str, Rule]:
        """The options of the optimiser for each parameter."""
        found = {id(each): Rule.of(group) for group in self.optimiser.param_groups for each in group["params"]}
        return {name: found[id(each)] for name, each in self.parameters.items()}

    def state(self) -> State:
        """A copy of all that steps change."""
        return {name: self._moments(each) for name, each in self.parameters.items()}

    def _moments(self, parameter: nn.Parameter) -> Moments:
        known, value = self.optimiser.state.get(parameter, {}), parameter.detach()
        mean, square, highest = (known[key].clone() if key in known else torch.zeros_like(value) for key in KEYS)
        return Moments(value.clone(), mean, square, highest, int(known.get("step", 0)))

    @torch.no_grad()
    def put(self, state: State) -> None:
        """Goes back to a state."""
        for name, parameter in self.parameters.items():
            own = state[name]
            parameter.copy_(own.value)
            moments = (own.mean, own.square, own.highest)
            self.optimiser.state[parameter] = {key: each.clone() for key, each in zip(KEYS, moments, strict=True)}
            self.optimiser.state[parameter]["step"] = torch.tensor(float(own.steps), device=parameter.device)

    def losses(self, portion: Portion) -> Float[Tensor, " n"]:
        """The loss of each row of a portion, without its weight."""
        return self.course.lesson.losses(self.network, portion.batch, self.learning)


Dice = tuple[Tensor, ...]
"""Where the generators of random numbers stand."""


def dice(device: torch.device) -> Dice:
    """Where they stand now."""
    common = torch.get_rng_state()
    return (common, torch.cuda.get_rng_state(device)) if device.type == "cuda" else (common,)


def put_dice(states: Dice, device: torch.device) -> None:
    """Puts the generators back."""
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


@dataclass(frozen=True)
class Trace:
    """What was kept of a training: the rows and dice of each step, and the state before every so many."""

    groups: list[Int[np.ndarray, " n"]]
    dice: list[Dice]
    states: dict[int, State]
    every: int

    @classmethod
    def of(cls, learner: Learner, every: int) -> Trace:
        """Trains to the end."""
        trace, device = cls([], [], {}, every), learner.course.network.device
        for number, group in enumerate(learner.course.groups()):
            if number % every == 0:
                trace.states[number] = learner.state()
            trace.groups.append(group)
            trace.dice.append(dice(device))
            learner.step([learner.course.rows[place] for place in group])
        return trace

    def stretches(self, learner: Learner) -> Iterator[tuple[int, list[State]]]:
        """The stretches between states that were kept, last first: the first step, and the states around each step."""
        for start in sorted(self.states, reverse=True):
            learner.put(self.states[start])
            found = [self.states[start]]
            for number in range(start, min(start + self.every, len(self.groups))):
                put_dice(self.dice[number], learner.course.network.device)
                learner.step([learner.course.rows[place] for place in self.groups[number]])
                found.append(learner.state())
            yield start, found
