"""Unrolled differentiation: the gradient of each answer by the weight of each training example, through training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from assay import progress
from assay.errors import AssayError
from assay.influence.replay import Learner, Trace
from assay.influence.setting import Influence, Repeating, Scores, Setting
from assay.influence.similarity import query_gradients
from assay.influence.stories import CHANGE
from assay.influence.training_backward import BackwardPass
from assay.stories import with_story

SAME = 1e-3  # how far weights that were trained again may be from those of the model, as a share of their norm


@with_story("Unrolled training", "Maclaurin et al. (2015); Ilyas and Engstrom (2025), MAGIC", like=CHANGE)
@dataclass(frozen=True)
class Unrolled(Repeating):
    """−d target / d weight of each example, through every step of the training as it was.

    Exact for small changes of a weight; what it says of a removal is the first order of that. Maclaurin et al. (2015)
    go back through training like this; Ilyas and Engstrom (2025), MAGIC, attribute answers so. The training is gone
    through twice, and some states of it are kept on the way, as Griewank (1992) does for long computations.
    """

    queries_at_once: int = 32  # each takes four times the memory of the network
    keep: int | None = None  # a state is kept before every so many steps; None: the root of their number

    def __post_init__(self) -> None:
        if self.queries_at_once < 1 or (self.keep is not None and self.keep < 1):
            raise AssayError("Queries at once and the steps between states that are kept are whole numbers from 1.")

    def __call__(self, setting: Setting) -> Influence:
        training_run = setting.repeatable_training()
        every = self.keep or math.ceil(math.sqrt(training_run.steps))
        with torch.random.fork_rng(), progress.bar() as shown:
            begun = time.perf_counter()
            learner = Learner.of(training_run)
            trace = Trace.of(learner, every)
            trained = time.perf_counter() - begun
            _check(learner.network, setting.network)
            starts = range(0, len(setting.queries), self.queries_at_once)
            parts = [setting.some_queries(start, start + self.queries_at_once) for start in starts]
            task = shown.add_task("steps back through training", total=len(parts) * len(trace.groups))
            found = [_unrolled(part, learner, trace, partial(shown.advance, task)) for part in parts]
            spent = time.perf_counter() - begun - trained
        notes = {
            "steps": len(trace.groups),
            "kept_every": every,
            "seconds_of_training": trained,
            "trainings_a_query": spent / trained / len(setting.queries),
            "largest_gap_of_a_gradient": max(gap for _, gap in found),
        }
        return Influence(np.concatenate([scores for scores, _ in found]), notes=notes)


def _unrolled(setting: Setting, learner: Learner, trace: Trace, advance: Callable[[], None]) -> tuple[Scores, float]:
    """Scores of some queries, and the largest relative error of a recomputed gradient."""
    scores = setting.zeros()
    back = BackwardPass.of(learner, trace, query_gradients(setting))
    for start, states in trace.stretches(learner):
        for index in reversed(range(len(states) - 1)):
            scores[:, trace.groups[start + index]] -= back.step(start + index, states[index], states[index + 1])
            advance()
    if not np.isfinite(scores).all():
        raise AssayError("The loss that the model was trained by has no second derivative, so it cannot be unrolled.")
    return scores, back.gap


def _check(again: nn.Module, network: nn.Module) -> None:
    """Raises where repeated training does not end in this network."""
    pairs = [
        (own.detach().double(), other.detach().double())
        for own, other in zip(network.parameters(), again.parameters(), strict=True)
    ]
    apart = math.sqrt(sum(float((own - other).square().sum()) for own, other in pairs))
    size = math.sqrt(sum(float(own.square().sum()) for own, _ in pairs))
    if not apart <= SAME * size:
        raise AssayError(
            f"Training again did not end in the weights of this model (they are {apart / size:.1g} of their size "
            "apart), so its training cannot be unrolled; train it anew on this machine, from the same corpus."
        )
