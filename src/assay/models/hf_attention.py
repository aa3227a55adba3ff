"""Forward passes of transformers: attention that is recorded and edited, shortened or compiled passes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.types import Edit, HeadValues, HeadWeights, LayerwiseEdit

NAME = "assay"


@dataclass
class Watch:
    """Records and edits the attention of one forward pass, layer by layer."""

    edit: Edit | None = None
    keep: bool = False
    calls: int = 0
    weights: list[HeadWeights] = field(default_factory=list)
    masks: list[tuple[Tensor, bool]] = field(default_factory=list)  # those met, and whether their rows are alike

    def seen(
        self, weights: HeadWeights, allowed: Bool[Tensor, "B 1 R S"] | None, mask: Tensor | None = None
    ) -> HeadWeights:
        """The weights to use in the next layer; `allowed` is the boolean form of `mask`."""
        edit = self.edit.at(self.calls) if isinstance(self.edit, LayerwiseEdit) else self.edit
        self.calls += 1
        if edit is not None:
            weights = edited(edit, weights, allowed, self._alike(allowed, mask))
        if self.keep:
            self.weights.append(weights)
        return weights

    def _alike(self, allowed: Bool[Tensor, "B 1 R S"] | None, mask: Tensor | None) -> bool:
        """Whether all positions may attend to the same keys; computed once per mask, as it synchronises the device."""
        if allowed is None or mask is None:
            return True
        for known, answer in self.masks:
            if known is mask:
                return answer
        alike = bool((allowed == allowed[:, :, :1]).all())
        self.masks.append((mask, alike))
        return alike


WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)
VALUES: ContextVar[Callable[[Tensor], Tensor] | None] = ContextVar("values", default=None)
"""Sees the values [B, H, S, K] of each attention, and says which to use."""


def edited(edit: Edit, weights: HeadWeights, allowed: Bool[Tensor, "B 1 R S"] | None, alike: bool) -> HeadWeights:
    """The edited weights; masked positions get no weight, whatever the edit returns.

    Where positions may attend to different keys, as under a causal mask, each is a row of its own.
    """
    rows, heads, queries, keys = weights.shape
    if allowed is None:
        allowed = weights.new_ones(rows, 1, 1, keys, dtype=torch.bool)
    allowed = allowed.expand(rows, 1, -1, keys)
    if alike:
        changed = edit(weights, allowed[:, 0, 0])
    else:
        apart = weights.transpose(1, 2).reshape(rows * queries, heads, keys)
        changed = edit(apart, allowed.expand(rows, 1, queries, keys).reshape(rows * queries, keys))
        changed = changed.reshape(rows, queries, heads, keys).transpose(1, 2)
    return changed.where(allowed, 0)


def attend(
    module: nn.Module,
    query: HeadValues,
    key: Float[Tensor, "B G S K"],
    value: Float[Tensor, "B G S K"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    **unused: Any,
) -> tuple[Float[Tensor, "B S H K"], HeadWeights]:
    """Scaled dot-product attention, like the library's eager implementation, with the weights passed to the watch."""
    watch = WATCH.get()
    shared = query.shape[1] // key.shape[1]  # heads that share keys and values
    key, value = (part.repeat_interleave(shared, dim=1) if shared > 1 else part for part in (key, value))
    if (valued := VALUES.get()) is not None:
        value = valued(value)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = query @ key.transpose(2, 3) * scale
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    allowed = None
    if attention_mask is not None:
        mask = attention_mask[..., : key.shape[2]]
        allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    weights = scores.softmax(-1, dtype=torch.float32 if scores.dtype.itemsize < 4 else None).to(scores.dtype)
    if watch is not None:
        weights = watch.seen(weights, allowed, attention_mask)
    used = nn.functional.dropout(weights, dropout, module.training)
    return (used @ value).transpose(1, 2).contiguous(), weights


def register() -> None:
    """Registers the function with the library, with the mask of eager attention: without that it gets none."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


class _Hush:
    """A counter of nested requests to silence the library's logging, and the level to restore."""

    def __init__(self) -> None:
        self.lock, self.wanted, self.level = threading.Lock(), 0, 0


HUSH = _Hush()
TURNS: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()


@contextmanager
def quiet() -> Iterator[None]:
    """Context manager: the library logs errors only; assay does its own checks and messages."""
    from transformers.utils import logging

    with HUSH.lock:
        if HUSH.wanted == 0:
            HUSH.level = logging.get_verbosity()
            logging.set_verbosity_error()
        HUSH.wanted += 1
    try:
        yield
    finally:
        with HUSH.lock:
            HUSH.wanted -= 1
            if HUSH.wanted == 0:
                logging.set_verbosity(HUSH.level)


@contextmanager
def turn(model: nn.Module) -> Iterator[None]:
    """Context manager: a lock per model, as its attention implementation is a global setting of the model."""
    with HUSH.lock:
        lock = TURNS.setdefault(model, threading.RLock())
    with lock:
        yield


@contextmanager
def of_any_shape() -> Iterator[None]:
    """Context manager: disables cuDNN attention, which compiles a plan for every new shape.

    Texts come in so many lengths that most of the time would go into plans; in training each shape comes back at
    least, but erased words make new ones all the time.
    """
    before = bool(torch.backends.cuda.cudnn_sdp_enabled())  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


@contextmanager
def implemented(model: Any, name: str) -> Iterator[None]:
    """Context manager: the model uses the attention implementation of that name, restored afterwards."""
    with turn(model):
        before = model.config._attn_implementation
        if before == name:
            yield
            return
        with quiet():
            model.set_attn_implementation(name)
        try:
            yield
        finally:
            with quiet():
                model.set_attn_implementation(before)


@contextmanager
def watched(model: Any, watch: Watch) -> Iterator[None]:
    """Context manager: the watch sees every attention of the model."""
    token = WATCH.set(watch)
    try:
        with implemented(model, NAME):
            yield
    finally:
        WATCH.reset(token)


# Brief passes: the last layer at one position only, where the classifier reads no other.


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


# Compiled passes.


MARK = "_compiled_by_assay"


def compiled(inner: nn.Module, backend: str = "inductor") -> None:
    """Compiles the model on its first forward pass; passes that record or edit attention run uncompiled.

    What is compiled belongs to the class, not to the object: a copy whose weights are then changed answers by these.
    """
    kind, usual = type(inner), inner.config._attn_implementation  # type: ignore[union-attr]
    plain: Any = kind.forward
    fast: Any = torch.compile(plain, dynamic=True, backend=backend)

    @wraps(plain)
    def forward(self: Any, *given: Any, **named: Any) -> Any:
        way = fast if self.config._attn_implementation == usual else plain
        return way(self, *given, **named)

    names = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    inner.__class__ = type(kind.__name__, (kind,), {**names, "forward": forward, MARK: True})


def is_compiled(inner: nn.Module) -> bool:
    """Whether the model is compiled, and so always computes all positions."""
    return hasattr(type(inner), MARK)
