"""Attention edits: functions of attention weights and the mask of real tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.types import Edit, LayerwiseEdit


def uniform(weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
    """Equal weights on all real tokens of a row (Wiegreffe and Pinter 2019)."""
    even = mask.to(weights.dtype) / mask.sum(-1, keepdim=True).clamp(min=1)
    return _beside(even, weights).expand_as(weights)


@dataclass(frozen=True)
class Permute:
    """The weights randomly permuted over the real tokens, row by row (Jain and Wallace 2019, algorithm 2)."""

    seed: int = 0
    local: bool = False  # drawn where the weights are: much faster on a GPU, with other numbers than on a CPU

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        real = _beside(mask, weights)
        order = self._keys(weights).masked_fill(~real, 2.0).argsort(-1)
        positions = _beside(mask.logical_not().to(torch.uint8).argsort(dim=-1, stable=True), weights)
        shuffled = torch.zeros_like(weights).scatter(-1, positions.expand_as(order), weights.gather(-1, order))
        return shuffled.where(real, 0.0)

    def _keys(self, weights: Tensor) -> Tensor:
        """One random number per weight, drawn token-major, so that padding does not change them."""
        if self.local:
            drawn = torch.Generator(weights.device).manual_seed(self.seed)
            return torch.rand(weights.shape, device=weights.device, generator=drawn)
        generator = torch.Generator().manual_seed(self.seed)
        keys = torch.rand(weights.shape[-1], *weights.shape[:-1], dtype=torch.float64, generator=generator)
        return keys.movedim(0, -1).contiguous().to(weights.device)


@dataclass(frozen=True, eq=False)
class OneHot:
    """All the weight on one token: the same position in every row, or one position a row."""

    position: Int[Tensor, " B"] | int

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        chosen = torch.as_tensor(self.position, device=mask.device).reshape(-1, 1)
        if len(chosen) > 1:
            chosen = _of_queries(chosen, len(mask) // len(chosen))
        single = (torch.arange(mask.shape[-1], device=mask.device) == chosen) & mask
        if not torch.equal(single.any(-1), mask.any(-1)):
            raise AssayError("OneHot points outside a text; choose a position that is a real token in every row.")
        return _beside(single, weights).expand_as(weights).to(weights.dtype)


@dataclass(frozen=True, eq=False)
class Replace:
    """Fixed weights: one distribution per example, or one per query position."""

    weights: Float[Tensor, "B *P T"]

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return _beside(self.weights.to(weights), weights).expand_as(weights)


@dataclass(frozen=True, eq=False)
class Without:
    """Erases some positions: they get no weight, and the rest is renormalised.

    Where nothing is left, all weights are 0: that position reads nothing.
    """

    columns: Bool[Tensor, "B T"]

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        left = weights.masked_fill(_beside(self.columns.to(weights.device), weights), 0.0)
        total = left.sum(-1, keepdim=True, dtype=torch.float32 if left.dtype.itemsize < 4 else None)
        return (left / total.where(total > 0, 1.0)).to(weights.dtype)


@dataclass(frozen=True, eq=False)
class Within:
    """Restricts an edit to some layers, or some heads of each layer, or both."""

    edit: Edit
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None

    def __post_init__(self) -> None:
        _counted((*(self.layers or ()), *(self.heads or ())))

    @property
    def depth(self) -> int:
        """The number of layers that a model must have."""
        return max([getattr(self.edit, "depth", 0), *(layer + 1 for layer in self.layers or ())])

    def at(self, layer: int) -> Edit | None:
        if self.layers is not None and layer not in self.layers:
            return None
        inner = self.edit.at(layer) if isinstance(self.edit, LayerwiseEdit) else self.edit
        return inner if inner is None or self.heads is None else _InHeads(inner, tuple(self.heads))

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return _alone(self)(weights, mask)


@dataclass(frozen=True)
class Prune:
    """Removes attention heads, given by layer and head from 0: their weights are 0.

    Michel, Levy and Neubig (2019), section 2.2: a head's output is multiplied by 0.
    """

    heads: Sequence[tuple[int, int]]

    def __post_init__(self) -> None:
        _counted([number for pair in self.heads for number in pair])

    @property
    def depth(self) -> int:
        """The number of layers that a model must have."""
        return max((layer + 1 for layer, _ in self.heads), default=0)

    def at(self, layer: int) -> Edit | None:
        heads = tuple(head for at, head in self.heads if at == layer)
        return _InHeads(_silent, heads) if heads else None

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        return _alone(self)(weights, mask)


@dataclass(frozen=True)
class _InHeads:
    """An edit restricted to some heads, axis 1."""

    edit: Edit
    heads: tuple[int, ...]

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        if weights.ndim < 3:
            raise AssayError("The edit is placed in heads, but this attention has none; leave the heads out.")
        count = weights.shape[1]
        if max(self.heads, default=0) >= count:
            raise AssayError(f"The edit names head {max(self.heads)}, but a layer has heads 0 to {count - 1}.")
        chosen = torch.zeros(count, dtype=torch.bool)
        chosen[list(self.heads)] = True
        chosen = chosen.to(weights.device, non_blocking=True).reshape(1, count, *[1] * (weights.ndim - 2))
        return self.edit(weights, mask).where(chosen, weights)


def _silent(weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
    """All weights 0."""
    return torch.zeros_like(weights)


def _alone(edit: Within | Prune) -> Edit:
    """The edit for an attention outside a stack, which has no layers to choose from."""
    if edit.depth > 0:
        raise AssayError("The edit is placed in layers, but this attention is the only one; leave the layers out.")
    return edit.at(0) or (lambda weights, mask: weights)


def _counted(numbers: Sequence[int]) -> None:
    """Raises an error for negative numbers, which would select nothing without a message."""
    if any(number < 0 for number in numbers):
        raise AssayError("Numbers of layers and heads must be at least 0.")


def _beside(rows: Tensor, weights: Tensor) -> Tensor:
    """`rows` with singleton axes inserted after the first, to broadcast with `weights`.

    Where each position of a text is a row of the weights, what is given for texts is given to each of their positions.
    """
    if len(rows) != len(weights) and len(rows) > 0:
        rows = _of_queries(rows, len(weights) // len(rows))
    return rows.reshape(rows.shape[0], *[1] * (weights.ndim - rows.ndim), *rows.shape[1:])


def _of_queries(rows: Tensor, queries: int) -> Tensor:
    """Weights given per text [B, T], per query [B, Q, T] or per head [B, H, Q, T], as one row per query."""
    if rows.ndim == 2:
        return rows.repeat_interleave(queries, 0)
    return rows.expand(*rows.shape[:-2], queries, -1).movedim(-2, 1).flatten(0, 1)
