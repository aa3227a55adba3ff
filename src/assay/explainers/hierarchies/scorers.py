"""The protocols of phrase scorers and tree builders."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.trees import Tree
from assay.types import Batch, Model

Read = Callable[[Bool[Tensor, "B S T"]], Float[Tensor, "B S"]]
"""One score for each of S sets of tokens of texts that were given before."""


@runtime_checkable
class PhraseScorer(Protocol):
    """Scores sets of tokens, such as phrases, for a class; the sets need not be contiguous."""

    def unfit(self, model: Model) -> str | None:
        """Why the model does not fit, as the end of a sentence, or None."""

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        """One score for each of S sets of tokens; 0 for an empty one."""


@runtime_checkable
class ReadyScorer(PhraseScorer, Protocol):
    """A scorer that can cache what it has computed for a batch, for repeated queries."""

    def ready(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Read:
        """The same scores as a function of word sets, with a cache."""


def reading(scorer: PhraseScorer, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Read:
    """The scorer over these texts, with a cache where it has one."""
    if isinstance(scorer, ReadyScorer):
        return scorer.ready(model, batch, target)
    return partial(scorer, model, batch, target)


@runtime_checkable
class TreeBuilder(Protocol):
    """Builds a tree of phrases for each text."""

    def unfit(self, model: Model) -> str | None:
        """Why the model does not fit, as the end of a sentence, or None."""

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> list[Tree]:
        """A tree for each text, which has at least one word."""
