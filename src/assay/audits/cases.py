"""Interfaces of audits: input (Case), output (Answer) and protocol (Audit), one batch at a time."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.explainers.needs import no_pooling
from assay.models.textmodel import in_double
from assay.types import Batch, Explainer, Model, PooledModel, attended, over_tokens, token_logits

Numbers = dict[str, Float[np.ndarray, " B"]]
"""A number of each text, by measure and subject."""


@dataclass(frozen=True)
class Case:
    """One batch with the model and the scores of every explainer for the predicted class.

    `planted` says that the batch's truth decides by construction; else it is what people hold to be the reason. The
    model may be in double precision, where ranks are compared; `stored` is then the same as it was stored.
    """

    model: Model
    batch: Batch
    scores: Mapping[str, Float[Tensor, "B T"]]
    seed: int = 0
    explainers: Mapping[str, Explainer] = field(default_factory=dict)
    planted: bool = False
    stored: Model | None = None

    @property
    def quick(self) -> Model:
        """The model in its stored precision, for the many forward passes of which only a mean is used."""
        return self.model if self.stored is None else self.stored

    def part(self, rows: Bool[Tensor, " B"]) -> Case:
        """The case restricted to some of its texts."""
        chosen = rows.nonzero()[:, 0]
        scores = {name: values[chosen] for name, values in self.scores.items()}
        return replace(self, batch=self.batch[chosen], scores=scores)

    @cached_property
    def probabilities(self) -> Float[Tensor, "B C"]:
        """The class probabilities of each whole text."""
        with torch.no_grad():
            return self.model(self.model.embed(self.batch), self.batch).probabilities

    @cached_property
    def predicted(self) -> Int[Tensor, " B"]:
        """The predicted class, which all scores are for."""
        return self.probabilities.argmax(-1)

    @cached_property
    def items(self) -> Bool[Tensor, "B N"]:
        """The mask of real attended items, tokens or sentences."""
        assert isinstance(self.model, PooledModel)
        return attended(self.model, self.batch)

    @cached_property
    def _states(self) -> Float[Tensor, "B N M"]:
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return self.model.states(self.model.embed(self.batch), self.batch)

    @cached_property
    def weights(self) -> Float[Tensor, "B N"]:
        """The observed attention to the items, in double precision."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return self.model.attend(self._states, self.batch).double()

    @cached_property
    def values(self) -> Float[Tensor, "B N C"]:
        """The logits of each item alone; attention weights average them into the text's logits."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return token_logits(self.model, self._states).double()

    @cached_property
    def empty(self) -> Float[Tensor, "B C"]:
        """The logits of the zero context vector, that is with every item erased."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return self.model.decode(self._states, torch.zeros_like(self._states[..., 0])).double()

    def shown(self, weights: Float[Tensor, "B N"]) -> Float[Tensor, "B T"]:
        """Item weights as token weights: a sentence's weight is shared among its words."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            within = self.model.within(self.model.embed(self.batch), self.batch)
            return over_tokens(self.model, weights, self.batch) * within


@dataclass(frozen=True)
class Answer:
    """Results: a number for each example ("measure" or "measure:subject"), and token weights to display."""

    measures: dict[str, Float[np.ndarray, " B"]]
    weights: dict[str, Float[np.ndarray, "B T"]] = field(default_factory=dict)


@runtime_checkable
class Audit(Protocol):
    """Protocol: one published question, with its options as fields; the module's docstring is the question."""

    @property
    def paper(self) -> str: ...
    def kind(self, classes: int) -> str:
        """The reliability of the numbers in float64: "exact", "bracket", "sample", "lower bound" or "search"."""

    def unfit(self, case: Case) -> str | None:
        """Why the audit does not apply to this model, or None."""

    def __call__(self, case: Case) -> Answer: ...


@runtime_checkable
class SearchingAudit(Protocol):
    """An audit that on some models can only search, whatever the number of classes."""

    def searches(self, model: Model) -> bool: ...


def trust(audit: Audit, model: Model, classes: int) -> str:
    """The reliability of an audit's numbers on this model: its kind, or "to rounding" for "exact" in float32."""
    if isinstance(audit, SearchingAudit) and audit.searches(model):
        return "lower bound"
    kind = audit.kind(classes)
    return "to rounding" if kind == "exact" and not in_double(model) else kind


def question(audit: Audit) -> str:
    """The question that an audit answers."""
    return (sys.modules[type(audit).__module__].__doc__ or "").strip()


def without_pooling(case: Case) -> str | None:
    """Why audits that replace the attention of a linear decoder do not apply, or None."""
    return no_pooling(case.model)


def numpy(tensor: Tensor) -> np.ndarray:
    """The tensor as a float64 array."""
    return tensor.detach().double().cpu().numpy()
