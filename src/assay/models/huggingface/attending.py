"""A self-attention function that records and edits attention weights, registered with the transformers library."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay.types import Edit, LayerwiseEdit

NAME = "assay"


@dataclass
class Watch:
    """Records and edits the attention of one forward pass, layer by layer."""

    edit: Edit | None = None
    keep: bool = False
    calls: int = 0
    weights: list[Float[Tensor, "B H S S"]] = field(default_factory=list)
    masks: list[tuple[Tensor, bool]] = field(default_factory=list)  # those met, and whether their rows are alike

    def seen(
        self, weights: Float[Tensor, "B H S S"], allowed: Bool[Tensor, "B 1 R S"] | None, mask: Tensor | None = None
    ) -> Float[Tensor, "B H S S"]:
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


def edited(
    edit: Edit, weights: Float[Tensor, "B H S S"], allowed: Bool[Tensor, "B 1 R S"] | None, alike: bool
) -> Float[Tensor, "B H S S"]:
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
    query: Float[Tensor, "B H S K"],
    key: Float[Tensor, "B G S K"],
    value: Float[Tensor, "B G S K"],
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    softcap: float | None = None,
    **unused: Any,
) -> tuple[Float[Tensor, "B S H K"], Float[Tensor, "B H S S"]]:
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
