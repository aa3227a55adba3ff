"""The local Jacobians of LSTM and GRU steps, for backpropagation through time.

Given its activations a step is linear in the backward pass, and the same for every state that the gradient is of. The
gates are elementwise, so all of them together are one matrix per text and step, of the size of a single gate's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

Values = Float[Tensor, "T R H"]


@dataclass(frozen=True)
class Lanes:
    """Gradients of L states with respect to cell state and hidden state at one step, with buffers."""

    memory: Float[Tensor, "L R H"]
    state: Float[Tensor, "L R H"]
    shown: Float[Tensor, "L R H"]
    room: Float[Tensor, "H R J"]


@dataclass(frozen=True)
class Output:
    """The output gate of an LSTM: gradients with respect to the cell state do not pass it."""

    opened: Values  # of the memory in the state
    factors: Values  # of the gate in the state
    back: Float[Tensor, "H K"]  # as that of `Steps`, less columns at the end that are 0


@dataclass(frozen=True)
class Steps:
    """One direction over some texts; gradients are with respect to the cell state c of an LSTM, or to h of a GRU.

    Inputs are rotated, which leaves lengths as they are: what the gate before the state leads to then needs as few
    coordinates as it has units.
    """

    states: Float[Tensor, "R T H"]
    factors: Float[Tensor, "T H R G"]  # of each gate in the memory, ...
    back: Float[Tensor, "H G J"]  # ... and where it leads: H numbers of the state before, then D of the input
    kept: Values  # of the memory before in the memory
    output: Output | None
    rotation: Float[Tensor, "D D"] | None

    def some(self, rows: slice) -> Steps:
        """The steps of some of the texts."""
        output = self.output
        if output is not None:
            output = replace(output, opened=output.opened[:, rows], factors=output.factors[:, rows])
        factors = self.factors[:, :, rows].contiguous()
        return replace(self, states=self.states[rows], factors=factors, kept=self.kept[:, rows], output=output)

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
        lanes.memory.mul_(self.kept[position])
        if output is None:
            lanes.memory.add_(made[..., :size])

    def unrotated(self, gradients: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Gradients with respect to the input in its own coordinates."""
        return gradients if self.rotation is None else gradients @ self.rotation.T


def steps(network: nn.LSTM | nn.GRU, x: Float[Tensor, "R T D"]) -> Steps:
    """The forward pass with its local Jacobians, in the precision of x."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    weights = [getattr(network, name).detach().to(x.dtype) for name in names]
    return (_lstm if isinstance(network, nn.LSTM) else _gru)(x, *weights)


def _lstm(x: Float[Tensor, "R T D"], inputs: Tensor, states: Tensor, own: Tensor, other: Tensor) -> Steps:
    """LSTM: c = f c' + i g, h = o tanh(c)."""
    given, recur = F.linear(x.transpose(0, 1), inputs, own + other), states.T.contiguous()
    memory = state = x.new_zeros(len(x), states.shape[1])
    gates, before, shown, found = [], [], [], []
    for sums in given:
        keep, forget, new, out = torch.addmm(sums, state, recur).chunk(4, dim=-1)
        gates.append((keep.sigmoid(), forget.sigmoid(), new.tanh(), out.sigmoid()))
        before.append(memory)
        memory = torch.addcmul(gates[-1][1] * memory, gates[-1][0], gates[-1][2])
        shown.append(memory.tanh())
        state = gates[-1][3] * shown[-1]
        found.append(state)
    keep, forget, new, out = (torch.stack(gate) for gate in zip(*gates, strict=True))
    last, visible = torch.stack(before), torch.stack(shown)
    written = (new * keep * (1 - keep), last * forget * (1 - forget), keep * (1 - new * new))
    rotation = _rotation(inputs[-len(recur) :])
    turned = inputs if rotation is None else inputs @ rotation
    back = torch.cat([states, turned], dim=-1).reshape(4, len(recur), -1)
    output = Output(out * (1 - visible * visible), visible * out * (1 - out), back[3, :, : 2 * len(recur)])
    return Steps(
        torch.stack(found, dim=1), _sorted(*written), back[:3].transpose(0, 1).contiguous(), forget, output, rotation
    )


def _rotation(weight: Float[Tensor, "H D"]) -> Float[Tensor, "D D"] | None:
    """A rotation of inputs after which only the weight's first H columns are nonzero; None for D ≤ H."""
    if weight.shape[1] <= weight.shape[0]:
        return None
    rotation: Tensor = torch.linalg.qr(weight.T.double(), mode="complete").Q
    return rotation.to(weight.dtype)


def _gru(x: Float[Tensor, "R T D"], inputs: Tensor, states: Tensor, own: Tensor, other: Tensor) -> Steps:
    """GRU: h = z h' + (1 - z) tanh(n + r v), with v linear in h' and n in the input: two gates in the backward pass."""
    given, recur = F.linear(x.transpose(0, 1), inputs, own), states.T.contiguous()
    state = x.new_zeros(len(x), states.shape[1])
    gates, before, found = [], [], []
    for sums in given:
        from_reset, from_update, past = torch.addmm(other, state, recur).chunk(3, dim=-1)
        into_reset, into_update, into_new = sums.chunk(3, dim=-1)
        reset, update = (into_reset + from_reset).sigmoid(), (into_update + from_update).sigmoid()
        new = torch.addcmul(into_new, reset, past).tanh()
        gates.append((reset, update, new, past))
        before.append(state)
        state = torch.lerp(new, state, update)
        found.append(state)
    reset, update, new, past = (torch.stack(gate) for gate in zip(*gates, strict=True))
    candidate = (1 - update) * (1 - new * new)
    of_gates = candidate * past * reset * (1 - reset), (torch.stack(before) - new) * update * (1 - update)
    to_state, to_input = (part.reshape(3, len(recur), -1).transpose(0, 1) for part in (states, inputs))
    wide = torch.cat([to_state, to_input], dim=-1)
    only_input, only_state = wide[:, 2:].clone(), wide[:, 2:].clone()
    only_input[..., : states.shape[1]], only_state[..., states.shape[1] :] = 0, 0
    back = torch.cat([wide[:, :2], only_input, only_state], dim=1)
    factors = _sorted(*of_gates, candidate, candidate * reset)
    return Steps(torch.stack(found, dim=1), factors, back, update, None, None)


def _sorted(*factors: Values) -> Float[Tensor, "T H R G"]:
    return torch.stack(factors, dim=-1).transpose(1, 2)
