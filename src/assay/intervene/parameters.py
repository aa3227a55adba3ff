"""Parameter randomisation: copies of a model with some parts re-initialised."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from torch import Tensor, nn

from assay.errors import unknown
from assay.models.hf_body import Body
from assay.models.network import Network
from assay.models.recipes import drawn
from assay.models.textmodel import TextModel

Model = TypeVar("Model", bound=TextModel)


@runtime_checkable
class Redrawn(Protocol):
    """A model that can re-initialise itself."""

    def redrawn(self, seed: int) -> TextModel:
        """A model of the same kind with all weights random."""


def randomised(model: Model, parts: Sequence[str], seed: int) -> Model:
    """A copy with the named parts re-initialised (Adebayo et al., 2018).

    They go down the model's cascade, from its output.

    With the same seed a part is drawn alike whatever other parts are. Word vectors that a model started from are drawn
    too: what they tell of words is learnt as well.
    """
    for part in parts:
        if part not in model.cascade:
            raise unknown("part of a model", part, model.cascade)
    return _mixed(model, _fresh(model, seed), parts)


def cascade(model: Model, seed: int) -> dict[str, Model]:
    """Cascading randomisation: the model with more and more parts re-initialised, from the output down."""
    fresh = _fresh(model, seed)
    return {part: _mixed(model, fresh, model.cascade[: depth + 1]) for depth, part in enumerate(model.cascade)}


def _fresh(model: TextModel, seed: int) -> TextModel:
    """A model of the same kind with all weights random."""
    if isinstance(model, Network):
        return drawn(model.architecture, len(model.vectors), model.classes, seed)
    assert isinstance(model, Redrawn)
    return model.redrawn(seed)


def _mixed(model: Model, fresh: TextModel, parts: Sequence[str]) -> Model:
    """The model with some parts of another; modules outside all parts go with the lowest of them."""
    if isinstance(model, Body):
        drawn = {id(weight) for part in parts for weight in model.part(part).parameters()}
        named = {id(weight) for part in model.cascade for weight in model.part(part).parameters()}
        rest = model.cascade[-1] in parts
        return _sharing(model, fresh, lambda weight: id(weight) in drawn or (rest and id(weight) not in named))
    other = copied(model)
    for part in parts:
        other.part(part).load_state_dict(fresh.part(part).state_dict())
    return other


def _sharing(model: Model, other: TextModel, taken: Callable[[Tensor], bool]) -> Model:
    """A copy of the model with some weights of the other one.

    It holds the very weights of both, not copies: these models are large, and nothing writes into them.
    """
    theirs = dict(other.named_parameters())
    weights = {id(mine): theirs[name] if taken(mine) else mine for name, mine in model.named_parameters()}
    return copy.deepcopy(model, weights)


def copied(model: Model) -> Model:
    """A deep copy whose recurrent weights are contiguous, as cuDNN wants them."""
    other = copy.deepcopy(model)
    for part in other.modules():
        if isinstance(part, nn.RNNBase):
            part.flatten_parameters()
    return other
