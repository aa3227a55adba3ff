"""What can be measured: a classifier that says which words it decides by."""

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
    """A classifier that can be asked which words it selects, and what it makes of these alone and of the others."""

    attends = False

    @property
    @abstractmethod
    def selecting(self) -> dict[str, Any]:
        """The rule by which words are selected, and what is read in place of others, as plain values."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """What decides: the words that are "selected", or "all" of them where the selection only explains."""

    @property
    def critic(self) -> bool:
        """Whether someone was trained to decide by what is not selected."""
        return False

    @abstractmethod
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
        """The words that are selected, without chance, and the chance of each."""

    @abstractmethod
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the words that are selected, for the rest, or for all of them: one of VIEWS."""

    def complement(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B C"]:
        """The logits of whoever knows best what is not selected."""
        return self.viewed(x, batch, "rest")

    def accounts(self, x: Float[Tensor, "B T D"], batch: Batch) -> list[dict[str, Any]]:
        """What the decision on each text is made of, where there is more to tell than which words, as plain values."""
        return [{} for _ in range(len(batch))]


def without_others(
    x: Float[Tensor, "B T D"], batch: Batch, kept: Bool[Tensor, "B T"], view: str
) -> tuple[Float[Tensor, "B W D"], Batch]:
    """A batch with nothing but what the view shows, moved together."""
    if view == "all":
        return x, batch
    shown = kept if view == "selected" else batch.mask & ~kept
    return compacted(x, batch, shown.to(x))
