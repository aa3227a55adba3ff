"""A tensor subclass of stacked rows: any network can compute with it, and its operations are decomposed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.hierarchies.decomposed.blocks import BLOCKS

LINEAR = frozenset(
    (
        *("__get__", "__getitem__", "chunk", "clone", "contiguous", "cumsum", "detach", "dropout", "expand", "flatten"),
        *("flip", "gather", "index_select", "mean", "movedim", "narrow", "neg", "new_zeros", "permute", "repeat"),
        *(
            "repeat_interleave",
            "reshape",
            "roll",
            "select",
            "split",
            "squeeze",
            "sum",
            "swapaxes",
            "t",
            "take_along_dim",
        ),
        *("tensor_split", "tile", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view", "zeros_like"),
        *("__neg__", "__iter__", "alias", "narrow_copy", "swapdims", "new_empty", "empty_like"),
    )
)
"""Steps that are linear, and are taken for a text and its parts alike."""

CONSTANT = frozenset(("new_ones", "new_full", "new_tensor", "ones_like", "full_like"))
"""Steps whose result has nothing of what they are given."""

LIKE = frozenset(("expand_as", "reshape_as", "to", "type_as", "view_as"))
"""Steps that make a tensor like another; only the first is in the result."""


class Divided(Tensor):
    """Stacked rows; `lost` names the first operation without a rule, after which the values can only gate."""

    lost: str | None = "a step outside torch"
    gate: bool = False  # whether it is what an activation returned

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        from assay.explainers.hierarchies.decomposed.steps import STEPS  # rules for this very class

        with torch._C.DisableTorchFunctionSubclass():
            return _taken(function, STEPS, args, kwargs or {})


Rule = Callable[..., "Divided | Tensor"]


def _taken(function: Any, rules: dict[str, Rule], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The output of an operation on stacked rows."""
    name = getattr(function, "__name__", "")
    if (name.endswith("_") and not name.endswith("__")) or name in ("__iadd__", "__isub__", "__imul__", "__setitem__"):
        return _in_place(function, name, rules, args, named)
    if name in CONSTANT or (name in LIKE and not isinstance(args[0], Divided)):
        return function(*args, **named)
    lost = next((each.lost for each in given(args, named) if each.lost), None)
    if name in rules:
        return rules[name](function, *args, **named)
    answer = function(*args, **named)
    return divided(answer, lost if name in LINEAR or lost else name)


def _in_place(function: Any, name: str, rules: dict[str, Rule], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """In-place writes: allowed into a stack, an error elsewhere."""
    target = args[0]
    apart = name.strip("_").removeprefix("i") if name.startswith("__i") else name.rstrip("_")
    if not isinstance(target, Divided):
        raise AssayError(f"Contextual decomposition has no rule for a step that writes into a constant ({name}).")
    if name == "__setitem__" or apart not in rules:
        lost = next((each.lost for each in given(args, named) if each.lost), None)
        function(*args, **named)
        target.lost = lost if apart in LINEAR or lost else name
        return target
    found = rules[apart](getattr(torch, apart), *args, **named)
    assert isinstance(found, Divided)
    target.copy_(found)
    target.lost = found.lost
    return target


def given(args: tuple[Any, ...], named: dict[str, Any]) -> list[Divided]:
    """The stacks among an operation's arguments."""
    found: list[Divided] = []
    for each in (*args, *named.values()):
        if isinstance(each, Divided):
            found.append(each)
        elif isinstance(each, list | tuple):
            found += given(tuple(each), {})
    return found


def divided(answer: Any, lost: str | None = None, gate: bool = False) -> Any:
    """The output as a stack; integer outputs, such as indices, unchanged."""
    if isinstance(answer, Tensor) and answer.is_floating_point():
        stack = answer.as_subclass(Divided)
        stack.lost, stack.gate = lost, gate
        return stack
    if isinstance(answer, tuple | list) and not isinstance(answer, torch.Size):
        return type(answer)([divided(each, lost) for each in answer])
    return answer


def plain(rows: Tensor) -> Tensor:
    """The underlying tensor."""
    with torch._C.DisableTorchFunctionSubclass():
        return rows.as_subclass(Tensor)


def stacked(rows: Tensor) -> Divided:
    """Rows in the layout of this thread's blocks."""
    BLOCKS.get().cut(rows)
    found: Divided = divided(rows)
    return found
