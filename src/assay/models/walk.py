"""A walk over a network's operations, each computed by the rule of its name, and the steps of LSTM and GRU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from assay.errors import AssayError

Steps = Float[Tensor, "B T G"]


class UnfusedOps(TorchFunctionMode):
    """Context manager: computes LSTMs, GRUs and scaled dot-product attention by differentiable primitives."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in (torch.lstm, torch.gru):
            return self.recurrence(func is torch.lstm, *args)
        if func is F.scaled_dot_product_attention:
            return attention(*args, **kwargs)
        if func is F.embedding and not args[0].numel():  # of nothing: many at once cannot go back through that
            return args[1].new_zeros(*args[0].shape, args[1].shape[1])
        return func(*args, **kwargs)

    def recurrence(
        self,
        long: bool,
        x: Tensor,
        before: Any,
        weights: Sequence[Tensor],
        bias: bool,
        layers: int,
        dropout: float,
        training: bool,
        both: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        """The same result as torch.lstm or torch.gru."""
        if layers != 1 or both or not bias or not isinstance(batch_first, bool):
            raise AssayError("Only recurrent layers of one direction, one layer and with a bias are read step by step.")
        rows = x if batch_first else x.transpose(0, 1)
        given = self.linear(rows, weights[0], weights[2])
        run = lstm if long else gru
        states, last = run(given, before, lambda state: F.linear(state, weights[1], weights[3]))
        return (states if batch_first else states.transpose(0, 1), *last)

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """A linear map; subclasses record it here."""
        return F.linear(x, weight, bias)


Recur = Callable[[Tensor], Tensor]


def lstm(given: Steps, before: Any, recur: Recur) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Hidden states, the last hidden state and the last cell state, from the inputs' share of the gates."""
    state, memory = (each.squeeze(0) for each in before)
    states = []
    for slots in given.unbind(1):
        keep, forget, new, out = (slots + recur(state)).chunk(4, dim=-1)
        memory = forget.sigmoid() * memory + keep.sigmoid() * new.tanh()
        state = out.sigmoid() * memory.tanh()
        states.append(state)
    return torch.stack(states, dim=1), (state[None], memory[None])


def gru(given: Steps, before: Any, recur: Recur) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Hidden states and the last one, from the inputs' share of the gates."""
    state = before.squeeze(0)
    states = []
    for slots in given.unbind(1):
        reset, update, new = slots.chunk(3, dim=-1)
        of_reset, of_update, of_new = recur(state).chunk(3, dim=-1)
        candidate = (new + (reset + of_reset).sigmoid() * of_new).tanh()
        share = (update + of_update).sigmoid()
        state = share * state + (1 - share) * candidate
        states.append(state)
    return torch.stack(states, dim=1), (state[None],)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The same result as torch's scaled_dot_product_attention."""
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    seen = scores.new_ones(scores.shape[-2:], dtype=torch.bool)
    if is_causal:
        seen = seen.tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = seen & attn_mask
    elif attn_mask is not None:
        seen = seen & (attn_mask > -math.inf)
        scores = scores + attn_mask.masked_fill(~seen, 0.0)
    shares = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1) * seen  # a row may see nothing
    return F.dropout(shares, dropout_p) @ value if dropout_p else shares @ value
