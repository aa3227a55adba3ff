"""The output when the attention to some items is erased and the rest renormalised (Serrano and Smith, 2019).

The decoder is linear, so the logits are the weighted mean of those of the items that are kept: nothing here needs the
model. Sums run over what is kept and never take away what is erased, so that no digits are lost where little is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax, softmax
from torch import Tensor

Values = Float[Tensor, "B N C"]
Weights = Float[Tensor, "B N"]
Mask = Bool[Tensor, "B N"]
Logits = Float[Tensor, "B C"]
PerText = Int[Tensor, " B"]
Order = Int[Tensor, "B R N"]
Items = Bool[Tensor, " N"]
Some = Float[np.ndarray, " M"]
SomeValues = Float[np.ndarray, "M C"]

ENTRIES = 1 << 17
"""Numbers in one temporary array: 1 MiB, with about a dozen alive at once; one long text may take more."""


@dataclass(frozen=True, eq=False)
class Pooling:
    """The inputs of a linear decoder, in float64 with zeros on padding."""

    values: Values  # the logits of each item alone
    weights: Weights
    mask: Mask
    empty: Logits  # the logits when everything is erased

    @classmethod
    def of(cls, values: Values, weights: Weights, mask: Mask, empty: Logits) -> Pooling:
        return cls(
            values.detach().double().where(mask[..., None], 0.0),
            weights.detach().double().where(mask, 0.0),
            mask,
            empty.detach().double(),
        )

    @cached_property
    def logits(self) -> Logits:
        """The logits without any erasure."""
        return self.under(self.weights)

    @cached_property
    def predicted(self) -> PerText:
        """The decision; of equal logits the first one."""
        return self.logits.argmax(-1)

    def under(self, weights: Weights) -> Logits:
        """The logits under other weights, renormalised."""
        return _means((weights[:, None] @ self.values)[:, 0], weights.sum(-1), self.empty)

    @property
    def leads(self) -> Values:
        """The margin of the predicted class over each class, for each item alone."""
        chosen = self.predicted[:, None, None].expand(*self.mask.shape, 1)
        return self.values.gather(2, chosen) - self.values

    @property
    def parts(self) -> Float[Tensor, "B N K"]:
        """Each item's contribution to the sum of logits and, last, to the sum of weights."""
        return torch.cat([self.values * self.weights[..., None], self.weights[..., None]], -1)

    def chunks(self, copies: int = 1) -> list[Pooling]:
        """Some rows at a time, as many as keep `copies` of the values within bounds."""
        rows = max(1, ENTRIES // max(1, copies * self.values.shape[1] * self.values.shape[2]))
        fields = (self.values, self.weights, self.mask, self.empty)
        return [Pooling(*parts) for parts in zip(*(torch.split(each, rows) for each in fields), strict=True)]


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
    count: PerText  # all items where no set changes the decision
    mass: Float[Tensor, " B"]
    erased: Mask  # nothing where no set does
    winner: PerText


def ranked(scores: Float[Tensor, "B *R N"], mask: Mask) -> Int[Tensor, "B *R N"]:
    """The items by descending score; ties in order of position, padding last."""
    real = mask.reshape(len(mask), *[1] * (scores.ndim - 2), -1)
    return scores.double().masked_fill(~real, -torch.inf).argsort(dim=-1, descending=True, stable=True)


def gradient(pooling: Pooling) -> Weights:
    """The gradient of the probability of the decision with respect to the weights, each of them free; section 5.2."""
    return torch.cat([_gradient(chunk) for chunk in pooling.chunks()])


def leave_one_out(pooling: Pooling) -> Weights:
    """The drop of the decision's probability when each item alone is erased."""
    return torch.cat([_drops(chunk) for chunk in pooling.chunks()])


def single_logits(pooling: Pooling) -> Values:
    """The logits when each item alone is erased."""
    before, after = (_shifted(parts.cumsum(1)) for parts in (pooling.parts, pooling.parts.flip(1)))
    kept = before + after.flip(1)
    erased = _means(kept[..., :-1], kept[..., -1], pooling.empty[:, None])
    return erased.where(pooling.weights[..., None] > 0, pooling.logits[:, None])  # exactly the same, without rounding


def prefix_logits(pooling: Pooling, order: Order) -> Float[Tensor, "B R N C"]:
    """The logits after the first 1, 2, ..., N items of each ranking are erased."""
    rows = torch.arange(len(order), device=order.device)[:, None, None]
    kept = _shifted(pooling.parts[rows, order.flip(-1)].cumsum(2), 2).flip(2)
    return _means(kept[..., :-1], kept[..., -1], pooling.empty[:, None, None])


def flips(pooling: Pooling, order: Order) -> Flips:
    """The prefix of each ranking whose erasure first changes the decision; section 5.1."""
    chunks = pooling.chunks(order.shape[1])
    orders = torch.split(order, [len(chunk.values) for chunk in chunks])
    parts = [_first(*each) for each in zip(chunks, orders, strict=True)]
    return Flips(*(torch.cat(each) for each in zip(*parts, strict=True)))


def smallest(pooling: Pooling) -> Smallest:
    """The minimum set of items whose erasure changes the decision: the optimum of section 5.1's search.

    The predicted class leads a competitor by a sum over the kept items, so the best set of each size erases the
    largest terms; the smallest set over all competitors is the optimum, and to erase everything is the last resort.
    """
    parts = [_smallest(chunk) for chunk in pooling.chunks()]
    return Smallest(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _gradient(pooling: Pooling) -> Weights:
    """p_y Σ_c p_c (v_y − v_c) for the logits v that an item adds to the empty ones."""
    probabilities, chosen = pooling.logits.softmax(-1), pooling.predicted[:, None]
    ahead = pooling.leads - (pooling.empty.gather(1, chosen) - pooling.empty)[:, None]
    gradients = (ahead @ probabilities[..., None])[..., 0] * probabilities.gather(1, chosen)
    return gradients.where(pooling.mask, 0.0)


def _drops(pooling: Pooling) -> Weights:
    """The summed gains of all other classes, which keep precision where p is near 1."""
    others = torch.ones_like(pooling.empty).scatter(1, pooling.predicted[:, None], 0.0)[..., None]
    gained = single_logits(pooling).softmax(-1) @ others - pooling.logits.softmax(-1)[:, None] @ others
    return gained[..., 0].where(pooling.mask, 0.0)


def _first(pooling: Pooling, order: Order) -> tuple[Tensor, Tensor, Tensor]:
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


def _needed(terms: Float[Tensor, "B C N"], support: PerText, chosen: PerText) -> Int[Tensor, "B C"]:
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


# Searches for few items whose erasure changes the decision, by querying the model.
#
# They are found by search, so their number is an upper bound: fewer may do. What is found was checked by the model.


MARGIN = 1e-6
"""How far another class must be ahead, so that rounding does not decide."""

Answers = Callable[[Bool[Tensor, "V N"]], Float[Tensor, "V C"]]
"""Takes what is erased in each of V versions of a text; gives their probabilities."""


@dataclass
class FlipSearch:
    """Erases down a ranking until the decision changes, then tries a greedy search, then restores what it can.

    At most about `versions` versions of the text are read. Where each item can be tried alone, how far the decision
    then drops is the ranking; else it is the one that is given.
    """

    answers: Answers
    predicted: int
    versions: int = 500
    read: int = field(default=0, init=False)

    def __call__(self, ranking: Float[Tensor, " N"]) -> tuple[int, ...] | None:
        """The erased items, or None if the decision never changes."""
        if 2 * len(ranking) <= self.versions:
            ranking = -self._lead(torch.eye(len(ranking), dtype=torch.bool))
        order = ranking.argsort(descending=True, stable=True)
        found = self._down(order)
        if found is None:
            return None
        return tuple(self._given_back(self._stepwise(order, found)).nonzero()[:, 0].tolist())

    def _lead(self, erased: Bool[Tensor, "V N"]) -> Float[Tensor, " V"]:
        """The decision's margin over the next class in each version; below 0 it has changed."""
        self.read += len(erased)
        likely = self.answers(erased)
        own = torch.arange(likely.shape[1]) == self.predicted
        return likely[:, self.predicted] - likely.masked_fill(own, -torch.inf).amax(-1) + MARGIN

    def _down(self, order: Int[Tensor, " N"]) -> Items | None:
        """The shortest prefix of the ranking that changes the decision, among those tried."""
        count, tries = len(order), max(2, self.versions // 2)
        sizes = torch.linspace(1, count, min(count, tries)).round().long()
        erased = order.argsort() < sizes[:, None]
        flips = self._lead(erased) < 0
        return erased[int(flips.byte().argmax())] if bool(flips.any()) else None

    def _stepwise(self, order: Int[Tensor, " N"], found: Items) -> Items:
        """Greedy search: erases per step the item with the largest effect, if that takes fewer steps."""
        erased = torch.arange(len(order)) == order[0]
        for _ in range(int(found.sum()) - 2):
            rest = (~erased).nonzero()[:, 0]
            if self.read + len(rest) > self.versions:
                break
            tried = erased | (torch.arange(len(order)) == rest[:, None])
            lead = self._lead(tried)
            erased = tried[int(lead.argmin())]
            if float(lead.min()) < 0:
                return erased
        return found

    def _given_back(self, erased: Items) -> Items:
        """Restores erased items that are not needed."""
        while int(erased.sum()) > 1 and self.read < 2 * self.versions:
            tried = erased & (torch.arange(len(erased)) != erased.nonzero())
            lead = self._lead(tried)
            if float(lead.min()) >= 0:
                break
            erased = tried[int(lead.argmin())]
        return erased


# The attention that maximises a class's probability: a concave problem, solved to a certified gap.
#
# The logits are the mean of those of the items, weighted by attention, so the logarithm of a class's probability is
# concave in the weights: one peak, and at any weights the steepest way up says how far it can still be.


GAP = 1e-7
"""By how much the logarithm of the probability may still rise."""

ROUNDS, ADDED, STEPS, HALVINGS = 100, 4, 8, 30
BARRIERS = 10.0 ** -np.arange(0.0, 11.5, 0.75)


@dataclass(frozen=True)
class Likeliest:
    """The weights, the probability they give, and an upper bound for any weights."""

    weights: Float[np.ndarray, " N"]
    probability: float
    upper: float


def likeliest(values: Float[np.ndarray, "N C"], target: int) -> Likeliest:
    """The optimal attention over items, given the logits of each item alone.

    Of two classes the odds are linear in the weights, so all weight on one item is the optimum. Of more, the problem is
    solved by an interior-point method over a few items, to which those that would raise the probability are added until
    none could raise it further.
    """
    values = values - values.max(-1, keepdims=True)
    alone = log_softmax(values, -1)[:, target]
    best = int(alone.argmax())
    if values.shape[1] == 2:
        return Likeliest(_on([best], np.ones(1), len(values)), *[float(np.exp(alone[best]))] * 2)
    used = np.array([best])
    weights, height, gradient = _measured(values, target, used, np.ones(1))
    for _ in range(ROUNDS):
        order = np.argsort(-gradient, kind="stable")[:ADDED]
        fresh = order[(gradient[order] > GAP) & ~np.isin(order, used)]
        if gradient.max() <= GAP or not len(fresh):
            break
        used = np.concatenate([used, fresh])
        tried = _measured(values, target, used, _peak(values[used], target))
        if tried[1] < height:
            break  # rounding: what was found before stays
        weights, height, gradient = tried
    return Likeliest(weights, float(np.exp(height)), float(np.exp(min(height + max(gradient.max(), 0.0), 0.0))))


def _on(items: list[int] | Int[np.ndarray, " M"], weights: Some, count: int) -> np.ndarray:
    """The weights of some items, embedded among all."""
    whole = np.zeros(count)
    whole[items] = weights
    return whole


def _measured(
    values: Float[np.ndarray, "N C"], target: int, used: Int[np.ndarray, " M"], weights: Some
) -> tuple[Float[np.ndarray, " N"], float, Float[np.ndarray, " N"]]:
    """The weights of all items, the log-probability, and its directional derivative towards each item."""
    whole = _on(used, weights, len(values))
    logits = whole @ values
    rises = values[:, target] - values @ softmax(logits)
    return whole, float(log_softmax(logits)[target]), rises - whole @ rises


def _peak(values: SomeValues, target: int) -> Some:
    """The weights that maximise the log-probability, by Newton's method with a decreasing log barrier."""
    weights = np.full(len(values), 1 / len(values))
    for barrier in BARRIERS:
        for _ in range(STEPS):
            step, gain = _newton(values, target, weights, barrier)
            if gain < 1e-3 * barrier:
                break
            weights = _moved(values, target, weights, step, barrier)
    return np.asarray(weights / weights.sum())


def _newton(values: SomeValues, target: int, weights: Some, barrier: float) -> tuple[Some, float]:
    """The Newton step as a fraction of each weight, with constant sum, and its predicted gain."""
    likely = softmax(weights @ values)
    gradient = weights * (values[:, target] - values @ likely) + barrier
    around = weights[:, None] * (values - values @ likely[:, None])
    bend = (around * likely) @ around.T
    bend += max(barrier, 1e-14 * float(np.trace(bend))) * np.eye(len(weights))  # huge logits would leave nothing of it
    solved = np.linalg.solve(bend, np.stack([gradient, weights], -1))
    step = solved[:, 0] - solved[:, 1] * (weights @ solved[:, 0]) / (weights @ solved[:, 1])
    return step, float(gradient @ step)


def _moved(
    values: SomeValues,
    target: int,
    weights: Some,
    step: Some,
    barrier: float,
) -> Some:
    """The weights after a step, shortened until weights stay positive and the objective rises."""

    def height(tried: Some) -> float:
        return float(log_softmax(tried @ values)[target] + barrier * np.log(tried).sum())

    size, start = min(1.0, 0.95 / max(float(-step.min()), 1e-300)), height(weights)
    for _ in range(HALVINGS):
        tried = weights * (1 + size * step)
        if height(tried) >= start:
            return np.asarray(tried / tried.sum())
        size /= 2
    return weights
