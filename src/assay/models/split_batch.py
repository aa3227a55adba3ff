"""Splits a batch over devices, runs one thread per device, and concatenates the outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from threading import BrokenBarrierError
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.models.erasure import extents, query_lengths
from assay.models.synced_edit import SyncedEdit
from assay.types import Batch, Edit, Output

INSIDE: ContextVar[bool] = ContextVar("inside", default=False)
"""Whether this thread computes a part already: nested calls are not split again."""


@dataclass(frozen=True)
class SplitBatch:
    """The rows of each device: its own, and behind them filler rows that make all parts equally wide."""

    own: tuple[int, ...]
    read: tuple[Int[Tensor, " _"], ...]
    devices: tuple[torch.device, ...]

    @classmethod
    def of(cls, batch: Batch, devices: Sequence[torch.device], alike: bool) -> SplitBatch:
        """An even split; with `alike`, the widest texts are added to every part, so that all have the same width."""
        parts = torch.arange(len(batch), device=batch.ids.device).tensor_split(len(devices))
        pairs = [(part, device) for part, device in zip(parts, devices, strict=True) if len(part)]
        more = _widest(batch) if alike else parts[0][:0]
        read = tuple(torch.cat([part, more]) for part, _ in pairs)
        return cls(tuple(len(part) for part, _ in pairs), read, tuple(device for _, device in pairs))

    def answers(
        self, readers: Sequence[Callable[..., Any]], x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None
    ) -> Any:
        """Runs each reader on its part; the outputs are concatenated on the first device."""
        synced = SyncedEdit(self.own, [len(rows) for rows in self.read], x.device)
        enabled = torch.is_grad_enabled()

        def one(part: int) -> Any:
            rows, device = self.read[part], self.devices[part]
            given = () if edit is None else (synced.for_part(part, edit),)
            with torch.set_grad_enabled(enabled):
                return readers[part](x[rows].to(device), batch[rows].to(device), *given)

        return self._joined(_in_threads(one, len(self.own), synced))

    def _joined(self, answers: Sequence[Any]) -> Any:
        if not isinstance(answers[0], Output):
            return self._rows(answers)
        layers = zip(*(answer.attention for answer in answers), strict=True)
        return Output(self._rows([answer.logits for answer in answers]), tuple(self._rows(layer) for layer in layers))

    def _rows(self, parts: Sequence[Tensor]) -> Tensor:
        """The concatenated rows of all parts; narrower parts are padded with zeros."""
        first = self.devices[0]
        widest = max(part.shape[1] for part in parts)
        kept = [part[:own].to(first) for part, own in zip(parts, self.own, strict=True)]
        return torch.cat([_padded(part, widest) for part in kept])


def _padded(part: Tensor, width: int) -> Tensor:
    missing = part.new_zeros(len(part), width - part.shape[1], *part.shape[2:])
    return torch.cat([part, missing], dim=1) if missing.numel() else part


def _widest(batch: Batch) -> Int[Tensor, " N"]:
    """The longest text and the one with most sentences: they decide how wide a batch is."""
    longest = (extents(batch).sum(-1) + query_lengths(batch)).argmax()
    if batch.sentences is None:
        return longest[None]
    return torch.stack([longest, (batch.sentences * batch.mask).amax(-1).argmax()])


def _in_threads(one: Callable[[int], Any], parts: int, synced: SyncedEdit) -> list[Any]:
    """The outputs of all parts, one thread each; where one fails, the others stop waiting for it."""

    def guarded(part: int) -> Any:
        INSIDE.set(True)  # in the thread's own context
        try:
            return one(part)
        except BaseException:
            synced.barrier.abort()
            raise

    with ThreadPoolExecutor(parts) as threads:
        # context variables of this thread, such as the counter of passes, hold in the others
        futures: list[Future[Any]] = [threads.submit(copy_context().run, guarded, part) for part in range(parts)]
    faults = [fault for future in futures if (fault := future.exception()) is not None]
    for fault in sorted(faults, key=lambda fault: isinstance(fault, BrokenBarrierError)):
        raise fault
    return [future.result() for future in futures]
