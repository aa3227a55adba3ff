"""Interfaces of audits: input (Case, Resources), output (Answer) and protocols (Audit, PreparedAudit)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.caching import FinishedParts
from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.explainers.needs import no_pooling
from assay.models.recipes import CHECKPOINT, Recipe, fingerprint, train
from assay.models.store import Checkpoint, Opened, Trained
from assay.models.textmodel import in_double
from assay.models.workers import Variant, train_all
from assay.stories import story_of
from assay.types import Batch, Explainer, Model, PooledModel, attended, over_tokens, token_logits

PerText = Float[np.ndarray, " B"]
"""A number of each text."""

Numbers = dict[str, PerText]
"""A number of each text, by measure and subject."""

ItemValues = Float[np.ndarray, "B N"]
"""A number of each attended item of a text: a token, or a sentence."""

TokenValues = Float[np.ndarray, "B T"]
TokenMask = Bool[np.ndarray, "B T"]
Scores = Float[Tensor, "B T"]


@dataclass(frozen=True)
class Case:
    """One batch with the model and the scores of every explainer for the predicted class.

    `planted` says that the batch's truth decides by construction; else it is what people hold to be the reason. The
    model may be in double precision, where ranks are compared; `stored` is then the same as it was stored.
    """

    model: Model
    batch: Batch
    scores: Mapping[str, Scores]
    seed: int = 0
    explainers: Mapping[str, Explainer] = field(default_factory=dict)
    planted: bool = False
    stored: Model | None = None

    @property
    def quick(self) -> Model:
        """The model in its stored precision, for the many forward passes of which only a mean is used."""
        return self.model if self.stored is None else self.stored

    @property
    def pooled(self) -> PooledModel:
        """The model, whose attention pools hidden states."""
        assert isinstance(self.model, PooledModel)
        return self.model

    @property
    def mask(self) -> TokenMask:
        """The mask of real tokens."""
        mask: TokenMask = self.batch.mask.cpu().numpy()
        return mask

    def part(self, rows: Bool[Tensor, " B"]) -> Case:
        """The case restricted to some of its texts."""
        chosen = rows.nonzero()[:, 0]
        scores = {name: values[chosen] for name, values in self.scores.items()}
        return replace(self, batch=self.batch[chosen], scores=scores)

    @cached_property
    @torch.no_grad()
    def probabilities(self) -> Float[Tensor, "B C"]:
        """The class probabilities of each whole text."""
        return self.model(self.model.embed(self.batch), self.batch).probabilities

    @cached_property
    def predicted(self) -> Int[Tensor, " B"]:
        """The predicted class, which all scores are for."""
        return self.probabilities.argmax(-1)

    @cached_property
    def items(self) -> Bool[Tensor, "B N"]:
        """The mask of real attended items, tokens or sentences."""
        return attended(self.pooled, self.batch)

    @cached_property
    @torch.no_grad()
    def _states(self) -> Float[Tensor, "B N M"]:
        return self.pooled.states(self.model.embed(self.batch), self.batch)

    @cached_property
    @torch.no_grad()
    def weights(self) -> Float[Tensor, "B N"]:
        """The observed attention to the items, in double precision."""
        return self.pooled.attend(self._states, self.batch).double()

    @cached_property
    @torch.no_grad()
    def values(self) -> Float[Tensor, "B N C"]:
        """The logits of each item alone; attention weights average them into the text's logits."""
        return token_logits(self.pooled, self._states).double()

    @cached_property
    @torch.no_grad()
    def empty(self) -> Float[Tensor, "B C"]:
        """The logits of the zero context vector, that is with every item erased."""
        return self.pooled.decode(self._states, torch.zeros_like(self._states[..., 0])).double()

    @torch.no_grad()
    def shown(self, weights: Float[Tensor, "B N"]) -> Scores:
        """Item weights as token weights: a sentence's weight is shared among its words."""
        within = self.pooled.within(self.model.embed(self.batch), self.batch)
        return over_tokens(self.pooled, weights, self.batch) * within


@dataclass(frozen=True)
class Answer:
    """Results: a number for each example ("measure" or "measure:subject"), and token weights to display."""

    measures: Numbers
    weights: dict[str, TokenValues] = field(default_factory=dict)


@runtime_checkable
class Audit(Protocol):
    """Protocol: one published question, which its story holds, with its options as fields."""

    @property
    def paper(self) -> str: ...
    def kind(self, classes: int) -> str:
        """The reliability of the numbers in float64: "exact", "bracket", "sample", "lower bound" or "search"."""

    def unfit(self, case: Case) -> str | None:
        """Why the audit does not apply to this model, or None."""

    def __call__(self, case: Case) -> Answer: ...


class BaseAudit:
    """What most audits share: numbers that are all as reliable, and no reason not to apply."""

    reliability: ClassVar[str] = "sample"

    def kind(self, classes: int) -> str:
        return self.reliability

    def unfit(self, case: Case) -> str | None:
        return None


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
    """The question of an audit's story; without one, its title."""
    story = story_of(audit)
    return story.question or story.title


def without_pooling(case: Case) -> str | None:
    """Why audits that replace the attention of a linear decoder do not apply, or None."""
    return no_pooling(case.model)


def by_subject(measure: str, numbers: Mapping[str, PerText]) -> Numbers:
    """The numbers of one measure, under the names of an answer."""
    return {f"{measure}:{subject}": values for subject, values in numbers.items()}


def of_subject(subject: str, numbers: Numbers) -> Numbers:
    """The numbers of one subject, by measure, under the names of an answer."""
    return {f"{measure}:{subject}": values for measure, values in numbers.items()}


def numpy(tensor: Tensor) -> np.ndarray:
    """The tensor as a float64 array."""
    return tensor.detach().double().cpu().numpy()


def mean_defined(values: Sequence[Float[np.ndarray, "*B"]] | Float[np.ndarray, "N ..."]) -> Float[np.ndarray, "*B"]:
    """The mean of those numbers of each example that are defined; nan where none is."""
    stacked = np.asarray(values)
    defined = np.isfinite(stacked)
    sums, counts = np.where(defined, stacked, 0.0).sum(0), defined.sum(0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


RETRAINED = "retrained"
FOREIGN = "only networks that assay trains itself are trained anew"
LACKING = "the texts that the model learnt from are not at hand"


@dataclass(frozen=True)
class Resources:
    """The audited model, explainers and texts; its training corpus and a folder for stored work, where known."""

    model: Opened
    explainers: Mapping[str, Explainer]
    rows: Sequence[Tokenised]
    corpus: Corpus | None = None
    folder: Path | None = None
    seed: int = 0

    @property
    def trained(self) -> Trained:
        """The audited model, where it is a network trained by this package."""
        assert isinstance(self.model, Trained)
        return self.model

    def recipe(self) -> Recipe | None:
        """The training recipe of the audited model, or None where it is unknown."""
        made = self.model.history.get("recipe")
        return None if made is None else Recipe.of(made)

    @property
    def made(self) -> Recipe:
        """The same, where it must be known."""
        recipe = self.recipe()
        assert recipe is not None
        return recipe

    def lacks(self) -> str | None:
        """Why no comparable model can be trained, or None."""
        learnt = self.model.history.get("data")
        if not isinstance(self.model, Trained):
            return FOREIGN
        if self.corpus is None or learnt != fingerprint((*self.corpus.train, *self.corpus.dev)):
            return LACKING
        return None if self.recipe() is not None else "it is not known how the model was trained"

    def train(self, corpus: Corpus, name: str) -> Trained:
        """A model trained by the audited one's recipe on another corpus; stored under its name, so trained once."""
        folder = None if self.folder is None else self.folder / RETRAINED / name
        return train(corpus, self.made, folder, str(self.model.device))

    def train_all(self, variants: Mapping[str, Variant]) -> dict[str, Trained]:
        """Variants of the audited model trained on its own corpus, by name; each is trained once."""
        assert self.corpus is not None
        folder = None if self.folder is None else self.folder / RETRAINED
        return train_all(self.corpus, variants, folder, str(self.model.device))

    def cached(self, name: str, identity: dict[str, Any], work: Callable[[Checkpoint | None], Any]) -> Any:
        """The result of the work as JSON values, cached under its name.

        The work is handed a checkpoint to go on from; the identity is all that decides what it gives.
        """
        if self.folder is None:
            return work(None)
        place = self.folder / RETRAINED
        checkpoint = Checkpoint(place / name / CHECKPOINT, identity)
        part = FinishedParts(place).answer(name, identity, lambda: work(checkpoint))
        checkpoint.path.unlink(missing_ok=True)
        return part["answer"]

    def clear(self) -> None:
        """Deletes the models that were trained for the audits."""
        if self.folder is not None:
            shutil.rmtree(self.folder / RETRAINED, ignore_errors=True)


@runtime_checkable
class Remarking(Protocol):
    """An audit that has a remark once it is prepared."""

    @property
    def remark(self) -> str | None:
        """One sentence for the reader of a report, or None."""


@runtime_checkable
class PreparedAudit(Protocol):
    """An audit that needs preparation before the first batch, such as training other models."""

    def prepared(self, resources: Resources) -> Audit:
        """The audit with what it needs; equal at each call, also after an interruption."""
