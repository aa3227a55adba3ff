"""Records the calls of a model's layers in a forward pass, so that a layer can be run again on some texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.models.hf_attention import VALUES
from assay.types import HeadValues

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
