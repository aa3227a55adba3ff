"""What scores phrases: the contract that every hierarchy is built on."""

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
    """How much sets of tokens of each text, such as phrases, count for its class; they need not be contiguous."""

    def unfit(self, model: Model) -> str | None:
        """What the model lacks, as the end of a sentence, or None."""

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        """One score for each of S sets of tokens; 0 for an empty one."""


@runtime_checkable
class ReadyScorer(PhraseScorer, Protocol):
    """A scorer that can keep what it has read of texts, for those who ask about them again and again."""

    def ready(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Read:
        """The same scores, asked for bit by bit."""


def reading(scorer: PhraseScorer, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Read:
    """The scorer over these texts, ready to be asked many times."""
    if isinstance(scorer, ReadyScorer):
        return scorer.ready(model, batch, target)
    return partial(scorer, model, batch, target)


@runtime_checkable
class TreeBuilder(Protocol):
    """What makes a hierarchy of phrases of each text."""

    def unfit(self, model: Model) -> str | None:
        """What the model lacks, as the end of a sentence, or None."""

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> list[Tree]:
        """A tree for each text, which has at least one word."""
