"""Checkpoints: a training at some of its steps."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.errors import AssayError
from assay.influence.setting import Setting
from assay.influence.training_run import TrainingRun
from assay.models.textmodel import TextModel

UNKNOWN_TRAINING = "how the model was trained is not known"


@dataclass(frozen=True)
class Checkpoint:
    """A network after some steps of training, the steps it stands for, the learning rate, and Adam's denominator."""

    network: TextModel
    stands_for: int  # steps since the last checkpoint
    rate: float  # of learning
    spread: dict[str, Tensor]  # by which Adam divides its steps

    def setting(self, setting: Setting) -> Setting:
        """The setting with this network in place of the trained one."""
        return replace(setting, network=self.network)


def checkpoints(training_run: TrainingRun, count: int) -> list[Checkpoint]:
    """So many checkpoints at equal distances, the last after the last step; they are kept in memory."""
    steps = np.unique(np.linspace(0, training_run.steps, count + 1).round().astype(int))
    lengths = dict(zip(steps[1:].tolist(), np.diff(steps).tolist(), strict=True))
    found: list[Checkpoint] = []

    def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
        if number in lengths:
            rate = float(optimiser.param_groups[0]["lr"])
            found.append(Checkpoint(deepcopy(network).eval(), lengths[number], rate, adam_spread(network, optimiser)))

    training_run.learn(watch=watch)
    return found


def adam_spread(network: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The square roots of Adam's second moments; nothing for another optimiser."""
    found: dict[str, Tensor] = {}
    groups: dict[int, dict[str, Any]] = {
        id(each): group for group in optimiser.param_groups for each in group["params"]
    }
    for name, parameter in network.named_parameters():
        state = optimiser.state.get(parameter, {})
        moment = state.get("max_exp_avg_sq", state.get("exp_avg_sq"))
        if moment is not None:
            options = groups[id(parameter)]
            root = (1 - options["betas"][1] ** float(state["step"])) ** 0.5
            found[name] = moment.detach().sqrt() / root + options["eps"]
    return found


def training_run_of(setting: Setting) -> TrainingRun:
    """The training of the rows of the setting, or an error where it is unknown."""
    if setting.training_run is None:
        raise AssayError(f"This method cannot be used: {UNKNOWN_TRAINING}.")
    if len(setting.training_run.rows) != len(setting.train):
        raise AssayError("The training rows are not those that the model was trained on; give these.")
    return setting.training_run
