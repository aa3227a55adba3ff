"""Protocol of classifiers that select the words they decide by."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from assay.models.textmodel import TextModel
from assay.rationales.masking import compacted
from assay.types import Batch, Selection

VIEWS = ("selected", "rest", "all")


class Selecting(TextModel):
    """Classifier with a selection of words, and logits for these alone and for the others."""

    attends = False

    @property
    @abstractmethod
    def selecting(self) -> dict[str, Any]:
        """The rule of selection, and what replaces unselected words, as JSON values."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """The words that the decision depends on: "selected", or "all" where the selection only explains."""

    @property
    def critic(self) -> bool:
        """Whether a critic was trained on the unselected words."""
        return False

    @abstractmethod
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
        """The deterministic selection, and each word's probability."""

    @abstractmethod
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the selected words, for the rest, or for all of them: one of VIEWS."""

    def complement(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B C"]:
        """Logits from the complement, by the critic if one was trained."""
        return self.viewed(x, batch, "rest")

    def accounts(self, x: Float[Tensor, "B T D"], batch: Batch) -> list[dict[str, Any]]:
        """Further explanation of each decision as JSON values, where there is more than the selected words."""
        return [{} for _ in range(len(batch))]


def without_others(
    x: Float[Tensor, "B T D"], batch: Batch, kept: Bool[Tensor, "B T"], view: str
) -> tuple[Float[Tensor, "B W D"], Batch]:
    """A batch with only the words of the view, gaps closed."""
    if view == "all":
        return x, batch
    shown = kept if view == "selected" else batch.mask & ~kept
    return compacted(x, batch, shown.to(x))
