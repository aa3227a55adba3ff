"""Activation steering: reads the hidden states at a level of a network, and the logits after a shift added there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.errors import unknown
from assay.models.encoders import Transformer
from assay.models.hf_body import Body
from assay.models.hf_models import Attentive
from assay.models.network import Network
from assay.models.networks import Hierarchical
from assay.models.textmodel import TextModel
from assay.types import Batch, attended

EMBEDDING, LAYER, STATES = "embedding", "layer {}", "states"


@dataclass(frozen=True)
class Steered:
    """The hidden states at S positions of a level, a shift added to them, and the resulting logits.

    `token_index` is the item each belongs to, a word or in a hierarchy a sentence, -1 for none. The `shift` is a leaf
    that gradients of the logits can be taken to.
    """

    logits: Float[Tensor, "B C"]
    vectors: Float[Tensor, "B S M"]
    shift: Float[Tensor, "B S M"]
    token_index: Int[Tensor, "B S"]

    @property
    def mean(self) -> Float[Tensor, "B M"]:
        """The mean over the items of each text."""
        there = (self.token_index >= 0).to(self.vectors)
        return (there[:, None] @ self.vectors).squeeze(1) / there.sum(-1, keepdim=True).clamp(min=1)


def levels(network: TextModel) -> tuple[str, ...]:
    """The names of all levels, lowest first.

    The "embedding" of each word, each "layer" of self-attention counted from 0, and the "states" that the encoder makes
    of words, or of sentences.
    """
    inner = tuple(LAYER.format(number) for number in range(getattr(network, "layers", 0)))
    return (EMBEDDING, *inner, *((STATES,) if isinstance(network, Network | Attentive) else ()))


def steered(network: TextModel, batch: Batch, level: str, by: Float[Tensor, "B M"] | None = None) -> Steered:
    """A forward pass with `by` added to the hidden states at a level."""
    if level not in levels(network):
        raise unknown("level", level, levels(network))
    # cuDNN's recurrent kernels refuse a backward pass outside training mode.
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        if level == EMBEDDING:
            return _embedded(network, batch, by)
        token_index, parts, turn = _place(network, batch, level)
        mover = _Mover(token_index >= 0, by, turn)
        with _hooked(parts, mover):
            logits = network(network.embed(batch), batch).logits
    assert mover.vectors is not None and mover.shift is not None
    return Steered(logits, mover.vectors, mover.shift, token_index)


def _embedded(network: TextModel, batch: Batch, by: Float[Tensor, "B M"] | None) -> Steered:
    x = network.embed(batch).detach()
    tokens = torch.arange(x.shape[1], device=x.device).where(batch.mask, -1)
    subwords = 1 if batch.subwords is None else batch.subwords.shape[2]
    there = batch.mask[..., None] if batch.subwords is None else (batch.subwords >= 0) & batch.mask[..., None]
    size = x.shape[-1] // subwords
    token_index = tokens.repeat_interleave(subwords, dim=1).where(there.flatten(1), -1)
    vectors = x.reshape(len(x), -1, size)
    shift = torch.zeros_like(vectors).requires_grad_()
    added = (shift if by is None else shift + by[:, None]) * (token_index >= 0)[..., None]
    logits = network((vectors + added).reshape(x.shape), batch).logits
    return Steered(logits, vectors, shift, token_index)


def _place(network: TextModel, batch: Batch, level: str) -> tuple[Int[Tensor, "B S"], list[nn.Module], int]:
    """The items of a level's positions, the modules whose calls are counted, and the number of the call."""
    if isinstance(network, Body):
        if level == STATES:
            return network.token_index(batch), [network.inner], 1
        unique = list(dict.fromkeys(network.blocks))
        return network.token_index(batch), unique, 1 + int(level.removeprefix("layer "))
    assert isinstance(network, Network)
    if level != STATES:
        assert isinstance(network.encoder, Transformer)
        return network.token_index(batch), list(network.encoder.blocks), 1 + int(level.removeprefix("layer "))
    if isinstance(network, Hierarchical):
        real = attended(network, batch)
        return torch.arange(real.shape[1], device=real.device).where(real, -1), [network.encoder], 1
    return network.token_index(batch), [network.encoder], 1


class _Mover:
    """A forward hook that adds a shift to a module's output at one of its calls, and records that output."""

    def __init__(self, there: Bool[Tensor, "B S"], by: Float[Tensor, "B M"] | None, turn: int) -> None:
        self.there, self.by, self.turn = there, by, turn
        self.calls = 0
        self.vectors: Tensor | None = None
        self.shift: Tensor | None = None

    def __call__(self, part: nn.Module, given: Any, answer: Any) -> Any:
        self.calls += 1
        if self.calls != self.turn:
            return None
        states: Tensor = answer if isinstance(answer, Tensor) else answer[0]
        self.vectors = states.detach()
        self.shift = torch.zeros_like(self.vectors).requires_grad_()
        added = self.shift if self.by is None else self.shift + self.by[:, None].to(states)
        moved = states + added * self.there[..., None]
        if isinstance(answer, Tensor):
            return moved
        if isinstance(answer, tuple):
            return (moved, *answer[1:])
        answer["last_hidden_state"] = moved  # the library's own record
        return answer


@contextmanager
def _hooked(parts: Sequence[nn.Module], hook: Callable[..., Any]) -> Iterator[None]:
    handles = [part.register_forward_hook(hook) for part in parts]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
