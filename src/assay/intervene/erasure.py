"""The output when the attention to some items is erased and the rest renormalised (Serrano and Smith, 2019).

The decoder is linear, so the logits are the weighted mean of those of the items that are kept: nothing here needs the
model. Sums run over what is kept and never take away what is erased, so that no digits are lost where little is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

ENTRIES = 1 << 17
"""Numbers in one temporary array: 1 MiB, with about a dozen alive at once; one long text may take more."""


@dataclass(frozen=True, eq=False)
class Pooling:
    """The inputs of a linear decoder, in float64 with zeros on padding."""

    values: Float[Tensor, "B N C"]  # the logits of each item alone
    weights: Float[Tensor, "B N"]
    mask: Bool[Tensor, "B N"]
    empty: Float[Tensor, "B C"]  # the logits when everything is erased

    @classmethod
    def of(
        cls,
        values: Float[Tensor, "B N C"],
        weights: Float[Tensor, "B N"],
        mask: Bool[Tensor, "B N"],
        empty: Float[Tensor, "B C"],
    ) -> Pooling:
        return cls(
            values.detach().double().where(mask[..., None], 0.0),
            weights.detach().double().where(mask, 0.0),
            mask,
            empty.detach().double(),
        )

    @cached_property
    def logits(self) -> Float[Tensor, "B C"]:
        """The logits without any erasure."""
        return self.under(self.weights)

    @cached_property
    def predicted(self) -> Int[Tensor, " B"]:
        """The decision; of equal logits the first one."""
        return self.logits.argmax(-1)

    def under(self, weights: Float[Tensor, "B N"]) -> Float[Tensor, "B C"]:
        """The logits under other weights, renormalised."""
        return _means((weights[:, None] @ self.values)[:, 0], weights.sum(-1), self.empty)

    @property
    def leads(self) -> Float[Tensor, "B N C"]:
        """The margin of the predicted class over each class, for each item alone."""
        chosen = self.predicted[:, None, None].expand(*self.mask.shape, 1)
        return self.values.gather(2, chosen) - self.values

    @property
    def parts(self) -> Float[Tensor, "B N K"]:
        """Each item's contribution to the sum of logits and, last, to the sum of weights."""
        return torch.cat([self.values * self.weights[..., None], self.weights[..., None]], -1)

    def chunks(self, copies: int = 1) -> Iterator[tuple[slice, Pooling]]:
        """Some rows at a time, as many as keep `copies` of the values within bounds."""
        rows = max(1, ENTRIES // max(1, copies * self.values.shape[1] * self.values.shape[2]))
        for start in range(0, len(self.values), rows):
            chunk = slice(start, start + rows)
            yield chunk, Pooling(self.values[chunk], self.weights[chunk], self.mask[chunk], self.empty[chunk])


@dataclass(frozen=True, eq=False)
class Flips:
    """What is erased when the decision first changes; all items where it never does."""

    flipped: Bool[Tensor, "B R"]
    count: Int[Tensor, "B R"]
    mass: Float[Tensor, "B R"]  # of the weights as they were


@dataclass(frozen=True, eq=False)
class Smallest:
    """A minimum set of items whose erasure changes the decision, and the new class."""

    flipped: Bool[Tensor, " B"]
    count: Int[Tensor, " B"]  # all items where no set changes the decision
    mass: Float[Tensor, " B"]
    erased: Bool[Tensor, "B N"]  # nothing where no set does
    winner: Int[Tensor, " B"]


def ranked(scores: Float[Tensor, "B *R N"], mask: Bool[Tensor, "B N"]) -> Int[Tensor, "B *R N"]:
    """The items by descending score; ties in order of position, padding last."""
    real = mask.reshape(len(mask), *[1] * (scores.ndim - 2), -1)
    return scores.double().masked_fill(~real, -torch.inf).argsort(dim=-1, descending=True, stable=True)


def gradient(pooling: Pooling) -> Float[Tensor, "B N"]:
    """The gradient of the probability of the decision with respect to the weights, each of them free; section 5.2."""
    return torch.cat([_gradient(chunk) for _, chunk in pooling.chunks()])


def leave_one_out(pooling: Pooling) -> Float[Tensor, "B N"]:
    """The drop of the decision's probability when each item alone is erased."""
    return torch.cat([_drops(chunk) for _, chunk in pooling.chunks()])


def single_logits(pooling: Pooling) -> Float[Tensor, "B N C"]:
    """The logits when each item alone is erased."""
    before, after = (_shifted(parts.cumsum(1)) for parts in (pooling.parts, pooling.parts.flip(1)))
    kept = before + after.flip(1)
    erased = _means(kept[..., :-1], kept[..., -1], pooling.empty[:, None])
    return erased.where(pooling.weights[..., None] > 0, pooling.logits[:, None])  # exactly the same, without rounding


def prefix_logits(pooling: Pooling, order: Int[Tensor, "B R N"]) -> Float[Tensor, "B R N C"]:
    """The logits after the first 1, 2, ..., N items of each ranking are erased."""
    rows = torch.arange(len(order), device=order.device)[:, None, None]
    kept = _shifted(pooling.parts[rows, order.flip(-1)].cumsum(2), 2).flip(2)
    return _means(kept[..., :-1], kept[..., -1], pooling.empty[:, None, None])


def flips(pooling: Pooling, order: Int[Tensor, "B R N"]) -> Flips:
    """The prefix of each ranking whose erasure first changes the decision; section 5.1."""
    parts = [_first(chunk, order[rows]) for rows, chunk in pooling.chunks(order.shape[1])]
    return Flips(*(torch.cat(each) for each in zip(*parts, strict=True)))


def smallest(pooling: Pooling) -> Smallest:
    """The minimum set of items whose erasure changes the decision: the optimum of section 5.1's search.

    The predicted class leads a competitor by a sum over the kept items, so the best set of each size erases the
    largest terms; the smallest set over all competitors is the optimum, and to erase everything is the last resort.
    """
    parts = [_smallest(chunk) for _, chunk in pooling.chunks()]
    return Smallest(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _gradient(pooling: Pooling) -> Float[Tensor, "B N"]:
    """p_y Σ_c p_c (v_y − v_c) for the logits v that an item adds to the empty ones."""
    probabilities, chosen = pooling.logits.softmax(-1), pooling.predicted[:, None]
    ahead = pooling.leads - (pooling.empty.gather(1, chosen) - pooling.empty)[:, None]
    gradients = (ahead @ probabilities[..., None])[..., 0] * probabilities.gather(1, chosen)
    return gradients.where(pooling.mask, 0.0)


def _drops(pooling: Pooling) -> Float[Tensor, "B N"]:
    """The summed gains of all other classes, which keep precision where p is near 1."""
    others = torch.ones_like(pooling.empty).scatter(1, pooling.predicted[:, None], 0.0)[..., None]
    gained = single_logits(pooling).softmax(-1) @ others - pooling.logits.softmax(-1)[:, None] @ others
    return gained[..., 0].where(pooling.mask, 0.0)


def _first(pooling: Pooling, order: Int[Tensor, "B R N"]) -> tuple[Tensor, Tensor, Tensor]:
    changed = prefix_logits(pooling, order).argmax(-1) != pooling.predicted[:, None, None]
    flipped = changed.any(-1)
    count = (changed.byte().argmax(-1) + 1).where(flipped, pooling.mask.sum(-1)[:, None])
    weights = pooling.weights[:, None].expand(order.shape).gather(2, order)
    gone = torch.arange(order.shape[-1], device=order.device) < count[..., None]
    return flipped, count, (weights * gone).sum(-1)


def _smallest(pooling: Pooling) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    attended, chosen = pooling.weights > 0, pooling.predicted
    support = attended.sum(-1)
    # items without weight change nothing, so they are erased last: what is kept before them has some weight
    terms = (pooling.leads * pooling.weights[..., None]).masked_fill(~attended[..., None], -torch.inf).transpose(1, 2)
    needed = _needed(terms, support, chosen)
    competitor = needed.argmin(-1, keepdim=True)
    count = needed.gather(1, competitor)[:, 0]
    flipped = (count < support) | (pooling.empty.argmax(-1) != chosen)
    largest = terms.gather(1, competitor[..., None].expand(-1, -1, terms.shape[2]))[:, 0]
    ranks = largest.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    erased = (ranks < count[:, None]) & attended & flipped[:, None]
    left = pooling.weights.masked_fill(erased, 0.0)
    count = count.where(flipped, pooling.mask.sum(-1))
    mass = (pooling.weights - left).sum(-1).where(flipped, pooling.weights.sum(-1))
    return flipped, count, mass, erased, pooling.under(left).argmax(-1)


def _needed(terms: Float[Tensor, "B C N"], support: Int[Tensor, " B"], chosen: Int[Tensor, " B"]) -> Int[Tensor, "B C"]:
    """The number of erasures before each class wins, all items with weight where it does not before."""
    ordered = terms.sort(-1).values
    left = _shifted(ordered.masked_fill(ordered == -torch.inf, 0.0).cumsum(-1), -1).flip(-1)
    earlier = torch.arange(terms.shape[1], device=terms.device) < chosen[:, None]  # these win where logits are equal
    lost = (left < 0) | ((left == 0) & earlier[..., None])
    first = torch.where(lost.any(-1), lost.byte().argmax(-1) + 1, terms.shape[2])
    return first.minimum(support[:, None])


def _shifted(sums: Tensor, dimension: int = 1) -> Tensor:
    """Cumulative sums that exclude the item itself."""
    first, rest = torch.zeros_like(sums.narrow(dimension, 0, 1)), sums.narrow(dimension, 0, sums.shape[dimension] - 1)
    return torch.cat([first, rest], dimension)


def _means(
    sums: Float[Tensor, "*B C"], mass: Float[Tensor, "*B"], empty: Float[Tensor, "*#B C"]
) -> Float[Tensor, "*B C"]:
    """The logits: the mean over the remaining items, or the empty ones where no weight is left."""
    return torch.where(mass[..., None] > 0, sums / mass[..., None], empty)
