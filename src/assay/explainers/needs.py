"""The base of explainers: what they need of a model, the message where it is missing, and their traits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.models.erasure import REMOVALS
from assay.models.hf_body import Body
from assay.types import (
    Attribution,
    Batch,
    BlankModel,
    ChoosyExplainer,
    Explainer,
    Model,
    PooledModel,
    StackedModel,
    TokenModel,
)

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]


class Choosy(ABC):
    """An explainer that refuses a model that lacks what it needs, and else explains."""

    @abstractmethod
    def unfit(self, model: Model) -> str | None:
        """Why the model cannot be explained by it, as the end of a sentence, or None."""

    @abstractmethod
    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        """The scores, given a model that fits."""

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        demand(self.unfit(model))
        return self.explain(model, batch, target)


class Removing:
    """Words are removed as `removal` says: "delete", or with a baseline in their place."""

    removal: str

    def unfit(self, model: Model) -> str | None:
        return no_blank(model, self.removal)


class Detailed(ABC):
    """An explainer with diagnostics; unless it says otherwise, every model fits."""

    def unfit(self, model: Model) -> str | None:
        """Why the model cannot be explained by it, as the end of a sentence, or None."""
        return None

    @abstractmethod
    def explain(self, model: Model, batch: Batch, target: Target) -> Attribution:
        """The scores and the diagnostics that the class names, given a model that fits."""

    def attribute(self, model: Model, batch: Batch, target: Target) -> Attribution:
        demand(self.unfit(model))
        return self.explain(model, batch, target)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        return self.attribute(model, batch, target).scores


@runtime_checkable
class Unattending(Protocol):
    """A model without any attention that can be edited."""

    unedited: str


def unfit(explainer: Explainer, model: Model) -> str | None:
    """Why this explainer does not work with this model, or None."""
    return explainer.unfit(model) if isinstance(explainer, ChoosyExplainer) else None


def demand(reason: str | None) -> None:
    """Raises an error with the reason, if there is one."""
    if reason is not None:
        raise AssayError(f"This explainer cannot be used here: {reason}.")


def no_pooling(model: Model) -> str | None:
    pooled = isinstance(model, PooledModel)
    return None if pooled else "the model does not end in a linear decoder over one attention"


def no_layers(model: Model) -> str | None:
    stacked = isinstance(model, StackedModel) and model.layers > 0
    return None if stacked else "the model has no stack of self-attention layers"


def no_weights(model: Model) -> str | None:
    if no_pooling(model) is None or no_layers(model) is None:
        return None
    return "the model has neither a linear decoder over one attention nor a stack of self-attention layers"


def no_holding(model: Model) -> str | None:
    """Why attention cannot be held constant: a transformer's that takes no edits, or none at all."""
    if isinstance(model, Unattending):
        return "the model has no attention, so it cannot be held fixed"
    if not isinstance(model, Body) or isinstance(model, PooledModel) or model.traits.unedited is None:
        return None
    return "the model's attention cannot be edited, so it cannot be held fixed"


def no_layer(model: Model, number: int | None) -> str | None:
    """Why that layer of a stack, counted from 0 at the bottom, cannot be read; None stands for the last."""
    reason = no_layers(model)
    if reason is not None or number is None:
        return reason
    assert isinstance(model, StackedModel)
    return None if number < model.layers else f"the model has layers 0 to {model.layers - 1}, and no layer {number}"


def no_blank(model: Model, removal: str = "zero") -> str | None:
    """Why words cannot be removed in this way: all but deletion puts a baseline in their place."""
    return None if removal == "delete" or isinstance(model, BlankModel) else "the model has no embedding for nothing"


def check_removal(removal: str) -> None:
    """Raises an error for a way to remove words that does not exist."""
    if removal not in REMOVALS:
        raise unknown("removal", removal, REMOVALS)


def no_table(model: Model) -> str | None:
    return None if isinstance(model, TokenModel) else "the model has no table with an embedding for each word"


# Traits of an explainer: attributes that a member states where they hold, with defaults for those that state none.
# `sparse`: it searches for a few words; most scores are 0, and another precision may lead to another choice.
# `class_free`: its scores are the same for every class.


F = TypeVar("F", bound=Callable[..., object])


def is_sparse(explainer: Explainer) -> bool:
    return bool(getattr(explainer, "sparse", False))


def is_class_free(explainer: Explainer) -> bool:
    return bool(getattr(explainer, "class_free", False))


def class_free(explainer: F) -> F:
    """A decorator for explainers that are plain functions; a class states `class_free: ClassVar[bool] = True`."""
    explainer.class_free = True  # type: ignore[attr-defined]
    return explainer
