"""An edit of attention that is made once for all rows of a batch, although several threads read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Barrier

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.types import Edit, PlacedEdit


class Meeting:
    """Where threads bring the weights of their rows: the edit sees those of the whole batch, as on one device."""

    def __init__(self, own: Sequence[int], read: Sequence[int], device: torch.device) -> None:
        self.own, self.read, self.device = own, read, device  # rows of each part; those that were read; of the edit
        self.edits: list[Edit | None] = [None] * len(own)
        self.given: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(own)
        self.answers: list[Tensor] = []
        self.barrier = Barrier(len(own), self._edit)

    def edited(
        self, part: int, edit: Edit, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B *Q T"]:
        """The weights of one part as the edit makes them, once every part has come."""
        self.edits[part], self.given[part] = edit, (weights, mask)
        self.barrier.wait()
        return self.answers[part]

    def _edit(self) -> None:
        """Runs in one of the threads while the others wait."""
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


@dataclass(frozen=True)
class Met:
    """The edit as one of the threads sees it."""

    meeting: Meeting
    part: int
    edit: Edit

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return self.meeting.edited(self.part, self.edit, weights, mask)


@dataclass(frozen=True)
class MetByLayer(Met):
    """The same for an edit that differs from layer to layer."""

    edit: PlacedEdit

    @property
    def depth(self) -> int:
        """How many layers the edit asks for, where it says so."""
        return int(getattr(self.edit, "depth", 0))

    def at(self, layer: int) -> Edit | None:
        edit = self.edit.at(layer)
        return None if edit is None else Met(self.meeting, self.part, edit)


def met(meeting: Meeting, part: int, edit: Edit) -> Met:
    """The edit as the thread that reads this part sees it."""
    if isinstance(edit, PlacedEdit):
        return MetByLayer(meeting, part, edit)
    return Met(meeting, part, edit)
