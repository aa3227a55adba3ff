"""State gradients: how much each hidden state depends on each word, ‖∂‖h_n‖/∂e_i‖ (Meister et al., 2021)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay.models import budget
from assay.models.encoders import Convolution, Recurrent, Transformer, mirrored, reordered
from assay.models.erasure import gathered
from assay.models.network import Classifier, Network, Paired
from assay.models.walk import GRADIENT, Layer
from assay.types import Batch, at_least_float32, attended

Values = Float[Tensor, "T R H"]
Norms = Float[Tensor, "B N T"]
LaneValues = Float[Tensor, "L R H"]
Embeddings = Float[Tensor, "B T D"]
Chunk = Float[Tensor, "R T D"]
Swept = Float[Tensor, "R T T"]
HiddenStates = Float[Tensor, "R T H"]
Encoded = Float[Tensor, "R T P"]
Vectors = Float[Tensor, "*B D"]
Dependence = Float[Tensor, "B T T"]

FAINT = 1.5
"""The power of the rounding unit below which a lane is dropped."""

CHECKED = 8
"""Steps from one check of which lanes are alive to the next."""


def state_gradient_norms(model: Network, x: Embeddings, batch: Batch) -> Norms:
    """‖∂‖h_n‖₂/∂e_i‖₂ for the state of each item n and each real token i; 0 on padding and where ‖h_n‖ is 0.

    It is equation 5 of Meister et al. (2021) before it is normalised. The state is all that the model attends to: with
    `concat` [h; e], of pairs [h; q; h ⊙ q] for a query q that is held, of a hierarchy the state of a sentence. What
    bars classes from pairs is no part of it. The transformer ends in a layer norm, so only what its scale and shift
    have learnt lets the length of a state vary. A recurrence in half precision is followed in float32.
    """
    x, batch = x.detach(), replace(batch, candidates=None)
    plain = type(model) in (Classifier, Paired)  # a network of another kind may make other states
    if plain and isinstance(model.encoder, Recurrent):
        return recurrent(model, x, batch)
    if plain and not isinstance(model.encoder, Transformer):
        return windowed(model, x, batch)
    return copied(model, x, batch)


def shares(gradients: Norms) -> Norms:
    """The gradient norms of each state normalised to sum to 1, in float64; 0 for a state that depends on no word."""
    wide = gradients.double()
    total = wide.sum(-1, keepdim=True)
    return torch.where(total > 0, wide / total, 0.0)


def chunks(batch: Batch, example: Int[Tensor, " N"], room: Callable[[int], int]) -> Iterator[tuple[slice, int]]:
    """Which of the texts are read together, and the length of the longest; `room` says how many of a length fit.

    The texts must stand with the longest first.
    """
    sizes = batch.lengths[example].tolist()
    start = 0
    while start < len(sizes):
        width = max(1, sizes[start])
        stop = start + max(1, room(width))
        yield slice(start, stop), width
        start = stop


def truncated(batch: Batch, example: Int[Tensor, " N"], width: int) -> Batch:
    """One text for each example, with its first tokens only."""
    positions = torch.arange(width, device=example.device).expand(len(example), -1)
    return gathered(batch, example, positions, batch.mask[example])


def norms(vectors: Vectors) -> Float[Tensor, "*B"]:
    """‖v‖₂, in float32 at least; its gradient at the origin is 0."""
    found: Tensor = torch.linalg.vector_norm(at_least_float32(vectors), dim=-1)
    return found


# Any network: one copy of the text per hidden state, one backward pass for all copies.


def copied(model: Network, x: Embeddings, batch: Batch) -> Float[Tensor, "B N T"]:
    """‖∂‖h_n‖/∂e_i‖ for each state and token."""
    real = attended(model, batch)
    example, item = real.nonzero(as_tuple=True)
    order = batch.lengths[example].argsort(stable=True, descending=True)
    example, item = example[order], item[order]
    found = norms(x[:1, :1]).new_zeros(*real.shape, x.shape[1])
    for chosen, width in chunks(batch, example, lambda width: budget.room(x.device, "versions", width)):
        rows, positions = example[chosen], item[chosen]
        # cuDNN's recurrent kernels refuse a backward pass outside training mode.
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
            words = x[rows, :width].detach().requires_grad_()
            sizes = norms(model.states(words, truncated(batch, rows, width)))
            own = sizes[torch.arange(len(rows), device=x.device), positions]
            (gradient,) = torch.autograd.grad(own.sum(), words)
        found[rows, positions, :width] = norms(gradient)
    return found * batch.mask[:, None]


# A convolution: states whose receptive fields do not overlap share one backward pass.


def windowed(model: Network, x: Embeddings, batch: Batch) -> Dependence:
    """‖∂‖h_n‖/∂e_i‖ for each state and token; every (2r + 1)-th state shares a backward pass, r being their reach."""
    reach = max(model.encoder.widths) // 2 if isinstance(model.encoder, Convolution) else 0
    tokens, period = batch.ids.shape[1], 2 * reach + 1
    positions = torch.arange(tokens, device=x.device)
    with torch.enable_grad():
        words = x.detach().requires_grad_()
        sizes = norms(model.states(words, batch))
    found = sizes.new_zeros(len(batch), tokens, tokens).detach()
    for first in range(min(period, tokens)):
        with torch.enable_grad():
            apart = sizes[:, first::period].sum()
        (gradient,) = torch.autograd.grad(apart, words, retain_graph=True)
        seen_by = positions + reach - (positions - first + reach) % period  # the one state of these that sees the word
        there = (seen_by >= 0) & (seen_by < tokens)
        found[:, seen_by[there], positions[there]] = norms(gradient)[:, there]
    return found * (batch.mask[:, None] & batch.mask[..., None])


# LSTM and GRU: one sweep of backpropagation through time for all hidden states at once.
#
# Given its activations a step is linear in the backward pass, and the same for every state that the gradient is of. The
# gates are elementwise, so all of them together are one matrix per text and step, of the size of a single gate's. A
# lane for each state starts where the sweep reaches it; one wide product a step serves all lanes.


@dataclass(frozen=True)
class Lanes:
    """Gradients of L states with respect to cell state and hidden state at one step, with buffers."""

    memory: LaneValues
    state: LaneValues
    shown: LaneValues
    room: Float[Tensor, "H R J"]


@dataclass(frozen=True)
class Output:
    """The output gate of an LSTM: gradients with respect to the cell state do not pass it."""

    opened: Values  # of the memory in the state
    factors: Values  # of the gate in the state
    back: Float[Tensor, "H K"]  # as that of `Jacobians`, less columns at the end that are 0


@dataclass(frozen=True)
class Jacobians:
    """The local Jacobians of one direction over some texts: with respect to c of an LSTM, or to h of a GRU.

    Inputs are rotated, which leaves lengths as they are: what the gate before the state leads to then needs as few
    coordinates as it has units.
    """

    states: HiddenStates
    factors: Float[Tensor, "T H R G"]  # of each gate in the memory, ...
    back: Float[Tensor, "H G J"]  # ... and where it leads: H numbers of the state before, then D of the input
    retained: Values  # of the memory before in the memory
    output: Output | None
    rotation: Float[Tensor, "D D"] | None

    @classmethod
    def of(cls, layer: Layer, x: Chunk) -> Jacobians:
        """The forward pass with its local derivatives."""
        trace = layer.trace(x)
        local, size = layer.cell.multipliers(GRADIENT, trace), trace.state.shape[-1]
        written = [(slot, each) for slot, each in enumerate(local.written) if isinstance(each, Tensor)]
        factors = torch.stack([each.transpose(0, 1) for _, each in written], dim=-1).transpose(1, 2)
        shown, rotation, output = local.shown[3], None, None
        if isinstance(shown, Tensor):
            rotation = _rotation(layer.inputs[3])
        inputs = layer.inputs if rotation is None else layer.inputs @ rotation
        back = torch.cat([layer.states, inputs], dim=-1)
        if isinstance(shown, Tensor) and isinstance(local.opened, Tensor):
            output = Output(local.opened.transpose(0, 1), shown.transpose(0, 1), back[3, :, : 2 * size])
        chosen = back[[slot for slot, _ in written]].transpose(0, 1).contiguous()
        return cls(trace.state, factors, chosen, local.retained.transpose(0, 1), output, rotation)

    def some(self, rows: slice) -> Jacobians:
        """Those of some of the texts."""
        output = self.output
        if output is not None:
            output = replace(output, opened=output.opened[:, rows], factors=output.factors[:, rows])
        factors = self.factors[:, :, rows].contiguous()
        return replace(self, states=self.states[rows], factors=factors, retained=self.retained[:, rows], output=output)

    def passed(self, position: int, lanes: Lanes, made: Float[Tensor, "L R J"]) -> None:
        """One backward step: writes the gradients with respect to the previous state and the input, in place."""
        output, size = self.output, lanes.memory.shape[-1]
        if output is not None:
            lanes.memory.addcmul_(lanes.state, output.opened[position])
        torch.bmm(self.factors[position], self.back, out=lanes.room)  # all gates as one matrix for each text
        torch.bmm(lanes.memory.transpose(0, 1), lanes.room.transpose(0, 1), out=made.transpose(0, 1))
        if output is not None:
            shown = torch.mul(lanes.state, output.factors[position], out=lanes.shown)
            made.flatten(0, 1)[:, : output.back.shape[1]].addmm_(shown.flatten(0, 1), output.back)
        lanes.memory.mul_(self.retained[position])
        if output is None:
            lanes.memory.add_(made[..., :size])

    def unrotated(self, gradients: Vectors) -> Vectors:
        """Gradients with respect to the input in its own coordinates."""
        return gradients if self.rotation is None else gradients @ self.rotation.T


def _rotation(weight: Float[Tensor, "H D"]) -> Float[Tensor, "D D"] | None:
    """A rotation of inputs after which only the weight's first H columns are nonzero; None for D ≤ H."""
    if weight.shape[1] <= weight.shape[0]:
        return None
    rotation: Tensor = torch.linalg.qr(weight.T.double(), mode="complete").Q
    return rotation.to(weight.dtype)


def recurrent(model: Network, x: Embeddings, batch: Batch) -> Dependence:
    """‖∂‖h_n‖/∂e_i‖ for each state and token."""
    example = batch.lengths.argsort(stable=True, descending=True)
    found = norms(x[:1, :1]).new_zeros(len(batch), x.shape[1], x.shape[1])
    for chosen, width in chunks(batch, example, lambda width: budget.room(x.device, "versions", width)):
        rows = example[chosen]
        found[rows, :width, :width] = _both_ways(model, x[rows, :width], truncated(batch, rows, width))
    return found * (batch.mask[:, None] & batch.mask[..., None])


@torch.no_grad()
def _both_ways(model: Network, x: Chunk, batch: Batch) -> Swept:
    """Combines both directions: forward for the tokens before a state, backward for those after it."""
    assert isinstance(model.encoder, Recurrent)
    words, mask, marked = x, batch.mask, model.architecture.markers
    if marked:
        x, mask = model.surrounded(x, mask)
    wide, order = at_least_float32(x), mirrored(mask)
    ahead = Jacobians.of(Layer.among(model.encoder.ahead, wide), wide)
    behind = Jacobians.of(Layer.among(model.encoder.behind, wide), reordered(wide, order))
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


def _begun(model: Network, encoded: Encoded, batch: Batch) -> Encoded:
    """∂‖h‖/∂ of the encoder's output for each word."""
    with torch.enable_grad():
        encoded = encoded.detach().requires_grad_()
        states = encoded
        if isinstance(model, Paired):
            states = model.matched(encoded, model.query_encoding(batch).detach().to(encoded), batch)
        (gradient,) = torch.autograd.grad(norms(states).sum(), encoded)
    return gradient


def _swept(read: Jacobians, begun: HiddenStates) -> tuple[Swept, Chunk]:
    """The gradient norms of each state at each token up to its own, and the gradient vector at its own token."""
    rows, tokens, size = begun.shape
    entries = read.back.shape[-1] * (size + tokens)
    room = budget.room(begun.device, "lanes", entries)
    parts = [slice(start, start + room) for start in range(0, rows, room)]
    found = [_swept_at_once(read.some(part), begun[part]) for part in parts]
    gradients, own = (torch.cat(each) for each in zip(*found, strict=True))
    return gradients, own


def _swept_at_once(read: Jacobians, begun: HiddenStates) -> tuple[Swept, Chunk]:
    rows, tokens, size = begun.shape
    now, then = (begun.new_zeros(tokens, rows, read.back.shape[-1]) for _ in range(2))
    memory = begun.transpose(0, 1).contiguous() if read.output is None else begun.new_zeros(tokens, rows, size)
    shown, room = torch.empty_like(memory), begun.new_empty(size, rows, now.shape[-1])
    gradients, own = begun.new_zeros(tokens, tokens, rows), begun.new_empty(rows, tokens, now.shape[-1] - size)
    faint = begun.abs().amax(-1).T * torch.finfo(begun.dtype).eps ** FAINT
    alive = tokens
    for position in reversed(range(tokens)):
        if position % CHECKED == 0:
            checked = slice(position + 1, alive)
            alive = position + 1 + _last_alive(memory[checked], now[checked, :, :size], faint[checked])
        now[position, :, :size] = begun[:, position]  # a lane begins
        live = slice(position, alive)
        read.passed(position, Lanes(memory[live], now[live, :, :size], shown[live], room), then[live])
        gradients[position, live] = norms(then[live, :, size:])
        own[:, position] = then[position, :, size:]
        now, then = then, now
    return gradients.permute(2, 1, 0), read.unrotated(own)


def _last_alive(memory: LaneValues, state: LaneValues, faint: Float[Tensor, "L R"]) -> int:
    """The number of lanes up to the last one whose gradient is not negligible.

    One that is left with less than u^1.5 of what it began with, u being the rounding unit, is dropped: its gradients
    are 0 from there on. To be seen beside those that it had, it would have to grow by 1/√u again.
    """
    alive = (torch.maximum(memory.abs().amax(-1), state.abs().amax(-1)) > faint).any(-1)
    return int((alive * torch.arange(1, len(alive) + 1, device=alive.device)).amax()) if len(alive) else 0
