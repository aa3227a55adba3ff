"""The layers of a self-attention stack one by one: recorded in a forward pass, run again alone, with changed values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay import costs
from assay.errors import AssayError
from assay.models.encoders import Block, Transformer
from assay.models.hf_attention import NAME, VALUES, implemented
from assay.models.hf_body import Body
from assay.models.network import Network
from assay.types import Batch, HeadValues, HeadWeights, Model, Output, StackedModel

Inputs = list[tuple[nn.Module, Tensor]]


@dataclass(frozen=True)
class Call:
    """One recorded call of a layer: its arguments, its output, and the input of each linear map within it."""

    block: nn.Module
    arguments: tuple[Any, ...]
    names: dict[str, Any]
    states: Float[Tensor, "B S M"]
    inputs: Inputs

    def again(self, rows: Int[Tensor, " N"]) -> Float[Tensor, "N S M"]:
        """The layer's output for these texts of the batch."""
        arguments, names = _of_rows((self.arguments, self.names), rows, len(self.states))
        return _states(self.block(*arguments, **names))


@dataclass
class Notes:
    """The recording of one forward pass: the calls of its layers, and the values of their attention."""

    calls: list[Call] = field(default_factory=list)
    values: list[HeadValues] = field(default_factory=list)
    inputs: Inputs = field(default_factory=list)  # since the last layer

    def value(self, values: HeadValues) -> HeadValues:
        self.values.append(values)
        return values

    def linear(self, module: nn.Module, given: tuple[Any, ...]) -> None:
        if self._mine():
            self.inputs.append((module, given[0]))

    def call(self, block: nn.Module, given: tuple[Any, ...], named: dict[str, Any], answer: Any) -> None:
        if self._mine():
            self.calls.append(Call(block, given, named, _states(answer), self.inputs))
            self.inputs = []

    def _mine(self) -> bool:
        """Whether the current thread is the recorded one: another thread may run the same model."""
        return getattr(VALUES.get(), "__self__", None) is self


@contextmanager
def noted(blocks: Sequence[nn.Module], notes: Notes) -> Iterator[None]:
    """Context manager: records the calls of the blocks that compute attention seen by `notes.value`."""
    with ExitStack() as until:
        for block in blocks:
            until.callback(block.register_forward_hook(notes.call, with_kwargs=True).remove)
            for part in block.modules():
                weight = getattr(part, "weight", None)
                if isinstance(weight, Tensor) and weight.ndim == 2:
                    until.callback(part.register_forward_pre_hook(notes.linear).remove)
        yield


def _states(answer: Any) -> Float[Tensor, "B S M"]:
    """The hidden states in a layer's output."""
    states: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return states


def _of_rows(given: Any, rows: Int[Tensor, " N"], count: int) -> Any:
    """The same arguments restricted to some texts; arguments shared by all texts are unchanged."""
    if isinstance(given, Tensor):
        return given[rows] if given.dim() > 1 and len(given) == count else given
    if isinstance(given, tuple):
        return tuple(_of_rows(each, rows, count) for each in given)
    if isinstance(given, dict):
        return {name: _of_rows(each, rows, count) for name, each in given.items()}
    if isinstance(given, list):
        return []  # a layer of ours writes its weights there
    return None if hasattr(given, "get_seq_length") else given  # kept keys of the first call would be read as well


Change = Callable[[HeadValues], HeadValues]

UNLISTED = "the layers of the model cannot be told apart"
UNLIKE = "a layer of the model that is run alone does not return what it returned in the model"
UNMERGED = "what the heads of a layer of the model add up does not go through one linear map"


@dataclass(frozen=True)
class Stage:
    """One recorded layer: its call on a batch, and the weights and values of its attention."""

    call: Call
    weights: HeadWeights
    values: HeadValues
    merge: nn.Module | None  # the linear map of what the heads add up, side by side, where there is one

    def merged(self) -> Float[Tensor, "B H S M"]:
        """The output projection, without its bias, of the value of each position alone, per head."""
        assert self.merge is not None
        heads, size = self.values.shape[1], self.values.shape[-1]
        own = torch.eye(heads).to(self.values)[:, None, :, None]
        apart = (own * self.values[:, :, :, None]).flatten(3)  # zeros stand for the other heads
        alone: Tensor = self.merge(apart) - self.merge(apart.new_zeros(1, heads * size))
        return alone


@torch.no_grad()
def recorded(model: StackedModel, batch: Batch) -> tuple[Output, tuple[Stage, ...]]:
    """The output of `layered`, and the recorded layers, lowest first."""
    notes = Notes()
    with noted(_blocks(model), notes), changed(model, notes.value):
        output = model.layered(model.embed(batch), batch)
    if not len(notes.calls) == len(notes.values) == model.layers:
        raise AssayError(f"This model cannot be read layer by layer: {UNLISTED}.")
    layers = zip(notes.calls, output.attention[:-1], notes.values, strict=True)
    return output, tuple(
        Stage(call, weights, values, _merging(call.inputs, weights @ values)) for call, weights, values in layers
    )


@contextmanager
def changed(model: Model, change: Change) -> Iterator[None]:
    """Context manager, for this thread alone: attention uses the values that the change returns."""
    token = VALUES.set(change)
    try:
        with ExitStack() as until:
            if isinstance(model, Body):
                until.enter_context(implemented(model.inner, NAME))
            else:
                for block in cast(Sequence[Block], _blocks(model)):
                    hook = block.project.register_forward_hook(partial(_revalued, block.heads))
                    until.callback(hook.remove)
            yield
    finally:
        VALUES.reset(token)


def unstaged(model: Model, merged: bool = False) -> str | None:
    """Why layers cannot be run alone, or None; with `merged`, also why a head's contribution is unknown."""
    if isinstance(model, Network) and isinstance(model.encoder, Transformer):
        return None
    if not isinstance(model, Body):
        return "the model does not show its layers one by one"
    if model.traits.unedited is not None:
        why = model.traits.unedited.rpartition(": ")[2].rstrip(".")
        return f"the values that the model's attention adds up are out of reach: {why}"
    if model not in _TRIED:
        with costs.measured():  # it is no part of what an explanation costs
            _TRIED[model] = _tried(model)
    alone, together = _TRIED[model]
    return alone or (together if merged else None)


_TRIED: WeakKeyDictionary[Body, tuple[str | None, str | None]] = WeakKeyDictionary()


def _tried(model: Body) -> tuple[str | None, str | None]:
    """Runs the layers of a model alone on made-up texts; returns what is wrong, or None."""
    table = cast(nn.Embedding, model.embedding)
    ids = torch.arange(6, device=model.device).add(model.ordinary).reshape(2, 3) % table.num_embeddings
    mask = torch.tensor([[True, True, True], [True, False, False]], device=model.device)
    turned = torch.tensor([1, 0, 1], device=model.device)
    try:
        _, stages = recorded(cast(StackedModel, model), Batch(ids, mask, torch.zeros_like(ids[:, 0])))
        with torch.no_grad(), changed(model, lambda values: values):
            same = all(_close(stage.call.again(turned), stage.call.states[turned]) for stage in stages)
    except AssayError:
        return UNLISTED, None
    except Exception:  # whatever a layer may do when it is called as it does not expect
        return UNLIKE, None
    return None if same else UNLIKE, None if all(stage.merge is not None for stage in stages) else UNMERGED


def _blocks(model: Model) -> Sequence[nn.Module]:
    if isinstance(model, Body):
        return list(model.blocks)
    assert isinstance(model, Network) and isinstance(model.encoder, Transformer)
    return list(model.encoder.blocks)


def _revalued(
    heads: int, project: nn.Module, given: Any, projected: Float[Tensor, "B S P"]
) -> Float[Tensor, "B S P"] | None:
    """The query, key and value projection of one of our blocks, with changed values."""
    change = VALUES.get()
    if change is None:
        return None  # another thread
    query, key, value = projected.chunk(3, dim=-1)
    apart = value.reshape(*value.shape[:-1], heads, -1).transpose(1, 2)
    return torch.cat([query, key, change(apart).transpose(1, 2).flatten(2)], dim=-1)


def _merging(inputs: Inputs, sums: HeadValues) -> nn.Module | None:
    """The linear map whose input is the concatenated output of the heads."""
    side_by_side = sums.transpose(1, 2).flatten(2)
    same = (part for part, given in inputs if given.shape == side_by_side.shape and _close(given, side_by_side))
    return next(same, None)


def _close(found: Tensor, expected: Tensor) -> bool:
    tolerance = 1e-4 if expected.dtype.itemsize > 2 else 0.1
    return bool((found - expected).abs().max() <= tolerance * expected.abs().max())
