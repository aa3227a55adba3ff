"""Attention scores and encoders: from embeddings to hidden states, and from hidden states to scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.models.projections import Projection, softmax
from assay.types import Embeddings, Mask, TokenIds, TokenStates


class Alignment(nn.Module):
    """Attention scores: a linear projection of each hidden state, and a nonlinear rest (`finish`)."""

    project: nn.Linear
    finish: Callable[..., Tensor]

    def forward(self, states: Float[Tensor, "*B T M"]) -> Float[Tensor, "*B T"]:
        return self.finish(self.project(states))


class Additive(Alignment):
    """v · tanh(W h + b) (Bahdanau et al., 2015)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)

    def finish(self, projected: Float[Tensor, "*B T A"]) -> Float[Tensor, "*B T"]:
        scores: Tensor = self.score(projected.tanh()).squeeze(-1)
        return scores


class Dot(Alignment):
    """h · q / √M with a learned query q (Vaswani et al., 2017)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, 1, bias=False)
        self.scale = 1 / math.sqrt(size)

    def finish(self, projected: Float[Tensor, "*B T 1"]) -> Float[Tensor, "*B T"]:
        return projected.squeeze(-1) * self.scale


class Product(nn.Module):
    """h · q / √M for a state h and the query q beside it (Jain and Wallace, 2019)."""

    def forward(self, states: Float[Tensor, "*B T P"]) -> Float[Tensor, "*B T"]:
        state, query = states.chunk(2, dim=-1)
        return (state * query).sum(-1) / math.sqrt(state.shape[-1])


ALIGNMENTS: dict[str, Callable[[int, int], Additive | Dot]] = {"additive": Additive, "dot": Dot}


def mixed(
    parts: Float[Tensor, "*B M"], weight: Float[Tensor, "*B #M"], otherwise: Float[Tensor, "*B M"]
) -> Float[Tensor, "*B M"]:
    """Divides parts, which hold a weight as a factor, by that weight; `otherwise` where the weight is 0."""
    there = weight > torch.finfo(weight.dtype).tiny ** 0.5  # a quotient's gradient divides by the square of it
    return torch.where(there, parts / torch.where(there, weight, 1.0), otherwise)


# Encoders: one hidden state per token; padding never influences a state.


class Recurrent(nn.Module):
    """A bidirectional LSTM or GRU with `hidden` units per direction."""

    def __init__(self, cell: type[nn.LSTM] | type[nn.GRU], embedding: int, hidden: int) -> None:
        super().__init__()
        self.ahead = cell(embedding, hidden, batch_first=True)
        self.behind = cell(embedding, hidden, batch_first=True)
        self.size = 2 * hidden

    def forward(self, x: Embeddings, mask: Mask) -> TokenStates:
        # Each direction meets the padding last, so none reaches a state. Packing would do the same, but its backward
        # pass is several times slower on long texts (docs/decisions/0005).
        order = mirrored(mask)
        ahead, _ = self.ahead(x)
        behind, _ = self.behind(reordered(x, order))
        return torch.cat([ahead, reordered(behind, order)], dim=-1) * mask[..., None]


def mirrored(mask: Mask) -> TokenIds:
    """Indices that reverse each text and leave its padding in place."""
    indices = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(-1, keepdim=True) - 1 - indices, indices)


def reordered(rows: Float[Tensor, "B T S"], order: TokenIds) -> Float[Tensor, "B T S"]:
    """The rows of each example in another order, by indices."""
    first = torch.arange(len(order), device=order.device)[:, None] * rows.shape[1]
    chosen = rows.flatten(0, 1).index_select(0, (first + order).flatten())  # several times faster than gather
    return chosen.reshape(*order.shape, rows.shape[-1])


class Convolution(nn.Module):
    """Convolutions of several widths in parallel, with ReLU; 2 × `hidden` filters in total."""

    def __init__(self, embedding: int, hidden: int, widths: tuple[int, ...] = (1, 3, 5, 7)) -> None:
        super().__init__()
        self.widths = widths
        filters = 2 * hidden // len(self.widths)
        self.layers = nn.ModuleList(nn.Conv1d(embedding, filters, w, padding=w // 2) for w in self.widths)
        self.size = filters * len(self.widths)

    def forward(self, x: Embeddings, mask: Mask) -> TokenStates:
        columns = (x * mask[..., None]).transpose(1, 2)
        states = torch.cat([F.relu(layer(columns)) for layer in self.layers], dim=1).transpose(1, 2)
        return states * mask[..., None]


class Average(nn.Module):
    """A linear projection of each embedding with ReLU: no interaction between tokens."""

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.projection = nn.Linear(embedding, 2 * hidden)
        self.size = 2 * hidden

    def forward(self, x: Embeddings, mask: Mask) -> TokenStates:
        return F.relu(self.projection(x)) * mask[..., None]


class Nothing(nn.Module):
    """The identity: embeddings as they are."""

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.size = embedding

    def forward(self, x: Embeddings, mask: Mask) -> TokenStates:
        return x * mask[..., None]


class Block(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self, size: int, heads: int, project: Projection) -> None:
        super().__init__()
        self.heads = heads
        self.projection = project
        self.before_attention, self.before_mixing = nn.LayerNorm(size), nn.LayerNorm(size)
        self.project, self.merge = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.mix = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(
        self, x: TokenStates, visible: Bool[Tensor, "B 1 1 T"], weights: list[Tensor] | None = None
    ) -> TokenStates:
        rows, tokens, size = x.shape
        split = self.project(self.before_attention(x)).reshape(rows, tokens, 3, self.heads, -1)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        if weights is None and self.projection is softmax:
            heads = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        else:
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
            shares = self.projection(scores, visible.expand_as(scores))
            heads = shares @ value
            if weights is not None:
                weights.append(shares)
        x = x + self.merge(heads.transpose(1, 2).reshape(rows, tokens, size))
        mixed: Tensor = x + self.mix(self.before_mixing(x))
        return mixed


class Transformer(nn.Module):
    """A transformer encoder with sinusoidal positions (Vaswani et al., 2017), of width 2 × `hidden`."""

    def __init__(self, embedding: int, hidden: int, inner: Projection = softmax, layers: int = 2) -> None:
        super().__init__()
        self.size = 2 * hidden
        self.project = nn.Linear(embedding, self.size)
        self.blocks = nn.ModuleList(Block(self.size, 4, inner) for _ in range(layers))
        self.norm = nn.LayerNorm(self.size)

    def forward(self, x: Embeddings, mask: Mask, weights: list[Tensor] | None = None) -> TokenStates:
        """`weights`, a list, is filled with the attention [B, H, T, T] of each layer."""
        states = self.project(x) + positions(x.shape[1], self.size).to(x)
        first = torch.arange(mask.shape[1], device=mask.device) == 0
        visible = (mask | (first & ~mask.any(-1, keepdim=True)))[:, None, None]  # an empty row must see something
        for block in self.blocks:
            states = block(states, visible, weights)
        normed: Tensor = self.norm(states)
        return normed * mask[..., None]


def positions(tokens: int, size: int) -> Float[Tensor, "T M"]:
    """Sinusoidal position embeddings."""
    rates = torch.exp(torch.arange(0, size, 2) * (-math.log(10_000.0) / size))
    angles = torch.arange(tokens)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(tokens, size)


Encoder = Recurrent | Convolution | Average | Nothing | Transformer

ENCODERS: dict[str, Callable[[int, int], Encoder]] = {
    "lstm": lambda embedding, hidden: Recurrent(nn.LSTM, embedding, hidden),
    "gru": lambda embedding, hidden: Recurrent(nn.GRU, embedding, hidden),
    "cnn": Convolution,
    "conv": lambda embedding, hidden: Convolution(embedding, hidden, (3, 5)),
    "average": Average,
    "none": Nothing,
    "transformer": Transformer,
}


def encoder(name: str, embedding: int, hidden: int, inner: Projection = softmax) -> Encoder:
    """The encoder of that name; `inner` is the projection of self-attention scores to weights, where there is any."""
    return Transformer(embedding, hidden, inner) if name == "transformer" else ENCODERS[name](embedding, hidden)
