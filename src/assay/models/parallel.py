"""Data parallelism: one model replicated on several devices, each computing a part of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import cache, partial
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.models.huggingface.attending import VALUES, WATCH
from assay.models.huggingface.brevity import unseen
from assay.models.split_batch import INSIDE, SplitBatch
from assay.models.textmodel import TextModel
from assay.types import Batch, Edit

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

    def read(self: Any, x: Float[Tensor, "B T D"], batch: Batch, *given: Any, **named: Any) -> Any:
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
