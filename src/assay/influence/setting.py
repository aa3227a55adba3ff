"""The interface of influence methods: what they are given (Setting) and what they return (Influence)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay import progress
from assay.data.batches import Tokenised, by_tokens, collate
from assay.errors import AssayError
from assay.influence import targets
from assay.influence.gradients import Gradients, Reader, Reading
from assay.influence.training_run import TrainingRun
from assay.models import budget
from assay.models.textmodel import TextModel, predict
from assay.types import Batch

Scores = Float[np.ndarray, "Q N"]
"""A number for each query and training example."""

PerExample = Float[np.ndarray, " N"]
"""A number for each training example."""

Labels = Int[np.ndarray, " N"]
"""The class of each row."""

Indices = Int[np.ndarray, " n"]
"""Some rows, by their indices."""

Texts = Sequence[Tokenised]
"""Rows of a corpus."""


@dataclass(frozen=True)
class Influence:
    """Predicted change of each query's target by the removal of each training example.

    With the target "margin", a negative score is an example that supports the decision: without it the model would be
    less sure. With "loss" it is the other way round.
    """

    scores: Scores
    covered: float = 1.0  # the share of the parameters that took part
    errors: Scores | None = None  # standard errors, where there are any
    notes: Mapping[str, Any] = field(default_factory=dict)  # options that were chosen, such as the damping
    facts: Sequence[Mapping[str, Any]] = ()  # what else is known of each query's answer, such as its conformity


@dataclass(frozen=True)
class Setting:
    """A network, its training rows, and the queries whose targets are to be explained.

    It is held to minimise (1/N) Σ_i weights[i] loss_i(θ) + Σ_p decay[p] ‖θ_p‖² / 2; to remove an example is to set its
    weight to 0.
    """

    network: TextModel
    train: Texts
    queries: Texts
    classes: Int[np.ndarray, " Q"]  # that each query is asked about
    target: str = "margin"
    weights: PerExample = field(default_factory=lambda: np.ones(0))  # default: 1 each
    decay: Mapping[str, float] = field(default_factory=dict)  # default: 0 each
    training_run: TrainingRun | None = None  # how the network was trained, where that is known

    @classmethod
    def of(
        cls,
        network: TextModel,
        train: Texts,
        queries: Texts,
        target: str = "margin",
        classes: Int[np.ndarray, " Q"] | None = None,
        training_run: TrainingRun | None = None,
    ) -> Setting:
        """Queries about the predicted classes, or where the target is the loss, about the labels."""
        targets.target(target)
        if classes is None:
            labels = labels_of(queries)
            classes = labels if target == "loss" else predict(network, queries).argmax(-1)
        known: dict[str, Any] = {}
        if training_run is not None:
            known = {"weights": training_run.weights(), "decay": training_run.decay()}
        classes = np.asarray(classes)
        return cls(network.eval(), train, queries, classes, target, training_run=training_run, **known)

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

    @property
    def size(self) -> int:
        """The number of trained parameters."""
        return sum(each.numel() for each in self.parameters.values())

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the parameters, single precision at least."""
        kinds = {each.dtype for each in self.parameters.values()}
        return torch.float64 if torch.float64 in kinds else torch.float32

    @property
    def labels(self) -> Labels:
        """The class of each training example."""
        return labels_of(self.train)

    @property
    def shares(self) -> PerExample:
        """The share of each training example in the mean loss."""
        return np.asarray(self.weights / len(self.train))

    def some_queries(self, start: int, stop: int) -> Setting:
        """The setting with some of its queries."""
        own = slice(start, stop)
        part = replace(self, queries=self.queries[own], classes=self.classes[own])
        vars(part)["reader"] = self.reader  # what was learnt about the network holds for all parts
        return part

    def zeros(self) -> Scores:
        """Scores of 0."""
        return np.zeros((len(self.queries), len(self.train)))

    @property
    def untrainable(self) -> str | None:
        """Why the training cannot be repeated, as the end of a sentence, or None."""
        if self.training_run is None:
            return "how the model was trained is not known"
        if len(self.training_run.rows) != len(self.train):
            return "it was trained on other examples than those that are asked about"
        return None

    def repeatable_training(self) -> TrainingRun:
        """The training of these rows; raises where it is unknown."""
        refuse(self.untrainable)
        assert self.training_run is not None
        return self.training_run

    def batches(self, rows: Texts, tokens: int | None = None) -> Iterator[tuple[Indices, Batch]]:
        """Batches of rows of like length, with their indices."""
        device = self.network.device
        most = tokens or budget.room(device, "activations")
        for group in by_tokens(np.array([len(row.ids) for row in rows]), most):
            yield np.asarray(group), collate([rows[index] for index in group], self.network.classes).to(device)

    def logits(self, batch: Batch) -> Float[Tensor, "B C"]:
        """The network's logits."""
        found: Tensor = self.network(self.network.embed(batch), batch).logits
        return found

    def query_logit_gradients(self, indices: Indices, reading: Reading) -> Float[Tensor, "n C"]:
        """The derivatives of the targets of some queries by their logits."""
        classes = torch.from_numpy(self.classes[indices]).to(reading.logits.device)
        return targets.logit_gradients(self.target, reading.logits, classes)

    def train_logit_gradients(self, batch: Batch, reading: Reading) -> Float[Tensor, "n C"]:
        """The derivatives of the unweighted losses of some training rows by their logits."""
        return targets.logit_gradients("loss", reading.logits, batch.labels)

    def query_gradients(self) -> Iterator[tuple[Indices, Gradients]]:
        """The gradients of the targets of all queries, a batch at a time, with their indices."""
        for indices, batch in self.batches(self.queries):
            reading = self.reader.read(batch)
            yield indices, reading.gradients(self.query_logit_gradients(indices, reading))

    def train_gradients(
        self, rows: Texts | None = None, label: str = "training examples"
    ) -> Iterator[tuple[Indices, Gradients]]:
        """The gradients of the unweighted losses of training rows, a batch at a time, with their indices."""
        rows = self.train if rows is None else rows
        with progress.bar() as shown:
            task = shown.add_task(label, total=len(rows))
            for indices, batch in self.batches(rows):
                reading = self.reader.read(batch)
                yield indices, reading.gradients(self.train_logit_gradients(batch, reading))
                shown.advance(task, len(indices))


def labels_of(rows: Texts) -> Labels:
    """The class of each row."""
    return np.array([row.label for row in rows])


@runtime_checkable
class Method(Protocol):
    """Protocol of influence methods: predicts the effect of removing each training example."""

    def unfit(self, setting: Setting) -> str | None:
        """What the model or its training lacks, as the end of a sentence, or None."""

    def __call__(self, setting: Setting) -> Influence: ...


class Unconditional:
    """Base of methods that any setting serves."""

    def unfit(self, setting: Setting) -> str | None:
        return None


class Repeating:
    """Base of methods that repeat the training."""

    def unfit(self, setting: Setting) -> str | None:
        return setting.untrainable


def refuse(reason: str | None) -> None:
    """Raises where there is a reason why a method cannot be used, as of `unfit`."""
    if reason is not None:
        raise AssayError(f"This method cannot be used: {reason}.")


@runtime_checkable
class Introspective(Protocol):
    """A method that also predicts the rise of each training example's own loss (self-influence)."""

    def own(self, setting: Setting) -> PerExample:
        """The predicted rise of each training example's own loss if it were removed."""
