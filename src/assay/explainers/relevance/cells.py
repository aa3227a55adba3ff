"""LSTM and GRU cells: the forward pass of one step, and the local multipliers of all steps.

Given its pre-activations a step works element by element, so that the multipliers of all steps are found at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.explainers.relevance.rules import TANH, Multiplier, Rules, times

Memory = Float[Tensor, "R T H"]
Four = Float[Tensor, "R T 4 H"]


@dataclass(frozen=True)
class Trace:
    """The recorded forward pass: each step's pre-activations, activations, cell state and hidden state."""

    slots: Four
    active: Four
    memory: Memory
    shown: Memory  # the memory's activation, where the cell has one
    state: Memory


@dataclass(frozen=True)
class Multipliers:
    """Local multipliers: of the previous cell state in the next, of the cell state in h, and of each slot."""

    kept: Tensor
    opened: Multiplier
    written: tuple[Multiplier, ...]
    shown: tuple[Multiplier, ...]


@dataclass(frozen=True)
class Weights:
    """Weights of the four pre-activations, for the input and the previous hidden state."""

    inputs: Float[Tensor, "4 H D"]
    states: Float[Tensor, "4 H H"]
    bias: Float[Tensor, "4 H"]


class Lstm:
    """c = f c' + i tanh(g), h = o tanh(c), with the slots i, f, g, o."""

    def advance(self, trace: Trace, position: int, memory: Float[Tensor, "R H"], real: Float[Tensor, "R 1"]) -> None:
        """The forward pass of one step, written into the trace; on padding the cell state is 0."""
        slots, active = trace.slots[:, position], trace.active[:, position]
        torch.sigmoid(slots, out=active)
        torch.tanh(slots[:, 2], out=active[:, 2])
        now = torch.mul(active[:, 1], memory, out=trace.memory[:, position]).addcmul_(active[:, 0], active[:, 2])
        shown = torch.tanh(now.mul_(real), out=trace.shown[:, position])
        torch.mul(active[:, 3], shown, out=trace.state[:, position])

    def multipliers(self, rules: Rules, trace: Trace, before: Memory) -> Multipliers:
        slots, (keep, forget, new, out) = trace.slots.unbind(2), trace.active.unbind(2)
        total = rules.total(trace.memory)
        by_forget, by_before = rules.product(forget, before)
        by_keep, by_new = rules.product(keep, new)
        by_out, by_shown = rules.product(out, trace.shown)
        written = (
            times(by_keep, rules.gate(slots[0], keep), total),
            times(by_forget, rules.gate(slots[1], forget), total),
            times(by_new, rules.unary(TANH, slots[2], new), rules.total(slots[2]), total),
            0.0,
        )
        opened = times(by_shown, rules.unary(TANH, trace.memory, trace.shown))
        shown = (0.0, 0.0, 0.0, times(by_out, rules.gate(slots[3], out)))
        return Multipliers(_tensor(times(by_before, total)), opened, written, shown)


class Gru:
    """h = z h' + (1 - z) tanh(n + r v), with the slots r, z, n, v; v is linear in the state before and sees no input.

    For relevance propagation r, z and 1 - z are gates as those of an LSTM are: h' and the new candidate get everything.
    """

    def advance(self, trace: Trace, position: int, memory: Float[Tensor, "R H"], real: Float[Tensor, "R 1"]) -> None:
        slots, active = trace.slots[:, position], trace.active[:, position]
        torch.sigmoid(slots[:, :2], out=active[:, :2])
        torch.addcmul(slots[:, 2], active[:, 0], slots[:, 3], out=active[:, 3])  # the candidate's argument
        torch.tanh(active[:, 3], out=active[:, 2])
        now = torch.lerp(active[:, 2], memory, active[:, 1], out=trace.memory[:, position])
        trace.state[:, position] = now.mul_(real)

    def multipliers(self, rules: Rules, trace: Trace, before: Memory) -> Multipliers:
        slots, (reset, update, new, argument) = trace.slots.unbind(2), trace.active.unbind(2)
        total = rules.total(trace.memory)
        by_update, by_before = rules.product(update, before)
        by_rest, by_new = rules.product(1 - update, new)
        by_reset, by_past = rules.product(reset, slots[3])
        candidate = times(by_new, rules.unary(TANH, argument, new), rules.total(argument), total)
        written = (
            times(candidate, by_reset, rules.gate(slots[0], reset)),
            times(by_update - by_rest, rules.gate(slots[1], update), total),
            candidate,
            times(candidate, by_past),
        )
        return Multipliers(_tensor(times(by_before, total)), 1.0, written, (0.0,) * 4)


Cell = Lstm | Gru


def _tensor(multiplier: Multiplier) -> Tensor:
    assert isinstance(multiplier, Tensor)
    return multiplier


def taken_apart(network: nn.LSTM | nn.GRU, dtype: torch.dtype) -> tuple[Cell, Weights]:
    """The cell of a layer of one direction, and its weights slot by slot."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    inputs, states, own, other = (
        getattr(network, name).detach().to(dtype).unflatten(0, (-1, network.hidden_size)) for name in names
    )
    if isinstance(network, nn.LSTM):
        return Lstm(), Weights(inputs, states, own + other)
    inputs, own = (torch.cat([part, torch.zeros_like(part[:1])]) for part in (inputs, own))
    states, other = (torch.cat([part[:2], torch.zeros_like(part[:1]), part[2:]]) for part in (states, other))
    return Gru(), Weights(inputs, states, own + other)
