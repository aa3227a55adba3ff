"""Data parallelism: one model replicated on several devices, each computing a part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import cache, partial
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.models.erasure import extents, query_lengths
from assay.models.hf_attention import VALUES, WATCH, unseen
from assay.models.textmodel import TextModel
from assay.types import Batch, Edit, Embeddings, LayerwiseEdit, Mask, Output


class SyncedEdit:
    """Collects the attention weights of every part of a batch at a barrier, and edits them as one tensor."""

    def __init__(self, own: Sequence[int], read: Sequence[int], device: torch.device) -> None:
        self.own, self.read, self.device = own, read, device  # rows of each part; those that were read; of the edit
        self.edits: list[Edit | None] = [None] * len(own)
        self.given: list[tuple[Tensor, Tensor]] = [(torch.empty(0), torch.empty(0))] * len(own)
        self.answers: list[Tensor] = []
        self.barrier = Barrier(len(own), self._edit)

    def edited(self, part: int, edit: Edit, weights: Float[Tensor, "B *Q T"], mask: Mask) -> Float[Tensor, "B *Q T"]:
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

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Mask) -> Float[Tensor, "B *Q T"]:
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

    def answers(self, readers: Sequence[Callable[..., Any]], x: Embeddings, batch: Batch, edit: Edit | None) -> Any:
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


AnyModel = TypeVar("AnyModel", bound=TextModel)
SPREAD = ("forward", "layered", "states")
"""The methods that are split; everything else is cheap, and runs on the first device only."""


def parallel(model: AnyModel, devices: Sequence[str]) -> AnyModel:
    """The model on the first device, with a replica on each of the others; its outputs stay the same.

    It is for inference: its weights require no gradient, and in training mode the first device works alone. Replicas
    follow when weights change; where the model has hooks, the first device works alone too.
    """
    if any("forward" in vars(part) for part in model.modules()):
        raise ValueError("A module with a forward of its own cannot be copied to other devices.")
    spread = copy(model.to(devices[0]).requires_grad_(False))
    spread.__class__ = _kind(type(model))
    vars(spread)["others"] = tuple(deepcopy(model).to(device) for device in devices[1:])
    vars(spread)["known"] = _state(spread)
    return spread


def copies(model: TextModel) -> tuple[TextModel, ...]:
    """The model itself and its replicas on other devices."""
    return (model, *getattr(model, "others", ()))


@cache
def _kind(kind: type[TextModel]) -> Any:
    """A subclass of the model's class whose methods split the batch over the replicas."""
    methods: dict[str, Any] = {name: _spread(getattr(kind, name)) for name in SPREAD if hasattr(kind, name)}
    return type(f"Parallel{kind.__name__}", (kind,), {**methods, "others": ()})


def _spread(alone: Callable[..., Any]) -> Callable[..., Any]:
    """A method that splits its batch over all replicas."""

    def read(self: Any, x: Embeddings, batch: Batch, *given: Any, **named: Any) -> Any:
        if INSIDE.get() or not self.others or self.training or len(batch) < 2 or _observed(self):
            return alone(self, x, batch, *given, **named)
        _follow(self)
        edit: Edit | None = named.get("edit", next(iter(given), None))
        readers = [partial(alone, each) for each in copies(self)]
        alike = edit is not None or alone.__name__ == "layered"
        return SplitBatch.of(batch, [each.device for each in copies(self)], alike).answers(readers, x, batch, edit)

    return read


def _observed(model: nn.Module) -> bool:
    """Whether the model has hooks: they are on the first replica only, so the batch is not split."""
    return not unseen(model.modules()) or WATCH.get() is not None or VALUES.get() is not None


def _state(model: nn.Module) -> list[tuple[int, int]]:
    """A fingerprint of the weights by version: differs as soon as a weight has been changed."""
    return [(part.data_ptr(), part._version) for part in (*model.parameters(), *model.buffers())]


@torch.no_grad()
def _follow(model: Any) -> None:
    """Copies changed weights to the replicas."""
    if (now := _state(model)) != model.known:
        for each in model.others:
            each.load_state_dict(model.state_dict())
        model.known = now
