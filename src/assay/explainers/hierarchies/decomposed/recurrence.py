"""Decomposed LSTM and GRU layers: one loop over time for all texts and word sets at once.

Of each gate, A comes from the chosen words, C from its bias alone, and B is the rest (Murdoch et al., 2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.explainers.hierarchies.decomposed.blocks import Blocks, Part, Rows, gain, share
from assay.explainers.relevance.cells import Cell, Gru, Lstm, Trace, Weights
from assay.explainers.relevance.recurrence import passed


@dataclass(frozen=True)
class Step:
    """One time step: β of the four pre-activations, and the activations of texts and contexts."""

    part: Float[Tensor, "S k 4 H"]
    owned: Float[Tensor, "S k 1"]  # the share of the input that is chosen: 1 or 0 of a word
    position: int
    texts: Trace
    seen: Trace | None
    bias: Float[Tensor, "4 H"]

    def gate(self, slots: slice) -> tuple[Tensor, Tensor]:
        """β of some gates."""
        alone = self.part[:, :, slots] + self.bias[slots]
        whole, seen = self._at("slots")
        opened = None if seen is None else seen[..., slots, :]
        return gain(torch.sigmoid, self.part[:, :, slots], alone, whole[:, slots], opened), self.bias[slots].sigmoid()

    def tanh(self, part: Part, alone: Part, name: str, slot: int | None = None) -> Part:
        """β of the hyperbolic tangent of the trace's values of that name."""
        whole, seen = (each if each is None or slot is None else each[..., slot, :] for each in self._at(name))
        assert whole is not None
        return gain(torch.tanh, part, alone, whole, seen)

    def _at(self, name: str) -> tuple[Tensor, Tensor | None]:
        here = getattr(self.texts, name)[:, self.position]
        if self.seen is None:
            return here, None
        seen = getattr(self.seen, name)[:, self.position]
        return here, seen.reshape(self.part.shape[0], -1, *here.shape)


def lstm(step: Step, memory: Part) -> tuple[Part, Part]:
    """β of cell state and hidden state (Murdoch et al., 2018); the output gate is undivided."""
    (keep, forget), (keep_bias, forget_bias) = (each.unbind(-2) for each in step.gate(slice(0, 2)))
    new_bias = step.bias[2].tanh()
    new = step.tanh(step.part[:, :, 2], step.part[:, :, 2] + step.bias[2], "slots", 2)
    written = keep * (new + new_bias) + keep_bias * new + keep_bias * new_bias * step.owned
    memory = written + (forget + forget_bias) * memory
    return memory, step.texts.active[:, step.position, 3] * step.tanh(memory, memory, "memory")


def gru(step: Step, memory: Part) -> tuple[Part, Part]:
    """β of the hidden state by the same rules: of a product, β needs β in one factor, and β or a bias in the other."""
    (reset, update), (reset_bias, update_bias) = (each.unbind(-2) for each in step.gate(slice(0, 2)))
    past, past_bias = step.part[:, :, 3], step.bias[3]
    argument = step.part[:, :, 2] + reset * (past + past_bias) + reset_bias * past
    constant = step.bias[2] + reset_bias * past_bias
    new, new_bias = step.tanh(argument, argument + constant, "active", 3), constant.tanh()
    written = (1 - update_bias) * (new + new_bias * step.owned) - update * (new + new_bias)
    memory = written + (update + update_bias) * memory
    return memory, memory


def recurrent(blocks: Blocks, rows: Float[Tensor, "R T D"], name: str, given: Sequence[Tensor]) -> Rows:
    """The decomposed states [R, T, H] of a layer of one direction, given its weights; padding stands last."""
    cell, weights = _cell(name, [each.detach().to(rows) for each in given])
    whole, part, seen = blocks.cut(rows)
    own = whole if seen is None else torch.cat([whole, seen.flatten(0, 2)])
    positions = range(rows.shape[1])
    trace = passed(cell, weights, own, own.new_ones(own.shape[:2], dtype=torch.bool), positions)
    texts = _some(trace, slice(0, len(whole)))
    steps = _steps(weights, part, whole, texts, None if seen is None else _some(trace, slice(len(whole), None)))
    advance = lstm if isinstance(cell, Lstm) else gru
    states = part.new_empty(*part.shape[:3], weights.bias.shape[1])
    memory = state = torch.zeros_like(states[:, :, 0])
    for step in steps:
        step.part.add_(F.linear(state, weights.states.flatten(0, 1)).view(step.part.shape))
        memory, state = advance(step, memory)
        states[:, :, step.position] = state
    return torch.cat([texts.state, states.flatten(0, 1), trace.state[len(whole) :]])


def _steps(weights: Weights, part: Part, whole: Tensor, texts: Trace, seen: Trace | None) -> Iterator[Step]:
    """The time steps in order, with β of the pre-activations from the input alone."""
    read = F.linear(part, weights.inputs.flatten(0, 1)).view(*part.shape[:3], *weights.bias.shape)
    owned = share(part.abs().sum(-1, keepdim=True), (whole - part).abs().sum(-1, keepdim=True))
    for position in range(part.shape[2]):
        yield Step(read[:, :, position], owned[:, :, position], position, texts, seen, weights.bias)


def _some(trace: Trace, rows: slice) -> Trace:
    return Trace(*(getattr(trace, name)[rows] for name in ("slots", "active", "memory", "shown", "state")))


def _cell(name: str, given: Sequence[Tensor]) -> tuple[Cell, Weights]:
    """The cell, and its weights by gate; a GRU's candidate has two slots, before and after the reset gate."""
    size = given[1].shape[1]
    inputs, states, own, other = (each.reshape(-1, size, *each.shape[1:]) for each in given)
    if name == "lstm":
        return Lstm(), Weights(inputs, states, own + other)
    inputs, own = (torch.cat([each, torch.zeros_like(each[:1])]) for each in (inputs, own))
    states, other = (torch.cat([each[:2], torch.zeros_like(each[:1]), each[2:]]) for each in (states, other))
    return Gru(), Weights(inputs, states, own + other)
