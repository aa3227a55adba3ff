"""The interface of influence methods: what they are given (Setting) and what they return (Influence)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.data.batches import Tokenised, by_tokens, collate
from assay.influence import targets
from assay.influence.gradients import Reader, Reading
from assay.influence.training_run import TrainingRun
from assay.models import budget
from assay.models.textmodel import TextModel, predict
from assay.types import Batch


@dataclass(frozen=True)
class Influence:
    """Predicted change of each query's target by the removal of each training example.

    With the target "margin", a negative score is an example that supports the decision: without it the model would be
    less sure. With "loss" it is the other way round.
    """

    scores: Float[np.ndarray, "Q N"]
    covered: float = 1.0  # the share of the parameters that took part
    errors: Float[np.ndarray, "Q N"] | None = None  # standard errors, where there are any
    notes: Mapping[str, Any] = field(default_factory=dict)  # what was chosen on the way, such as the damping


@dataclass(frozen=True)
class Setting:
    """A network, its training rows, and the queries whose targets are to be explained.

    It is held to minimise (1/N) Σ_i weights[i] loss_i(θ) + Σ_p decay[p] ‖θ_p‖² / 2; to remove an example is to set its
    weight to 0.
    """

    network: TextModel
    train: Sequence[Tokenised]
    queries: Sequence[Tokenised]
    classes: Int[np.ndarray, " Q"]  # that each query is asked about
    target: str = "margin"
    weights: Float[np.ndarray, " N"] = field(default_factory=lambda: np.ones(0))  # none given: 1 for each
    decay: Mapping[str, float] = field(default_factory=dict)  # none given: 0 for each
    training_run: TrainingRun | None = None  # how the network was trained, where that is known

    @classmethod
    def of(
        cls,
        network: TextModel,
        train: Sequence[Tokenised],
        queries: Sequence[Tokenised],
        target: str = "margin",
        classes: Int[np.ndarray, " Q"] | None = None,
        training_run: TrainingRun | None = None,
    ) -> Setting:
        """Queries about the predicted classes, or where the target is the loss, about the labels."""
        targets.target(target)
        if classes is None:
            labels = np.array([row.label for row in queries])
            classes = labels if target == "loss" else predict(network, queries).argmax(-1)
        known: dict[str, Any] = (
            {} if training_run is None else {"weights": training_run.weights(), "decay": training_run.decay()}
        )
        return cls(network.eval(), train, queries, np.asarray(classes), target, training_run=training_run, **known)

    def __post_init__(self) -> None:
        if not len(self.weights):
            object.__setattr__(self, "weights", np.ones(len(self.train)))

    @cached_property
    def reader(self) -> Reader:
        return Reader(self.network)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """The parameters that were trained, by name."""
        return {name: each for name, each in self.network.named_parameters() if each.requires_grad}

    def batches(
        self, rows: Sequence[Tokenised], tokens: int | None = None
    ) -> Iterator[tuple[Int[np.ndarray, " n"], Batch]]:
        """Batches of rows of like length, with their indices."""
        device = self.network.device
        most = tokens or budget.room(device, "activations")
        for group in by_tokens(np.array([len(row.ids) for row in rows]), most):
            yield np.asarray(group), collate([rows[index] for index in group], self.network.classes).to(device)

    def query_logit_gradients(self, indices: Int[np.ndarray, " n"], reading: Reading) -> Float[Tensor, "n C"]:
        """The derivatives of the targets of some queries by their logits."""
        classes = torch.from_numpy(self.classes[indices]).to(reading.logits.device)
        return targets.logit_gradients(self.target, reading.logits, classes)

    def train_logit_gradients(self, batch: Batch, reading: Reading) -> Float[Tensor, "n C"]:
        """The derivatives of the unweighted losses of some training rows by their logits."""
        return targets.logit_gradients("loss", reading.logits, batch.labels)


@runtime_checkable
class Method(Protocol):
    """Protocol of influence methods: predicts the effect of removing each training example."""

    def unfit(self, setting: Setting) -> str | None:
        """What the model or its training lacks, as the end of a sentence, or None."""

    def __call__(self, setting: Setting) -> Influence: ...


@runtime_checkable
class Introspective(Protocol):
    """A method that also predicts the rise of each training example's own loss (self-influence)."""

    def own(self, setting: Setting) -> Float[np.ndarray, " N"]:
        """The predicted rise of each training example's own loss if it were removed."""
