"""A walk over a network's operations, each computed by the rule of its name, and the one stepper of LSTM and GRU.

Relevance propagation, contextual decomposition, per-example gradients and second derivatives are tables of rules for
such a walk. Whatever reads a recurrence step by step, with its gates in sight, has its steps from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import get_ident
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from assay.errors import AssayError
from assay.models.projections import Projection

States = Float[Tensor, "*B H"]
Slots = tuple[Tensor, ...]
Sequences = Float[Tensor, "R T H"]
Rows = Float[Tensor, "R H"]
Gates = Float[Tensor, "*B G"]
Weight = Float[Tensor, "G ..."]
BySlot = Float[Tensor, "4 H ..."]

# The walk

ACTIVATIONS = frozenset(
    ("elu", "gelu", "hardswish", "leaky_relu", "mish", "relu", "relu6", "selu", "silu", "softsign", "tanh")
)
"""Functions of one number that are 0 at 0, so that they can pass on what they get."""

LIBRARY = "transformers.activations"  # some of its activations are made of several functions


class Walk(TorchFunctionMode):
    """Context manager: computes each torch function by the rule of its name, and those without a rule as they are.

    A rule is called with the walk, the function, and the function's arguments; what it calls is not walked over.
    """

    operations: ClassVar[Mapping[str, Callable[..., Any]]] = {}

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        rule = self.operations.get(getattr(function, "__name__", ""))
        named = kwargs or {}
        return function(*args, **named) if rule is None else rule(self, function, *args, **named)

    def activation(self, module: Callable[..., Any], given: tuple[Any, ...], output: Any) -> Any:
        """The rule of an activation module that is 0 at 0; its output otherwise."""
        return output

    @contextmanager
    def over(self, network: nn.Module) -> Iterator[None]:
        """Context manager: walks over what this network computes; activation modules of transformers are one step."""
        thread = get_ident()

        def once(module: nn.Module, given: tuple[Any, ...], output: Any) -> Any:
            if get_ident() != thread:  # another one may run the same network
                return output
            with torch._C.DisableTorchFunction():
                return self.activation(module.forward, given, output)

        whole = [each for each in network.modules() if type(each).__module__ == LIBRARY and _starts_at_zero(each)]
        hooks = [each.register_forward_hook(once) for each in whole]
        try:
            with self:
                yield
        finally:
            for hook in hooks:
                hook.remove()


@torch.no_grad()
def _starts_at_zero(module: nn.Module) -> bool:
    zero = next(module.parameters(), torch.zeros(1)).new_zeros(1)
    return float(module.forward(zero)) == 0


# Rules of derivatives

Multiplier = Tensor | float
"""The local multiplier in a backward pass; a number is 1 (unchanged) or 0 (nothing passes)."""


@dataclass(frozen=True)
class Function:
    """A scalar function with its derivative."""

    value: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    smooth: bool = True
    of_value: Callable[[Tensor], Tensor] | None = None  # the derivative from the value, where that is simpler


TANH = Function(torch.tanh, lambda x: 1 - x.tanh().square(), of_value=lambda y: 1 - y.square())
SIGMOID = Function(torch.sigmoid, lambda x: x.sigmoid() * (1 - x.sigmoid()))
RELU = Function(F.relu, lambda x: (x > 0).to(x), smooth=False)
GELU = Function(F.gelu, lambda x: torch.special.ndtr(x) + x * torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi))


@dataclass(frozen=True)
class Rules:
    """What stands for each derivative: multipliers of elementwise operations, and operations with their own."""

    total: Callable[[Tensor], Multiplier]  # of a sum's terms, given the sum
    unary: Callable[[Function, Tensor, Tensor], Tensor]  # of a function's argument, given argument and value
    gate: Callable[[Tensor, Tensor], Multiplier]  # the same for the sigmoid that opens a gate
    product: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]  # of two factors
    bilinear: Callable[[Tensor, Tensor], Tensor]  # the matrix product of two things that depend on the input
    weights: Callable[[Projection, Tensor, Tensor], Tensor]  # attention weights of scores under a mask
    standard: Callable[[Tensor, float], Tensor]  # a layer norm before its weights
    weighs: bool = True  # whether attention weights are explained, or else held


def times(*factors: Multiplier) -> Multiplier:
    """The product of the factors that are not 1."""
    if any(isinstance(factor, float) and factor == 0 for factor in factors):
        return 0.0
    tensors = [factor for factor in factors if isinstance(factor, Tensor)]
    return math.prod(tensors[1:], start=tensors[0]) if tensors else 1.0


GRADIENT = Rules(
    total=lambda z: 1.0,
    unary=lambda function, x, value: function.of_value(value) if function.of_value else function.derivative(x),
    gate=lambda x, value: value * (1 - value),
    product=lambda left, right: (right, left),
    bilinear=torch.matmul,
    weights=lambda project, scores, mask: project(scores, mask),
    standard=lambda x, floor: F.layer_norm(x, x.shape[-1:], eps=floor),
)
"""Nothing changed."""


# LSTM and GRU


class Step(NamedTuple):
    """One step: the activations of the four slots, the cell state (of a GRU: the state), its activation, the state."""

    active: Slots
    memory: States
    shown: States
    state: States


@dataclass(frozen=True)
class Trace:
    """All steps of a layer: slots, their activations, the cell state before and after, its activation, the state."""

    slots: list[Sequences]
    active: list[Sequences]
    before: Sequences
    memory: Sequences
    shown: Sequences
    state: Sequences


@dataclass(frozen=True)
class Multipliers:
    """Local multipliers: of the previous cell state in the next, of the cell state in h, and of each slot in both."""

    retained: Tensor
    opened: Multiplier
    written: tuple[Multiplier, ...]
    shown: tuple[Multiplier, ...]


class Lstm:
    """LSTM: c = f c' + i tanh(g), h = o tanh(c), with the slots i, f, g, o."""

    def slots(self, given: Gates, past: Float[Tensor, "*C G"]) -> Slots:
        """The arguments of the activations, from what the input gives and what the state before gives."""
        return (given + past).chunk(4, dim=-1)

    def step(self, slots: Slots, memory: States) -> Step:
        keep, forget, new, out = slots[0].sigmoid(), slots[1].sigmoid(), slots[2].tanh(), slots[3].sigmoid()
        memory = torch.addcmul(forget * memory, keep, new)
        shown = memory.tanh()
        return Step((keep, forget, new, out), memory, shown, out * shown)

    def by_slot(self, weight: Weight, of_state: bool) -> BySlot:
        """The rows of a weight or bias, slot by slot."""
        return weight.reshape(4, -1, *weight.shape[1:])

    def multipliers(self, rules: Rules, trace: Trace) -> Multipliers:
        slots, (keep, forget, new, out) = trace.slots, trace.active
        total = rules.total(trace.memory)
        by_forget, by_before = rules.product(forget, trace.before)
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
    """GRU: h = z h' + (1 − z) tanh(n + r v), with the slots r, z, n, v; v is linear in h' and sees no input.

    For relevance propagation r, z and 1 − z are gates as those of an LSTM: h' and the new candidate get everything.
    """

    def slots(self, given: Gates, past: Float[Tensor, "*C G"]) -> Slots:
        reset, update, new = given.chunk(3, dim=-1)
        of_reset, of_update, linear = past.chunk(3, dim=-1)
        return reset + of_reset, update + of_update, new, linear

    def step(self, slots: Slots, memory: States) -> Step:
        reset, update = slots[0].sigmoid(), slots[1].sigmoid()
        argument = torch.addcmul(slots[2], reset, slots[3])
        new = argument.tanh()
        state = torch.lerp(new, memory, update)
        return Step((reset, update, new, argument), state, state, state)

    def by_slot(self, weight: Weight, of_state: bool) -> BySlot:
        apart = weight.reshape(3, -1, *weight.shape[1:])
        nothing = torch.zeros_like(apart[:1])
        return torch.cat([apart[:2], nothing, apart[2:]] if of_state else [apart, nothing])

    def multipliers(self, rules: Rules, trace: Trace) -> Multipliers:
        slots, (reset, update, new, argument) = trace.slots, trace.active
        total = rules.total(trace.memory)
        by_update, by_before = rules.product(update, trace.before)
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


def steps(
    cell: Cell,
    given: Iterable[Float[Tensor, "R G"]],
    recur: Callable[[States], Float[Tensor, "R G"]],
    state: Rows,
    memory: Rows,
) -> Iterator[Step]:
    """Each step, from what the inputs give and what states give by `recur`; differentiable."""
    for each in given:
        step = cell.step(cell.slots(each, recur(state)), memory)
        state, memory = step.state, step.memory
        yield step


@dataclass(frozen=True)
class Layer:
    """An LSTM or GRU of one layer and direction without gradients: W_ih, W_hh, b_ih, b_hh as torch has them."""

    cell: Cell
    weights: tuple[Tensor, Tensor, Tensor, Tensor]

    @classmethod
    def of(cls, kind: str, weights: Sequence[Tensor], like: Tensor) -> Layer:
        """The layer of torch's "lstm" or "gru", in the precision of a tensor."""
        inputs, states, own, other = (each.detach().to(like) for each in weights)
        return cls(CELLS[kind], (inputs, states, own, other))

    @classmethod
    def among(cls, network: nn.LSTM | nn.GRU, like: Tensor) -> Layer:
        return cls.of(type(network).__name__.lower(), network.all_weights[0], like)

    @cached_property
    def inputs(self) -> Float[Tensor, "4 H D"]:
        return self.cell.by_slot(self.weights[0], False)

    @cached_property
    def states(self) -> Float[Tensor, "4 H H"]:
        return self.cell.by_slot(self.weights[1], True)

    @cached_property
    def bias(self) -> Float[Tensor, "4 H"]:
        return self.cell.by_slot(self.weights[2], False) + self.cell.by_slot(self.weights[3], True)

    def trace(self, x: Float[Tensor, "R T D"]) -> Trace:
        """All steps over some sequences, from a state of zeros."""
        inputs, states, own, other = self.weights
        one_sum = isinstance(self.cell, Lstm)  # its slots are sums, made in place
        given = F.linear(x.transpose(0, 1).contiguous(), inputs, own + other if one_sum else own)
        state = memory = start = x.new_zeros(len(x), states.shape[1])
        columns = states.T.contiguous()
        slots: list[Slots] = []
        read: list[Step] = []
        for each in given:
            past = each.addmm_(state, columns) if one_sum else torch.addmm(other, state, columns)
            slots.append(past.chunk(4, dim=-1) if one_sum else self.cell.slots(each, past))
            read.append(self.cell.step(slots[-1], memory))
            state, memory = read[-1].state, read[-1].memory
        arguments = [each.transpose(0, 1) for each in given.chunk(4, dim=-1)]
        if not one_sum:
            arguments = [_over_time([each[slot] for each in slots]) for slot in range(4)]
        active = [_over_time([step.active[slot] for step in read]) for slot in range(4)]
        memories = _over_time([start, *(step.memory for step in read)])
        shown = hidden = memories[:, 1:]
        if one_sum:
            shown, hidden = _over_time([step.shown for step in read]), _over_time([step.state for step in read])
        return Trace(arguments, active, memories[:, :-1], memories[:, 1:], shown, hidden)


CELLS: dict[str, Cell] = {"lstm": Lstm(), "gru": Gru()}


def _over_time(each: Sequence[Rows]) -> Sequences:
    """Steps along the second axis; in memory each step is contiguous, as loops over time need it."""
    return torch.stack(list(each)).transpose(0, 1)


# Operations without fused kernels


class UnfusedOps(Walk):
    """Context manager: computes LSTMs, GRUs and scaled dot-product attention by differentiable primitives.

    Fused kernels are faster, but some lack second derivatives, forward mode or vmap on one device or another.
    """

    def recurrence(
        self,
        function: Any,
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
        given = self.linear(F.linear, rows, weights[0], weights[2])
        states, last = self.read(function, given, before, lambda state: F.linear(state, weights[1], weights[3]))
        return (states if batch_first else states.transpose(0, 1), *last)

    def read(
        self, function: Any, given: Float[Tensor, "B T G"], before: Any, recur: Callable[[Tensor], Tensor]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Hidden states, and the last hidden state with the last cell state where there is one."""
        state, memory = (each.squeeze(0) for each in (before if function is torch.lstm else (before, before)))
        read = list(steps(CELLS[function.__name__], given.unbind(1), recur, state, memory))
        last = (read[-1].state, read[-1].memory)[: 2 if function is torch.lstm else 1]
        return torch.stack([each.state for each in read], dim=1), tuple(each[None] for each in last)

    def linear(self, function: Any, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """A linear map; subclasses record it here."""
        return F.linear(x, weight, bias)

    def attention(
        self,
        function: Any,
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

    def embedding(self, function: Any, ids: Tensor, weight: Tensor, *options: Any, **named: Any) -> Tensor:
        """Of no words, vmap cannot go back through it."""
        if not ids.numel():
            return weight.new_zeros(*ids.shape, weight.shape[1])
        rows: Tensor = function(ids, weight, *options, **named)
        return rows

    operations: ClassVar[Mapping[str, Callable[..., Any]]] = {
        "lstm": recurrence,
        "gru": recurrence,
        "scaled_dot_product_attention": attention,
        "embedding": embedding,
    }
