"""TracIn: influence as gradient products summed over the steps or checkpoints of training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.influence.checkpoints import UNKNOWN_TRAINING, Checkpoint, checkpoints, training_run_of
from assay.influence.products import Vectors, products, query_gradients
from assay.influence.setting import Influence, Setting
from assay.influence.signs import Signs, summarised
from assay.influence.similarity import dots, over_train, shares, squares
from assay.influence.stories import CHANGE
from assay.models.textmodel import TextModel
from assay.stories import with_story

METRICS = ("plain", "adam")


@with_story("TracIn", "Pruthi et al. (2020), equation 4", like=CHANGE)
@dataclass(frozen=True)
class TracIn:
    """Gradient products at checkpoints, times the learning rate; Pruthi et al. (2020), equation 4.

    Models here are trained by Adam, whose learning rate stands for the length of a step and not for what a gradient is
    multiplied by. The plain method ignores that, so its scores have the right order of magnitude only by chance; with
    the metric "adam", gradients are divided by the roots of Adam's second moments, as in training.
    """

    checkpoints: int = 6
    metric: str = "plain"
    steps: bool = True  # each checkpoint counts for all steps since the last; differs from the paper: it counts for one

    def __post_init__(self) -> None:
        if self.checkpoints < 1:
            raise AssayError(f"TracIn needs at least 1 checkpoint, got {self.checkpoints}.")
        if self.metric not in METRICS:
            raise unknown("metric", self.metric, METRICS)

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown: it is repeated."""
        return UNKNOWN_TRAINING if setting.training_run is None else None

    def __call__(self, setting: Setting) -> Influence:
        found = np.zeros((len(setting.queries), len(setting.train)))
        for each in self.passed(setting):
            scale = self._scale(each)

            def divided(vectors: Vectors, scale: Mapping[str, Tensor] = scale) -> Vectors:
                return {name: vector * scale[name] if scale else vector for name, vector in vectors.items()}

            found += self.length(each) * dots(each.setting(setting), divided)
        return Influence(found * shares(setting), notes=self._notes())

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The rise of each loss without the example's own contributions to training."""
        found = np.zeros(len(setting.train))
        for each in self.passed(setting):
            roots = {name: scale.sqrt() for name, scale in self._scale(each).items()}
            found += self.length(each) * over_train(each.setting(setting), partial(squares, scales=roots))
        return np.asarray(found * shares(setting))

    def passed(self, setting: Setting) -> list[Checkpoint]:
        """The checkpoints."""
        return checkpoints(training_run_of(setting), self.checkpoints)

    def length(self, checkpoint: Checkpoint) -> float:
        """The factor of the products at a checkpoint."""
        return checkpoint.rate * (checkpoint.stands_for if self.steps else 1)

    def _scale(self, checkpoint: Checkpoint) -> dict[str, Tensor]:
        """Adam's preconditioner, in its metric."""
        return {} if self.metric == "plain" else {name: 1 / each for name, each in checkpoint.spread.items()}

    def _notes(self) -> dict[str, Any]:
        read = "the length of an Adam step" if self.metric == "adam" else "what gradients are multiplied by"
        return {"checkpoints": self.checkpoints, "metric": self.metric, "the learning rate is read as": read}


@with_story("TracIn by random projection", "Pruthi et al. (2020), section 3.4", like=CHANGE)
@dataclass(frozen=True)
class TracInProjected:
    """TracIn over all parameters by random sketches of gradients, with their standard error.

    Pruthi et al. (2020), section 3.4. differs from the paper: they project gradients of the last layer.
    """

    checkpoints: int = 6
    size: int = 1_024  # numbers a summary
    steps: bool = True
    seed: int = 0

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown: it is repeated."""
        return UNKNOWN_TRAINING if setting.training_run is None else None

    def __call__(self, setting: Setting) -> Influence:
        found, variance = np.zeros((2, len(setting.queries), len(setting.train)))
        method = TracIn(self.checkpoints, steps=self.steps)
        for number, each in enumerate(method.passed(setting)):
            signs = Signs.drawn(setting.parameters, self.size, self.seed + number)
            asked, learnt = summaries(each.setting(setting), signs)
            mean, spread = summarised(asked, learnt)
            found += method.length(each) * mean
            variance += method.length(each) ** 2 * spread
        errors = np.sqrt(variance) * shares(setting)
        notes = {"checkpoints": self.checkpoints, "size": self.size, "errors": "of the projection alone"}
        return Influence(found * shares(setting), errors=errors, notes=notes)


def summaries(setting: Setting, signs: Signs) -> tuple[Float[np.ndarray, "Q K"], Float[np.ndarray, "N K"]]:
    """Sketches of the gradients of the queries' targets and of the training rows' losses."""
    size = next(iter(signs.rows.values())).shape[1]
    asked, learnt = np.zeros((len(setting.queries), size)), np.zeros((len(setting.train), size))
    for found, rows in ((asked, setting.queries), (learnt, setting.train)):
        for indices, batch in setting.batches(rows):
            reading = setting.reader.read(batch)
            wanted = (
                setting.query_logit_gradients(indices, reading)
                if found is asked
                else setting.train_logit_gradients(batch, reading)
            )
            found[indices] = signs(reading.gradients(wanted)).double().cpu().numpy()
    return asked, learnt


@dataclass(frozen=True)
class TracInIdeal:
    """TracIn at every step, for the examples of its batch; Pruthi et al. (2020), equation 2.

    As long as steps are short, they add up to what the training changed. The learning rate is that of plain descent.
    """

    def unfit(self, setting: Setting) -> str | None:
        """Where the training is unknown: it is repeated."""
        return UNKNOWN_TRAINING if setting.training_run is None else None

    def __call__(self, setting: Setting) -> Influence:
        training_run = training_run_of(setting)
        found = np.zeros((len(setting.queries), len(setting.train)))
        with torch.random.fork_rng():
            groups = list(training_run.groups())
        known: dict[str, Setting] = {}

        def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
            if number < len(groups):
                rate, group = float(optimiser.param_groups[0]["lr"]), groups[number]
                network.eval()  # without dropout
                part = setting.weights[group] / setting.weights[group].sum()
                if "now" not in known:  # it is the same network at every step
                    known["now"] = replace(setting, network=network)
                found[:, group] += rate * part * _step(known["now"], group)
                network.train()

        training_run.learn(watch=watch)
        return Influence(found, notes={"steps": len(groups)})


def _step(setting: Setting, group: Int[np.ndarray, " n"]) -> Float[np.ndarray, "Q n"]:
    """Products of the query gradients with those of the rows of one step."""
    vectors, rows = query_gradients(setting), [setting.train[index] for index in group]
    found = np.zeros((len(setting.queries), len(rows)))
    for indices, batch in setting.batches(rows):
        reading = setting.reader.read(batch)
        gradients = reading.gradients(setting.train_logit_gradients(batch, reading))
        found[:, indices] = products(gradients, vectors).double().cpu().numpy()
    return found
