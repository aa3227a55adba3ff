"""Applies one attention edit to a batch split over devices: once for all rows, as on one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Barrier

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.types import Edit, LayerwiseEdit


class SyncedEdit:
    """Collects the attention weights of every part of a batch at a barrier, and edits them as one tensor."""

    def __init__(self, own: Sequence[int], read: Sequence[int], device: torch.device) -> None:
        self.own, self.read, self.device = own, read, device  # rows of each part; those that were read; of the edit
        self.edits: list[Edit | None] = [None] * len(own)
        self.given: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(own)
        self.answers: list[Tensor] = []
        self.barrier = Barrier(len(own), self._edit)

    def edited(
        self, part: int, edit: Edit, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B *Q T"]:
        """The edited weights of one part; blocks until every part has delivered its weights."""
        self.edits[part], self.given[part] = edit, (weights, mask)
        self.barrier.wait()
        return self.answers[part]

    def _edit(self) -> None:
        """The barrier's action: edits all weights in one thread while the others wait."""
        counts = [
            len(weights) * own // read for (weights, _), own, read in zip(self.given, self.own, self.read, strict=True)
        ]
        whole, mask = (
            torch.cat([pair[which][:count].to(self.device) for pair, count in zip(self.given, counts, strict=True)])
            for which in (0, 1)
        )
        edit = self.edits[0]
        assert edit is not None
        parts = torch.split(edit(whole, mask), counts)
        self.answers = [
            torch.cat([part.to(weights), weights[len(part) :]])
            for part, (weights, _) in zip(parts, self.given, strict=True)
        ]

    def for_part(self, part: int, edit: Edit) -> PartEdit:
        """The edit to be passed to the model that computes this part."""
        if isinstance(edit, LayerwiseEdit):
            return PartEditByLayer(self, part, edit)
        return PartEdit(self, part, edit)


@dataclass(frozen=True)
class PartEdit:
    """An edit of one part of the batch, made together with all other parts."""

    synced: SyncedEdit
    part: int
    edit: Edit

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return self.synced.edited(self.part, self.edit, weights, mask)


@dataclass(frozen=True)
class PartEditByLayer(PartEdit):
    """The same for an edit that differs from layer to layer."""

    edit: LayerwiseEdit

    @property
    def depth(self) -> int:
        """The number of layers that the edit needs, 0 where it does not say."""
        return int(getattr(self.edit, "depth", 0))

    def at(self, layer: int) -> Edit | None:
        edit = self.edit.at(layer)
        return None if edit is None else PartEdit(self.synced, self.part, edit)
