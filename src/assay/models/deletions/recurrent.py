"""Leave-one-out under an LSTM or GRU: one pass carries, for every token, the hidden state of the text without it.

Without token i only the forward states behind i and the backward states before i are new; what is fed into the
recurrence is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay.models.deletions.means import Pooled
from assay.models.deletions.readings import Reading, Text
from assay.models.encoders import Recurrent, mirrored, reordered


def recurrent(reading: Reading, text: Text, blank: Float[Tensor, " D"] | None) -> Float[Tensor, "R S P"]:
    """The attention-weighted mean without each token, or with a blank in its position."""
    assert isinstance(reading.encoder, Recurrent)
    order, half = mirrored(text.mask), reading.encoder.size // 2
    forth = Way(reading.encoder.ahead, slice(None, half), text.x, text.states, text.seen)
    back = Way(reading.encoder.behind, slice(half, 2 * half), *forth.turned(order))
    ahead, filled_ahead = _one_way(reading, forth, blank)
    behind, filled_behind = _one_way(reading, back, blank)
    means = ahead.joined(behind.reordered(order))
    if blank is not None:
        filled = torch.cat([filled_ahead, reordered(filled_behind, order)], dim=-1)
        filled = reading.network.beside(filled, blank.expand_as(text.x), torch.ones_like(text.mask))
        means.add(reading.score(filled), reading.value(filled))
    return means.mean().to(text.x.dtype)


@dataclass(frozen=True)
class Way:
    """One direction of a bidirectional network; its own half of the hidden states."""

    network: nn.LSTM | nn.GRU
    own: slice
    x: Float[Tensor, "R S D"]
    states: Float[Tensor, "R S M"]
    seen: Bool[Tensor, "R S"]

    def turned(self, order: Int[Tensor, "R S"]) -> tuple[Tensor, Tensor, Tensor]:
        """The same direction with its rows in another order."""
        return reordered(self.x, order), reordered(self.states, order), self.seen.gather(1, order)

    def weights(self, part: str) -> tuple[Tensor, Tensor]:
        """The weight matrix of the input ("ih") or of the recurrence ("hh")."""
        return getattr(self.network, f"weight_{part}_l0"), getattr(self.network, f"bias_{part}_l0")

    def others(self) -> Float[Tensor, "R S M"]:
        """The half of the hidden states that the other direction computes."""
        emptied = self.states.clone()
        emptied[..., self.own] = 0
        return emptied


def _one_way(reading: Reading, way: Way, blank: Float[Tensor, " D"] | None) -> tuple[Pooled, Float[Tensor, "R S H"]]:
    """The means over the tokens after each token in this direction, read without that token.

    Beside it, the state at each token in the text that has a blank there, if there is one.
    """
    lstm, recur = isinstance(way.network, nn.LSTM), way.weights("hh")
    step = _lstm_step if lstm else _gru_step
    rows, tokens, half = len(way.x), way.x.shape[1], way.network.hidden_size
    inputs = nn.functional.linear(way.x, *way.weights("ih"))
    instead = None if blank is None else nn.functional.linear(blank, *way.weights("ih"))
    carried = way.x.new_zeros(rows, tokens + 1, half * (2 if lstm else 1))
    filled = way.x.new_zeros(rows, tokens, half)
    others, hidden = way.others(), ~way.seen
    aligned, valued = reading.aligned(others), reading.value(others)  # the same throughout
    align, evaluate = reading.aligned.partly(way.own), reading.value.partly(way.own)
    means, lowest = reading.nothing_yet(tokens, valued[:, :1]), torch.finfo(valued.dtype).min
    for position in range(tokens):
        # carried[:, j] is the text so far without token j; carried[:, position] is the whole text so far.
        updated = step(inputs[:, position, None], carried[:, : position + 1], *recur)
        carried[:, position + 1] = updated[:, position]
        carried[:, :position] = updated[:, :position]
        if instead is not None:
            carried[:, position] = step(instead, carried[:, position], *recur)
            filled[:, position] = carried[:, position, :half]
        new = updated[:, :position, :half]
        score = reading.finish(align(new, aligned[:, position, None]))
        means.add(score.masked_fill_(hidden[:, position, None], lowest), evaluate(new, valued[:, position, None]))
    return means, filled


def _lstm_step(inputs: Tensor, carried: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    hidden, cell = carried.chunk(2, dim=-1)
    gates = nn.functional.linear(hidden, weight, bias).add_(inputs)
    keep, forget, new, out = gates.chunk(4, dim=-1)
    cell = (forget.sigmoid_() * cell).addcmul_(keep.sigmoid_(), new.tanh_())
    return torch.cat([out.sigmoid_() * cell.tanh(), cell], dim=-1)


def _gru_step(inputs: Tensor, carried: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    reset, update, new = inputs.chunk(3, dim=-1)
    from_reset, from_update, from_new = nn.functional.linear(carried, weight, bias).chunk(3, dim=-1)
    new = (new + (reset + from_reset).sigmoid() * from_new).tanh()
    return new + (update + from_update).sigmoid() * (carried - new)
