"""Edits: each takes attention weights and the mask of real tokens, and returns the weights to use instead."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError


def uniform(weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
    """The same weight on every real token of a row (Wiegreffe and Pinter 2019, section 3.2)."""
    even = mask.to(weights.dtype) / mask.sum(-1, keepdim=True).clamp(min=1)
    return _beside(even, weights).expand_as(weights)


@dataclass(frozen=True)
class Permute:
    """The same weights in random order over the real tokens, row by row (Jain and Wallace 2019, algorithm 2)."""

    seed: int = 0

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        real = _beside(mask, weights)
        order = self._keys(weights).masked_fill(~real, 2.0).argsort(-1)
        places = _beside(mask.logical_not().to(torch.uint8).argsort(dim=-1, stable=True), weights)
        shuffled = torch.zeros_like(weights).scatter(-1, places.expand_as(order), weights.gather(-1, order))
        return shuffled.where(real, 0.0)

    def _keys(self, weights: Tensor) -> Tensor:
        """One random number a weight; tokens come first, so that wider padding draws the same ones."""
        generator = torch.Generator().manual_seed(self.seed)
        keys = torch.rand(weights.shape[-1], *weights.shape[:-1], dtype=torch.float64, generator=generator)
        return keys.movedim(0, -1).contiguous().to(weights.device)


@dataclass(frozen=True, eq=False)
class OneHot:
    """All the weight on one token: the same position in every row, or one position a row."""

    position: Int[Tensor, " B"] | int

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        chosen = torch.as_tensor(self.position, device=mask.device).reshape(-1, 1)
        single = (torch.arange(mask.shape[-1], device=mask.device) == chosen) & mask
        if not torch.equal(single.any(-1), mask.any(-1)):
            raise AssayError("OneHot points outside a text; choose a position that is a real token in every row.")
        return _beside(single, weights).expand_as(weights).to(weights.dtype)


@dataclass(frozen=True, eq=False)
class Replace:
    """Other weights, given beforehand: one distribution an example, or one for each of its queries."""

    weights: Float[Tensor, "B *P T"]

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return _beside(self.weights.to(weights), weights).expand_as(weights)


def _beside(rows: Tensor, weights: Tensor) -> Tensor:
    """`rows` with as many axes as `weights`; the missing ones stand after the first."""
    return rows.reshape(rows.shape[0], *[1] * (weights.ndim - rows.ndim), *rows.shape[1:])
