"""Self-attention that can be watched and edited: the function that stands in for the library's own."""

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
    """What is done to the attention of one pass, layer by layer, and what was seen of it."""

    edit: Edit | None = None
    keep: bool = False
    calls: int = 0
    weights: list[Float[Tensor, "B H S S"]] = field(default_factory=list)
    masks: list[tuple[Tensor, bool]] = field(default_factory=list)  # those met, and whether their rows are alike

    def seen(
        self, weights: Float[Tensor, "B H S S"], allowed: Bool[Tensor, "B 1 R S"] | None, mask: Tensor | None = None
    ) -> Float[Tensor, "B H S S"]:
        """The weights to use in the next layer, where `allowed` was made from `mask`."""
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
    """The weights as the edit makes them; what a position may not attend to has none, whatever the edit says.

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
    """Scaled dot-product attention, as the library's eager one, with the weights open to the watch."""
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
    """Makes the function known to the library, with the mask that eager attention gets: without it none is made."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


class _Hush:
    """How many want the library to be silent, and how loud it was before the first of them."""

    def __init__(self) -> None:
        self.lock, self.wanted, self.level = threading.Lock(), 0, 0


HUSH = _Hush()
TURNS: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()


@contextmanager
def quiet() -> Iterator[None]:
    """Within, the library logs errors only; what matters is checked and said by us."""
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
    """Within, no other thread has the model read: how it attends is a setting of the whole model."""
    with HUSH.lock:
        lock = TURNS.setdefault(model, threading.RLock())
    with lock:
        yield


@contextmanager
def of_any_shape() -> Iterator[None]:
    """Within, attention is not left to cuDNN, which plans anew for every shape that it meets.

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
    """Within, the model attends by the implementation of that name; then as before."""
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
    """Within, the watch sees every attention of the model."""
    token = WATCH.set(watch)
    try:
        with implemented(model, NAME):
            yield
    finally:
        WATCH.reset(token)
