"""The forward pass of assay's own networks under rules: the values are the model's, the derivatives the rules'."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.explainers.relevance_rules import GELU, GRADIENT, RELU, TANH, Function, Multiplier, Rules, straight, times
from assay.models.encoders import (
    Additive,
    Average,
    Block,
    Convolution,
    Dot,
    Encoder,
    Nothing,
    Product,
    Recurrent,
    Transformer,
    positions,
)
from assay.models.network import Classifier, Paired
from assay.models.networks import Hierarchical, Layout
from assay.models.projections import Projection, softmax
from assay.types import Batch, attended

# LSTM and GRU cells: the forward pass of one step, and the local multipliers of all steps.
#
# Given its pre-activations a step works element by element, so that the multipliers of all steps are found at once.


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


# A recurrent layer under rules as an autograd function: forward pass, multipliers of all steps, linear backward pass.


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


# The forward pass of each kind of layer under rules: the values are the model's, the derivatives the rules'.


Mask = Bool[Tensor, "R S"]
States = Float[Tensor, "R S M"]
Alignment = Additive | Dot | Product


@dataclass(frozen=True)
class Reading:
    """Forward passes under rules; factors of 1 multiply biases, positions and query, to collect their relevance.

    The derivative with respect to such a factor is the sum of bias × multiplier: what the biases of that row get.
    """

    rules: Rules
    biases: Float[Tensor, " R"]
    positions: Float[Tensor, " R"]
    query: Float[Tensor, " R"]
    project: Projection = softmax  # of the attention that pools

    def of(self, rows: Int[Tensor, " N"]) -> Reading:
        """The same for parts of these rows, whose relevance is summed per row."""
        return Reading(self.rules, self.biases[rows], self.positions[rows], self.query[rows], self.project)

    def pooled(
        self, alignment: Alignment, states: States, mask: Mask, query: Float[Tensor, "R M"] | None = None
    ) -> Float[Tensor, "R M"]:
        """The attention-weighted mean of hidden states, with the query beside each where there is one."""
        seen = states if query is None else torch.cat([states, query[:, None].expand_as(states)], dim=-1)
        weights = self.weights(self.project, lambda reading: reading.align(alignment, seen), mask)
        return self.total(self.rules.bilinear(weights[:, None], states)).squeeze(1)

    def weights(
        self, project: Projection, scores: Callable[[Reading], Tensor], mask: Bool[Tensor, "R *N S"]
    ) -> Float[Tensor, "R *N S"]:
        """Attention weights; where the rules hold them constant, their scores are detached."""
        reading = self if self.rules.weighs else replace(self, rules=GRADIENT)
        with torch.set_grad_enabled(self.rules.weighs):
            return reading.rules.weights(project, scores(reading), mask)

    def total(self, z: Float[Tensor, "R ..."]) -> Float[Tensor, "R ..."]:
        multiplier = self.rules.total(z.detach())
        return straight(z, z * multiplier) if isinstance(multiplier, Tensor) else z

    def unary(self, function: Function, x: Float[Tensor, "R ..."]) -> Float[Tensor, "R ..."]:
        value = function.value(x.detach())
        return straight(value, x * self.rules.unary(function, x.detach(), value)) if x.requires_grad else value

    def encode(self, encoder: Encoder, x: Float[Tensor, "R S D"], mask: Mask) -> States:
        if isinstance(encoder, Recurrent):
            return self.recurrent(encoder, x, mask)
        if isinstance(encoder, Convolution):
            states = self.convolution(encoder, x * mask[..., None])
        elif isinstance(encoder, Average):
            states = self.unary(RELU, self.linear(encoder.projection, x))
        elif isinstance(encoder, Nothing):
            states = x
        else:
            states = self.transformer(encoder, x, mask)
        return states * mask[..., None]

    def align(self, alignment: Alignment, states: States) -> Float[Tensor, "R S"]:
        if isinstance(alignment, Product):
            state, query = states.chunk(2, dim=-1)
            return self.total((state * query.detach()).sum(-1)) / math.sqrt(state.shape[-1])
        projected = self.linear(alignment.project, states)
        if isinstance(alignment, Dot):
            return alignment.finish(projected)
        return self.linear(alignment.score, self.unary(TANH, projected)).squeeze(-1)

    def linear(self, layer: nn.Linear, x: Float[Tensor, "R *N D"]) -> Float[Tensor, "R *N M"]:
        return self.total(self.affine(layer, x))

    def affine(self, layer: nn.Linear, x: Float[Tensor, "R *N D"]) -> Float[Tensor, "R *N M"]:
        mapped = F.linear(x, layer.weight.detach().to(x))
        return mapped if layer.bias is None else mapped + self.constant(layer.bias, self.biases, x)

    def constant(self, values: Tensor, factor: Float[Tensor, " R"], x: Float[Tensor, "R *N D"]) -> Tensor:
        return values.detach().to(x) * factor.reshape(-1, *[1] * (x.dim() - 1))

    def recurrent(self, encoder: Recurrent, x: Float[Tensor, "R S D"], mask: Mask) -> States:
        ways = ((encoder.ahead, False), (encoder.behind, True))
        read = [
            Recurrence.apply(x, self.biases, mask, network, self.rules, reverse)  # type: ignore[no-untyped-call]
            for network, reverse in ways
        ]
        return torch.cat(read, dim=-1)

    def convolution(self, encoder: Convolution, x: Float[Tensor, "R S D"]) -> States:
        columns, parts = x.transpose(1, 2), []
        for layer in encoder.layers:
            assert isinstance(layer, nn.Conv1d)
            assert layer.bias is not None
            sums = F.conv1d(columns, layer.weight.detach().to(x), padding=layer.kernel_size[0] // 2).transpose(1, 2)
            sums = self.total(sums + self.constant(layer.bias, self.biases, x))
            parts.append(self.unary(RELU, sums))
        return torch.cat(parts, dim=-1)

    def transformer(self, encoder: Transformer, x: Float[Tensor, "R S D"], mask: Mask) -> States:
        indices = positions(x.shape[1], encoder.size).to(x.device)
        states = self.total(self.affine(encoder.project, x) + self.constant(indices, self.positions, x))
        first = torch.arange(mask.shape[1], device=mask.device) == 0
        visible = (mask | (first & ~mask.any(-1, keepdim=True)))[:, None, None]
        for block in encoder.blocks:
            assert isinstance(block, Block)
            states = self.total(states + self.attention(block, self.norm(block.before_attention, states), visible))
            states = self.total(states + self.mixed(block, self.norm(block.before_mixing, states)))
        return self.norm(encoder.norm, states)

    def attention(self, block: Block, x: States, visible: Bool[Tensor, "R 1 1 S"]) -> States:
        rows, tokens, size = x.shape
        split = self.linear(block.project, x).reshape(rows, tokens, 3, block.heads, -1)
        query, key, value = (split[:, :, part].transpose(1, 2) for part in range(3))
        shown = visible.expand(rows, block.heads, tokens, tokens)
        weights = self.weights(block.projection, lambda reading: reading.compared(query, key), shown)
        heads = self.total(self.rules.bilinear(weights, value))
        return self.linear(block.merge, heads.transpose(1, 2).reshape(rows, tokens, size))

    def compared(self, query: Float[Tensor, "R H S K"], key: Float[Tensor, "R H S K"]) -> Float[Tensor, "R H S S"]:
        return self.rules.bilinear(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])

    def mixed(self, block: Block, x: States) -> States:
        widen, _, narrow = block.mix
        assert isinstance(widen, nn.Linear)
        assert isinstance(narrow, nn.Linear)
        return self.linear(narrow, self.unary(GELU, self.linear(widen, x)))

    def norm(self, layer: nn.LayerNorm, x: States) -> States:
        scaled = self.rules.standard(x, layer.eps) * layer.weight.detach().to(x)
        return scaled + self.constant(layer.bias, self.biases, x)


# Relevance propagation through networks of each shape.


Readable = Classifier | Hierarchical | Paired
Logits = Float[Tensor, "R C"]


def read(
    reading: Reading, model: Readable, x: Float[Tensor, "R S D"], encoded: Bool[Tensor, "R S"], batch: Batch
) -> Logits:
    """The logits of embeddings that have their markers already, where the model has any; no class is barred."""
    if isinstance(model, Hierarchical):
        return hierarchical(reading, model, x, batch)
    states = reading.encode(model.encoder, x, encoded)
    if model.architecture.markers:
        states, x = states[:, 1:-1], x[:, 1:-1]  # what stands beyond a text is not attended
    states = model.beside(states, x, batch.mask)
    if isinstance(model, Paired):
        return paired(reading, model, states, batch)
    return reading.linear(model.decoder, reading.pooled(model.alignment, states, batch.mask))


def hierarchical(reading: Reading, model: Hierarchical, x: Float[Tensor, "R T D"], batch: Batch) -> Logits:
    """Words to sentences, each a row with its text's factors, then sentences to logits."""
    layout, real = Layout.of(batch), attended(model, batch)
    words, text = layout.rows(x), real.nonzero(as_tuple=True)[0]
    means = x.new_zeros(len(words), model.width(model.word_encoder))
    for band, longest in layout.bands():  # texts and their baselines have the same lengths, so each is half of a band
        within, mask = reading.of(text[band]), layout.mask[band, :longest]
        encoded = within.encode(model.word_encoder, words[band, :longest], mask)
        states = model.beside(encoded, words[band, :longest], mask)
        means = means.index_put((band,), within.pooled(model.word_alignment, states, mask))
    sentences = means.new_zeros(*real.shape, means.shape[-1]).masked_scatter(real[..., None], means)
    states = reading.encode(model.encoder, sentences, real)
    return reading.linear(model.decoder, reading.pooled(model.alignment, states, real))


def paired(reading: Reading, model: Paired, states: Float[Tensor, "R T M"], batch: Batch) -> Logits:
    """W c + U q + V (c ⊙ q) + b as one linear map of the words: the query multiplies weights or adds a term."""
    with torch.no_grad():
        query = model.query_encoding(batch).to(states)
    term = query * reading.query[:, None]
    context = reading.pooled(model.alignment, states, batch.mask, term)
    there = batch.mask.any(-1, keepdim=True)  # of a text without words nothing is pooled, not even the query
    return reading.linear(model.decoder, torch.cat([context, term * there, context * query], dim=-1))
