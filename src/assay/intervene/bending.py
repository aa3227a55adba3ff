"""Manual edits: set some weights and rescale the others, or apply an edit at some query positions only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.types import Edit, LayerwiseEdit, at_least_float32


@dataclass(frozen=True, eq=False)
class Bend:
    """Sets the weights of some items; all other positions share the rest in proportion.

    An item's weight is that of all its positions, which keep their proportions too. Where what shares it had none,
    it is shared evenly. An item that may not be attended to is left out; where nothing else may be, the given weights
    are divided by their sum.
    """

    owners: Int[Tensor, "B T"]  # the item that each position belongs to, -1 for none
    given: Mapping[int, float]

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        before = at_least_float32(weights.reshape(len(mask), -1, weights.shape[-1]))
        owned = (self._owners(mask)[..., None] == self._items(mask)) & mask[..., None]  # [B, T, G]
        shares = owned.any(1) * before.new_tensor(list(self.given.values()))  # [B, G]
        free = mask & ~owned.any(-1)
        parts = torch.cat([owned, free[..., None]], -1).to(before)  # the last part is all that is not given
        shares = torch.cat([shares, (1 - shares.sum(-1, keepdim=True)).clamp(min=0) * free.any(-1, keepdim=True)], -1)
        shares = shares / _positive(shares.sum(-1, keepdim=True))
        mass, count = before @ parts, parts.sum(1, keepdim=True)
        there = mass > torch.finfo(mass.dtype).tiny ** 0.5
        times = torch.where(there, shares[:, None] / mass.where(there, 1.0), 0.0) @ parts.mT
        evenly = torch.where(there, 0.0, shares[:, None] / count.clamp(min=1)) @ parts.mT
        return (before * times + evenly).to(weights.dtype).reshape(weights.shape)

    def _items(self, mask: Bool[Tensor, "B T"]) -> Int[Tensor, " G"]:
        return torch.tensor(list(self.given), dtype=torch.long, device=mask.device)

    def _owners(self, mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
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

    def __call__(self, weights: Float[Tensor, "B *Q T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B *Q T"]:
        positions = self.positions.to(weights.device)
        together = weights.ndim == 4  # else each attending position is a row of its own
        chosen = positions[:, None, :, None] if together else positions.reshape(-1, *[1] * (weights.ndim - 1))
        return self.edit(weights, mask).where(chosen, weights)


def _positive(total: Tensor) -> Tensor:
    """A divisor: 1 where the total is 0."""
    return total.where(total > 0, 1.0)
