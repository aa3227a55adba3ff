"""Attention scoring functions: a linear projection of each hidden state, and a nonlinear rest (`finish`)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Additive(nn.Module):
    """v · tanh(W h + b) (Bahdanau et al., 2015)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)

    def finish(self, projected: Float[Tensor, "*B T A"]) -> Float[Tensor, "*B T"]:
        scores: Tensor = self.score(projected.tanh()).squeeze(-1)
        return scores

    def forward(self, states: Float[Tensor, "*B T M"]) -> Float[Tensor, "*B T"]:
        return self.finish(self.project(states))


class Dot(nn.Module):
    """h · q / √M with a learned query q (Vaswani et al., 2017)."""

    def __init__(self, size: int, hidden: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, 1, bias=False)
        self.scale = 1 / math.sqrt(size)

    def finish(self, projected: Float[Tensor, "*B T 1"]) -> Float[Tensor, "*B T"]:
        return projected.squeeze(-1) * self.scale

    def forward(self, states: Float[Tensor, "*B T M"]) -> Float[Tensor, "*B T"]:
        return self.finish(self.project(states))


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
