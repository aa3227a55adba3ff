"""State gradients of an LSTM or GRU: one sweep of backpropagation through time for all hidden states at once.

A lane for each state starts where the sweep reaches it. What the steps multiply with is shared by all lanes, so that
one wide product a step does what separate backward passes do with one pass over the text for each state.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.models import budget
from assay.models.dependence.chunks import chunks, norms, truncated
from assay.models.dependence.steps import Lanes, Steps, steps
from assay.models.encoders import Recurrent, mirrored, reordered
from assay.models.network import Network, Paired
from assay.types import Batch, at_least_float32

FAINT = 1.5
"""The power of the rounding unit below which a lane is let go."""

LOOKED = 8
"""Steps from one look at which lanes are alive to the next."""


def recurrent(model: Network, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T T"]:
    """‖∂‖h_n‖/∂e_i‖ for each state and token."""
    example = batch.lengths.argsort(stable=True, descending=True)
    found = norms(x[:1, :1]).new_zeros(len(batch), x.shape[1], x.shape[1])
    for chosen, width in chunks(batch, example, lambda width: budget.room(x.device, "versions", width)):
        rows = example[chosen]
        found[rows, :width, :width] = _both_ways(model, x[rows, :width], truncated(batch, rows, width))
    return found * (batch.mask[:, None] & batch.mask[..., None])


@torch.no_grad()
def _both_ways(model: Network, x: Float[Tensor, "R T D"], batch: Batch) -> Float[Tensor, "R T T"]:
    """Combines both directions: forward for the tokens before a state, backward for those after it."""
    assert isinstance(model.encoder, Recurrent)
    words, mask, marked = x, batch.mask, model.architecture.markers
    if marked:
        x, mask = model.surrounded(x, mask)
    wide, order = at_least_float32(x), mirrored(mask)
    ahead, behind = steps(model.encoder.ahead, wide), steps(model.encoder.behind, reordered(wide, order))
    encoded = torch.cat([ahead.states, reordered(behind.states, order)], dim=-1)
    encoded = (encoded[:, 1:-1] if marked else encoded) * batch.mask[..., None]
    begun = _begun(model, model.beside(encoded, words.to(wide), batch.mask), batch)
    to_states, direct = begun[..., : model.encoder.size], begun[..., model.encoder.size :]
    forth, back = F.pad(to_states, (0, 0, 1, 1) if marked else (0, 0)).chunk(2, dim=-1)
    gradients, own = _swept(ahead, forth)
    turned, other = _swept(behind, reordered(back, order))
    gradients += reordered(turned, order).gather(2, order[:, None].expand_as(turned))
    own += reordered(other, order)
    if marked:
        gradients, own = gradients[:, 1:-1, 1:-1], own[:, 1:-1]
    if model.architecture.concat:
        own = own + direct
    gradients.diagonal(dim1=1, dim2=2).copy_(norms(own))  # here both meet, as vectors
    return gradients


def _begun(model: Network, encoded: Float[Tensor, "R T P"], batch: Batch) -> Float[Tensor, "R T P"]:
    """∂‖h‖/∂ of the encoder's output for each word."""
    with torch.enable_grad():
        encoded = encoded.detach().requires_grad_()
        states = encoded
        if isinstance(model, Paired):
            states = model.matched(encoded, model.query_encoding(batch).detach().to(encoded), batch)
        (gradient,) = torch.autograd.grad(norms(states).sum(), encoded)
    return gradient


def _swept(read: Steps, begun: Float[Tensor, "R T H"]) -> tuple[Float[Tensor, "R T T"], Float[Tensor, "R T D"]]:
    """The gradient norms of each state at each token up to its own, and the gradient vector at its own token."""
    rows, tokens, size = begun.shape
    entries = read.back.shape[-1] * (size + tokens)
    room = budget.room(begun.device, "lanes", entries)
    parts = [slice(start, start + room) for start in range(0, rows, room)]
    found = [_swept_at_once(read.some(part), begun[part]) for part in parts]
    gradients, own = (torch.cat(each) for each in zip(*found, strict=True))
    return gradients, own


def _swept_at_once(read: Steps, begun: Float[Tensor, "R T H"]) -> tuple[Float[Tensor, "R T T"], Float[Tensor, "R T D"]]:
    rows, tokens, size = begun.shape
    now, then = (begun.new_zeros(tokens, rows, read.back.shape[-1]) for _ in range(2))
    memory = begun.transpose(0, 1).contiguous() if read.output is None else begun.new_zeros(tokens, rows, size)
    shown, room = torch.empty_like(memory), begun.new_empty(size, rows, now.shape[-1])
    gradients, own = begun.new_zeros(tokens, tokens, rows), begun.new_empty(rows, tokens, now.shape[-1] - size)
    faint = begun.abs().amax(-1).T * torch.finfo(begun.dtype).eps ** FAINT
    alive = tokens
    for position in reversed(range(tokens)):
        if position % LOOKED == 0:
            looked = slice(position + 1, alive)
            alive = position + 1 + _last_alive(memory[looked], now[looked, :, :size], faint[looked])
        now[position, :, :size] = begun[:, position]  # a lane begins
        live = slice(position, alive)
        read.passed(position, Lanes(memory[live], now[live, :, :size], shown[live], room), then[live])
        gradients[position, live] = norms(then[live, :, size:])
        own[:, position] = then[position, :, size:]
        now, then = then, now
    return gradients.permute(2, 1, 0), read.unrotated(own)


def _last_alive(memory: Float[Tensor, "L R H"], state: Float[Tensor, "L R H"], faint: Float[Tensor, "L R"]) -> int:
    """The number of lanes up to the last one whose gradient is not negligible.

    One that is left with less than u^1.5 of what it began with, u being the rounding unit, is dropped: its gradients
    are 0 from there on. To be seen beside those that it had, it would have to grow by 1/√u again.
    """
    heard = (torch.maximum(memory.abs().amax(-1), state.abs().amax(-1)) > faint).any(-1)
    return int((heard * torch.arange(1, len(heard) + 1, device=heard.device)).amax()) if len(heard) else 0
