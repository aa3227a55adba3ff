"""One model on several devices: each reads a part of the rows of a batch."""

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
from assay.models.rows import INSIDE, Rows
from assay.models.textmodel import TextModel
from assay.types import Batch, Edit

AnyModel = TypeVar("AnyModel", bound=TextModel)
SPREAD = ("forward", "layered", "states")
"""What reads a text: all else that a model does is little work, and is done on the first device."""


def parallel(model: AnyModel, devices: Sequence[str]) -> AnyModel:
    """The model on the first device, with a copy on each of the others; everything it answers stays the same.

    It is one for reading: its weights want no gradient any more, and in training the first device is alone. Copies
    follow when weights change; where somebody listens in by hooks, the first device is alone too.
    """
    if any("forward" in vars(part) for part in model.modules()):
        raise ValueError("A module with a forward of its own cannot be copied to other devices.")
    spread = copy(model.to(devices[0]).requires_grad_(False))
    spread.__class__ = _kind(type(model))
    vars(spread)["others"] = tuple(deepcopy(model).to(device) for device in devices[1:])
    vars(spread)["known"] = _state(spread)
    return spread


def copies(model: TextModel) -> tuple[TextModel, ...]:
    """The models that share the work: the model itself, and those on other devices."""
    return (model, *getattr(model, "others", ()))


@cache
def _kind(kind: type[TextModel]) -> Any:
    """The same kind of model, whose rows are read in parts."""
    methods: dict[str, Any] = {name: _spread(getattr(kind, name)) for name in SPREAD if hasattr(kind, name)}
    return type(f"Parallel{kind.__name__}", (kind,), {**methods, "others": ()})


def _spread(alone: Callable[..., Any]) -> Callable[..., Any]:
    """A method that has the parts of a batch read by all copies."""

    def read(self: Any, x: Float[Tensor, "B T D"], batch: Batch, *given: Any, **named: Any) -> Any:
        if INSIDE.get() or not self.others or self.training or len(batch) < 2 or _observed(self):
            return alone(self, x, batch, *given, **named)
        _follow(self)
        edit: Edit | None = named.get("edit", next(iter(given), None))
        readers = [partial(alone, each) for each in copies(self)]
        alike = edit is not None or alone.__name__ == "layered"
        return Rows.of(batch, [each.device for each in copies(self)], alike).answers(readers, x, batch, edit)

    return read


def _observed(model: nn.Module) -> bool:
    """Whether somebody listens in: what is done to the first model is not done to the others."""
    return not unseen(model.modules()) or WATCH.get() is not None or VALUES.get() is not None


def _state(model: nn.Module) -> list[tuple[int, int]]:
    """What differs as soon as a weight has been changed."""
    return [(part.data_ptr(), part._version) for part in (*model.parameters(), *model.buffers())]


@torch.no_grad()
def _follow(model: Any) -> None:
    """Has the copies take over weights that were changed."""
    if (now := _state(model)) != model.known:
        for each in model.others:
            each.load_state_dict(model.state_dict())
        model.known = now
