"""The forward pass of each kind of layer under rules: the values are the model's, the derivatives the rules'."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.explainers.relevance.recurrence import Recurrence
from assay.explainers.relevance.rules import GELU, GRADIENT, RELU, TANH, Function, Rules, straight
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
from assay.models.projections import Projection, softmax

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
