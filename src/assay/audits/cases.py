"""What an audit is given and what it gives back, a batch at a time."""

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
from assay.models.precision import in_double
from assay.types import Batch, Explainer, Model, PooledModel, attended, over_tokens, token_logits


@dataclass(frozen=True)
class Case:
    """One batch with the scores of every explainer for the predicted class.

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
        """The model in the precision that it was stored in: for the many readings that only a mean is taken of."""
        return self.model if self.stored is None else self.stored

    def part(self, rows: Bool[Tensor, " B"]) -> Case:
        """The case of some of its texts."""
        chosen = rows.nonzero()[:, 0]
        scores = {name: values[chosen] for name, values in self.scores.items()}
        return replace(self, batch=self.batch[chosen], scores=scores)

    @cached_property
    def probabilities(self) -> Float[Tensor, "B C"]:
        """What the model answers for each whole text."""
        with torch.no_grad():
            return self.model(self.model.embed(self.batch), self.batch).probabilities

    @cached_property
    def predicted(self) -> Int[Tensor, " B"]:
        """The class that every score is for."""
        return self.probabilities.argmax(-1)

    @cached_property
    def items(self) -> Bool[Tensor, "B N"]:
        """Which of the attended items, tokens or sentences, are real."""
        assert isinstance(self.model, PooledModel)
        return attended(self.model, self.batch)

    @cached_property
    def _states(self) -> Float[Tensor, "B N M"]:
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return self.model.states(self.model.embed(self.batch), self.batch)

    @cached_property
    def weights(self) -> Float[Tensor, "B N"]:
        """The observed attention to the items, in double precision: interventions start from it."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return self.model.attend(self._states, self.batch).double()

    @cached_property
    def values(self) -> Float[Tensor, "B N C"]:
        """The logits of each item alone; any attention over them gives its logits as their weighted mean."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return token_logits(self.model, self._states).double()

    @cached_property
    def empty(self) -> Float[Tensor, "B C"]:
        """The logits of the zero context: what the model answers when every item is erased."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            return self.model.decode(self._states, torch.zeros_like(self._states[..., 0])).double()

    def shown(self, weights: Float[Tensor, "B N"]) -> Float[Tensor, "B T"]:
        """Weights of items as weights of tokens: a sentence's is shared among its words as they are attended."""
        assert isinstance(self.model, PooledModel)
        with torch.no_grad():
            within = self.model.within(self.model.embed(self.batch), self.batch)
            return over_tokens(self.model, weights, self.batch) * within


@dataclass(frozen=True)
class Answer:
    """Numbers for each example ("measure" or "measure:subject"), and weights for each token to be shown."""

    measures: dict[str, Float[np.ndarray, " B"]]
    weights: dict[str, Float[np.ndarray, "B T"]] = field(default_factory=dict)


@runtime_checkable
class Audit(Protocol):
    """One published question, with its options as fields; the module's docstring is the question."""

    @property
    def paper(self) -> str: ...
    def kind(self, classes: int) -> str:
        """How far the numbers can be trusted in float64: "exact", "bracket", "sample", "lower bound" or "search"."""

    def unfit(self, case: Case) -> str | None:
        """Why the audit cannot be run here, or None."""

    def __call__(self, case: Case) -> Answer: ...


@runtime_checkable
class SearchingAudit(Protocol):
    """An audit that on some models can only search, whatever the number of classes."""

    def searches(self, model: Model) -> bool: ...


def trust(audit: Audit, model: Model, classes: int) -> str:
    """How far the numbers of an audit can be trusted on this model: its kind, "to rounding" for "exact" in float32."""
    if isinstance(audit, SearchingAudit) and audit.searches(model):
        return "lower bound"
    kind = audit.kind(classes)
    return "to rounding" if kind == "exact" and not in_double(model) else kind


def question(audit: Audit) -> str:
    """The question that an audit answers."""
    return (sys.modules[type(audit).__module__].__doc__ or "").strip()


def without_pooling(case: Case) -> str | None:
    """The reason of every audit that replaces the attention of a linear decoder."""
    return no_pooling(case.model)


def numpy(tensor: Tensor) -> np.ndarray:
    """A tensor as a double-precision array."""
    return tensor.detach().double().cpu().numpy()
