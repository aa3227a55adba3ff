"""A recurrent layer under rules as an autograd function: forward pass, multipliers of all steps, linear backward pass.

What a rule holds has no multiplier and drops out of the backward pass: the ε-rule, which holds the gates, follows the
candidate alone.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.explainers.relevance.cells import Cell, Multipliers, Trace, Weights, taken_apart


class Recurrence(torch.autograd.Function):
    """The hidden states of one direction, 0 on padding; its backward pass uses the rules' multipliers."""

    @staticmethod
    def forward(ctx, x, biases, mask, network, rules, reverse):  # type: ignore[no-untyped-def]
        cell, ctx.weights = taken_apart(network, x.dtype)
        ctx.mask, ctx.positions = mask, range(x.shape[1])[:: -1 if reverse else 1]
        trace = passed(cell, ctx.weights, x, mask, ctx.positions)
        before = _shifted(trace.memory, reverse)
        ctx.multipliers = cell.multipliers(rules, trace, before)
        return trace.state

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        chosen, back = passed_back(ctx.multipliers, ctx.weights, gradient, ctx.mask, ctx.positions)
        back = back.transpose(0, 1).flatten(2)
        to_x = (back @ ctx.weights.inputs[chosen].flatten(0, 1)).transpose(0, 1)
        to_biases = (back @ ctx.weights.bias[chosen].flatten()).sum(0)
        return to_x, to_biases, None, None, None, None


def passed(
    cell: Cell, weights: Weights, x: Float[Tensor, "R T D"], mask: Bool[Tensor, "R T"], positions: range
) -> Trace:
    """The forward pass: the trace of all steps; on padding the cell state stays 0."""
    rows, tokens, size = *x.shape[:2], weights.bias.shape[1]
    slots = torch.nn.functional.linear(
        x.transpose(0, 1).contiguous(), weights.inputs.flatten(0, 1), weights.bias.flatten()
    )
    memory, shown, state = (_empty(x, size) for _ in range(3))
    trace = Trace(slots.view(tokens, rows, 4, size).transpose(0, 1), _empty(x, 4, size), memory, shown, state)
    recur, real = weights.states.flatten(0, 1).T, mask[..., None].to(x)
    last = before = x.new_zeros(rows, size)
    for position in positions:
        slots[position].addmm_(before, recur)
        cell.advance(trace, position, last, real[:, position])
        last, before = memory[:, position], state[:, position]
    return trace


def passed_back(
    found: Multipliers, weights: Weights, gradient: Float[Tensor, "R T H"], mask: Bool[Tensor, "R T"], positions: range
) -> tuple[list[int], Float[Tensor, "R T K H"]]:
    """The backward pass: the gradients of the slots that are not held constant."""
    written, shown = (
        {slot: each for slot, each in enumerate(parts) if isinstance(each, Tensor)}
        for parts in (found.written, found.shown)
    )
    chosen = [*written, *shown]
    rows, _, size = gradient.shape
    back = _empty(gradient, len(chosen), size)
    recur, real = weights.states[chosen].flatten(0, 1), mask[..., None].to(gradient)
    from_state = from_memory = gradient.new_zeros(rows, size)
    for position in reversed(positions):
        state = (gradient[:, position] + from_state).mul_(real[:, position])
        through = found.opened[:, position] * state if isinstance(found.opened, Tensor) else state
        memory = torch.addcmul(through, from_memory, real[:, position])
        for number, each in enumerate((*written.values(), *shown.values())):
            torch.mul(each[:, position], memory if number < len(written) else state, out=back[:, position, number])
        from_state = back[:, position].flatten(1) @ recur
        from_memory = found.kept[:, position] * memory
    return chosen, back


def _empty(x: Float[Tensor, "R T S"], *shape: int) -> Tensor:
    """An empty tensor [R, T, *shape] with each step contiguous in memory: the loops over time access one at a time."""
    return x.new_empty(x.shape[1], x.shape[0], *shape).transpose(0, 1)


def _shifted(memory: Float[Tensor, "R T H"], reverse: bool) -> Float[Tensor, "R T H"]:
    """The cell state before each step, in reading order."""
    none = torch.zeros_like(memory[:, :1])
    return torch.cat([memory[:, 1:], none] if reverse else [none, memory[:, :-1]], dim=1)
