"""Computes the last layer at one position only, where the classifier reads no other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

JOINTS = ("attention.output", "mlp", "ffn")
"""What follows the attention of a layer, by the names that architectures give it."""


def joint(block: nn.Module) -> nn.Module | None:
    """The submodule of a layer after its attention, which works position by position, if it has a known name."""
    parts = dict(block.named_modules())
    return next((parts[name] for name in JOINTS if name in parts), None)


def unseen(parts: Iterable[nn.Module]) -> bool:
    """Whether these modules have no hooks, those of the library itself aside."""
    listening = (
        hook
        for part in parts
        for hooks in (part._forward_hooks, part._forward_pre_hooks, part._backward_hooks)
        for hook in hooks.values()
    )
    return all(getattr(hook, "__module__", "").startswith("transformers.") for hook in listening)


@contextmanager
def briefly(part: nn.Module, last: bool) -> Iterator[None]:
    """Context manager: the module computes the first position only, or the last.

    One that is given what to add its output to hands one position on to all that follows; the output of another is
    added by the layer itself, so that nothing stands in for what it was not asked.
    """
    width = 0

    def narrow(module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        nonlocal width
        width = given[0].shape[1]
        return tuple(each[:, -1:] if last else each[:, :1] for each in given)

    def widen(module: nn.Module, given: tuple[Tensor, ...], answer: Any) -> Any:
        around = (width - 1, 0) if last else (0, width - 1)
        return answer if len(given) > 1 else F.pad(answer, (0, 0, *around))

    hooks = part.register_forward_pre_hook(narrow), part.register_forward_hook(widen)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
