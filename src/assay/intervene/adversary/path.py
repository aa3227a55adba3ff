"""Line search: the total variation of the output along a straight line of logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

GRID, ZOOMS = 8, 3
FINE = 12
HALVINGS = 28


@dataclass(frozen=True, eq=False)
class Path:
    """Lines of logits, and the observed outputs."""

    start: Float[Tensor, "*B C"]
    change: Float[Tensor, "*B C"]
    observed: Float[Tensor, "*B C"]

    def some(self, chosen: Bool[Tensor, "*B"]) -> Path:
        """The chosen ones, in one row."""
        return Path(self.start[chosen], self.change[chosen], self.observed[chosen])

    def moved(self, lengths: Float[Tensor, "*B N"]) -> Float[Tensor, "*B N"]:
        """The total variation distance from the observed output at these lengths."""
        logits = self.start[..., None, :] + lengths[..., None] * self.change[..., None, :]
        return 0.5 * (logits.softmax(-1) - self.observed[..., None, :]).abs().sum(-1)

    def before(self, high: Float[Tensor, "N 1"], level: Float[Tensor, "N 1"], least: float) -> Float[Tensor, "N 1"]:
        """The largest length up to `high` at which the output has moved by at most the level, approximately.

        It is 0 if the level is exceeded at so small a part of `high` as `least`.
        """
        low = torch.zeros_like(high)
        even = torch.linspace(0, 1, FINE + 1, dtype=high.dtype, device=high.device)
        for positions in (least ** even.flip(0), even[1:]):  # first by orders of magnitude, then evenly
            lengths = torch.cat([low, low + positions * (high - low)], -1)
            first = (self.moved(lengths[:, 1:]) > level).to(torch.uint8).argmax(-1, keepdim=True)
            low, high = lengths.gather(-1, first), lengths.gather(-1, first + 1)
        return low

    def ends(self, interval: Float[Tensor, "N 2"], limit: float) -> Float[Tensor, "N 2"]:
        """The feasible interval of lengths around the one that moves the output least; NaN if there is none.

        A length is returned only if it was tried, so it is allowed whatever the shape of what is allowed.
        """
        inner = self._nearest(interval)
        near = (self.moved(inner) <= limit)[:, 0]
        ends = torch.full_like(interval, torch.nan)
        ends[near] = self.some(near)._outwards(inner[near], interval[near], limit)
        return ends

    def _nearest(self, interval: Float[Tensor, "N 2"]) -> Float[Tensor, "N 1"]:
        """The length in the interval that moves the output least, by refined grids."""
        even = torch.linspace(0, 1, GRID + 1, dtype=interval.dtype, device=interval.device)
        low, high = interval[:, :1], interval[:, 1:]
        length = low
        for _ in range(ZOOMS):
            lengths = low + even * (high - low)
            length = lengths.gather(1, self.moved(lengths).argmin(1, keepdim=True))
            cell = (high - low) / GRID
            low, high = torch.maximum(length - cell, low), torch.minimum(length + cell, high)
        return length

    def _outwards(self, inner: Float[Tensor, "N 1"], outer: Float[Tensor, "N 2"], limit: float) -> Float[Tensor, "N 2"]:
        """The feasible extent from a feasible length to each end of an interval, by bisection."""
        reached, middle = inner.expand_as(outer), outer
        for _ in range(HALVINGS):
            allowed = self.moved(middle) <= limit
            reached, outer = middle.where(allowed, reached), outer.where(allowed, middle)
            middle = 0.5 * (reached + outer)
        return reached
