"""Attention edits: functions of attention weights and the mask of real tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.types import Edit, LayerwiseEdit, at_least_float32

Weights = Float[Tensor, "B *Q T"]
Mask = Bool[Tensor, "B T"]


def uniform(weights: Weights, mask: Mask) -> Weights:
    """Equal weights on all real tokens of a row (Wiegreffe and Pinter 2019)."""
    even = mask.to(weights.dtype) / mask.sum(-1, keepdim=True).clamp(min=1)
    return _beside(even, weights).expand_as(weights)


@dataclass(frozen=True)
class Permute:
    """The weights randomly permuted over the real tokens, row by row (Jain and Wallace 2019, algorithm 2)."""

    seed: int = 0
    local: bool = False  # drawn where the weights are: much faster on a GPU, with other numbers than on a CPU

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
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

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
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

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        return _beside(self.weights.to(weights), weights).expand_as(weights)


@dataclass(frozen=True, eq=False)
class Without:
    """Erases some positions: they get no weight, and the rest is renormalised.

    Where nothing is left, all weights are 0: that position reads nothing.
    """

    columns: Mask

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        left = weights.masked_fill(_beside(self.columns.to(weights.device), weights), 0.0)
        total = left.sum(-1, keepdim=True, dtype=torch.float32 if left.dtype.itemsize < 4 else None)
        return (left / total.where(total > 0, 1.0)).to(weights.dtype)


class Layered(ABC):
    """An edit that differs from layer to layer; an attention outside a stack has one, if no layer is named."""

    @property
    def depth(self) -> int:
        """The number of layers that a model must have."""
        return 0

    @abstractmethod
    def at(self, layer: int) -> Edit | None:
        """The edit of that layer, counted from 0 at the bottom, or None to leave it unchanged."""

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        if self.depth > 0:
            raise AssayError("The edit is placed in layers, but this attention is the only one; leave the layers out.")
        edit = self.at(0)
        return weights if edit is None else edit(weights, mask)


@dataclass(frozen=True, eq=False)
class Within(Layered):
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


@dataclass(frozen=True)
class Prune(Layered):
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


@dataclass(frozen=True)
class _InHeads:
    """An edit restricted to some heads, axis 1."""

    edit: Edit
    heads: tuple[int, ...]

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        if weights.ndim < 3:
            raise AssayError("The edit is placed in heads, but this attention has none; leave the heads out.")
        count = weights.shape[1]
        if max(self.heads, default=0) >= count:
            raise AssayError(f"The edit names head {max(self.heads)}, but a layer has heads 0 to {count - 1}.")
        chosen = torch.zeros(count, dtype=torch.bool)
        chosen[list(self.heads)] = True
        chosen = chosen.to(weights.device, non_blocking=True).reshape(1, count, *[1] * (weights.ndim - 2))
        return self.edit(weights, mask).where(chosen, weights)


def _silent(weights: Weights, mask: Mask) -> Weights:
    """All weights 0."""
    return torch.zeros_like(weights)


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


# Manual edits: set some weights and rescale the others, or apply an edit at some query positions only.


@dataclass(frozen=True, eq=False)
class Bend:
    """Sets the weights of some items; all other positions share the rest in proportion.

    An item's weight is that of all its positions, which keep their proportions too. Where what shares it had none,
    it is shared evenly. An item that may not be attended to is left out; where nothing else may be, the given weights
    are divided by their sum.
    """

    owners: Int[Tensor, "B T"]  # the item that each position belongs to, -1 for none
    given: Mapping[int, float]

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        before = at_least_float32(weights.reshape(len(mask), -1, weights.shape[-1]))
        owned = (
            self._owners(mask)[..., None] == torch.tensor(list(self.given), dtype=torch.long, device=mask.device)
        ) & mask[..., None]  # [B, T, G]
        shares = owned.any(1) * before.new_tensor(list(self.given.values()))  # [B, G]
        free = mask & ~owned.any(-1)
        parts = torch.cat([owned, free[..., None]], -1).to(before)  # the last part is all that is not given
        shares = torch.cat([shares, (1 - shares.sum(-1, keepdim=True)).clamp(min=0) * free.any(-1, keepdim=True)], -1)
        total = shares.sum(-1, keepdim=True)
        shares = shares / total.where(total > 0, 1.0)
        mass, count = before @ parts, parts.sum(1, keepdim=True)
        there = mass > torch.finfo(mass.dtype).tiny ** 0.5
        times = torch.where(there, shares[:, None] / mass.where(there, 1.0), 0.0) @ parts.mT
        evenly = torch.where(there, 0.0, shares[:, None] / count.clamp(min=1)) @ parts.mT
        return (before * times + evenly).to(weights.dtype).reshape(weights.shape)

    def _owners(self, mask: Mask) -> Int[Tensor, "B T"]:
        """The owners of each row of the mask: a text, or one query position of it."""
        return self.owners.to(mask.device).repeat_interleave(len(mask) // max(1, len(self.owners)), 0)


@dataclass(frozen=True, eq=False)
class Attending:
    """Restricts an edit to some query positions of a stack."""

    edit: Edit
    positions: Bool[Tensor, "B S"]

    @property
    def depth(self) -> int:
        """The number of layers that a model must have."""
        return int(getattr(self.edit, "depth", 0))

    def at(self, layer: int) -> Edit | None:
        if not isinstance(self.edit, LayerwiseEdit):
            return self
        inner = self.edit.at(layer)
        return None if inner is None else Attending(inner, self.positions)

    def __call__(self, weights: Weights, mask: Mask) -> Weights:
        positions = self.positions.to(weights.device)
        together = weights.ndim == 4  # else each attending position is a row of its own
        chosen = positions[:, None, :, None] if together else positions.reshape(-1, *[1] * (weights.ndim - 1))
        return self.edit(weights, mask).where(chosen, weights)


# An intervention on the attention of one text, as plain values from a user interface.


ACTS = {
    "observed": "the attention as it is",
    "set": "some weights as given; the others share the rest as before",
    "uniform": "the same weight on everything",
    "permute": "the same weights in another order",
    "erase": "no weight on some items; what is left adds up to 1 again",
    "furthest": "the attention that is furthest away while the answer stays within epsilon",
    "flip": "the fewest items without which the decision is another",
    "likeliest": "the attention under which one class is as likely as attention can make it",
}

EDIT = "edit"
"""The kind of an act that is a function of weights and mask."""


@dataclass(frozen=True)
class Act:
    """One intervention; items are numbered from 0: words, or sentences where these are attended to.

    In a stack of self-attention it is done in one layer or in all, in one head or in all, and for one attending word or
    for all.
    """

    kind: str = "observed"
    weights: Mapping[int, float] = field(default_factory=dict)  # of "set"
    items: tuple[int, ...] = ()  # of "erase"
    target: str | None = None  # of "likeliest": a class
    seed: int = 0  # of "permute"
    epsilon: float = 0.01  # of "furthest"
    layer: int | None = None
    head: int | None = None
    place: int | None = None  # the word that attends
    edit: Edit | None = field(default=None, compare=False)  # of "edit", which a person gives as an object

    def __post_init__(self) -> None:
        if self.kind not in ACTS and (self.kind != EDIT or self.edit is None):
            raise unknown("act", self.kind, ACTS)
        if any(not 0 <= weight <= 1 for weight in self.weights.values()) or sum(self.weights.values()) > 1 + 1e-9:
            raise AssayError("Attention weights must be between 0 and 1, and sum to at most 1.")
        if not 0 <= self.epsilon < 1:
            raise AssayError(f"epsilon, a change of probability, must be from 0 to below 1, got {self.epsilon}.")
        if any(number is not None and number < 0 for number in (self.layer, self.head, self.place, self.seed)):
            raise AssayError("Layers, heads, words and seeds must be at least 0.")
