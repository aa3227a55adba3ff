"""Feasible walks and ascents to more different attentions, for any number of classes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from assay.intervene.adversary_problem import ENTRIES, Attention, Attentions, Mask, Problem, chosen_rows, jsd

Lengths = Float[Tensor, "B K 1"]
Length = Float[Tensor, "N 1"]
Interval = Float[Tensor, "N 2"]
Logits = Float[Tensor, "*B C"]
Tried = Float[Tensor, "B K N T"]

# Line search: the total variation of the output along a straight line of logits.


GRID, ZOOMS = 8, 3
FINE = 12
HALVINGS = 28


@dataclass(frozen=True, eq=False)
class Path:
    """Lines of logits, and the observed outputs."""

    start: Logits
    change: Logits
    observed: Logits

    @classmethod
    def along(cls, problem: Problem, attention: Attentions, direction: Attentions) -> Path:
        """The logits under attentions that are moved in a direction."""
        start = attention @ problem.values
        return cls(start, direction @ problem.values, problem.observed[:, None].expand_as(start))

    def some(self, chosen: Bool[Tensor, "*B"]) -> Path:
        """The chosen ones, in one row."""
        return chosen_rows(self, chosen)

    def moved(self, lengths: Float[Tensor, "*B N"]) -> Float[Tensor, "*B N"]:
        """The total variation distance from the observed output at these lengths."""
        logits = self.start[..., None, :] + lengths[..., None] * self.change[..., None, :]
        return 0.5 * (logits.softmax(-1) - self.observed[..., None, :]).abs().sum(-1)

    def shortened(self, length: Lengths, level: Lengths, least: float) -> Lengths:
        """The length, or approximately the largest before the output leaves the level where it does."""
        beyond = (self.moved(length) > level)[..., 0]
        allowed = self.some(beyond).before(length[beyond], level[beyond], least)
        return length.masked_scatter(beyond[..., None], allowed)

    def before(self, high: Length, level: Length, least: float) -> Length:
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

    def ends(self, interval: Interval, limit: float) -> Interval:
        """The feasible interval of lengths around the one that moves the output least; NaN if there is none.

        A length is returned only if it was tried, so it is allowed whatever the shape of what is allowed.
        """
        inner = self._nearest(interval)
        near = (self.moved(inner) <= limit)[:, 0]
        ends = torch.full_like(interval, torch.nan)
        ends[near] = self.some(near)._outwards(inner[near], interval[near], limit)
        return ends

    def _nearest(self, interval: Interval) -> Length:
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

    def _outwards(self, inner: Length, outer: Interval, limit: float) -> Interval:
        """The feasible extent from a feasible length to each end of an interval, by bisection."""
        reached, middle = inner.expand_as(outer), outer
        for _ in range(HALVINGS):
            allowed = self.moved(middle) <= limit
            reached, outer = middle.where(allowed, reached), outer.where(allowed, middle)
            middle = 0.5 * (reached + outer)
        return reached


# Search directions for attention: gradients projected onto constraints.


RIDGE = 1e-13


def jsd_gradient(problem: Problem, attention: Attentions) -> Attentions:
    """The gradient of 2 · JSD from the observed attention; finite where a weight is 0."""
    both = attention + problem.weights[:, None]
    gradient = (2 * attention / both.where(both > 0, 1.0)).clamp(min=torch.finfo(both.dtype).tiny).log()
    return gradient.where(both > 0, math.log(2.0))


def tvd_gradient(problem: Problem, attention: Attentions, kink: float = 0.0) -> Attentions:
    """The gradient of the total variation distance of the outputs.

    Its kinks are rounded: a class that has moved by less than `kink` is on neither side, but between them.
    """
    output = (attention @ problem.values).softmax(-1)
    tiny = torch.finfo(output.dtype).tiny
    pull = 0.5 * output * ((output - problem.observed[:, None]) / max(kink, tiny)).clamp(-1, 1)
    return (pull - output * pull.sum(-1, keepdim=True)) @ problem.values.mT


def free(direction: Attentions, held: Float[Tensor, "B K T N"]) -> Attentions:
    """The projection of a direction onto the null space of linear constraints Σ_t direction_t held_t.

    Only tokens in that sum have a part in it.
    """
    gram = held.mT @ held
    unused = gram.diagonal(dim1=-2, dim2=-1) == 0
    factor = torch.linalg.cholesky_ex(gram + torch.diag_embed(unused + RIDGE)).L
    direction = direction * held[..., 0]
    for _ in range(2):  # the second time takes out what rounding left
        direction = direction - (held @ torch.cholesky_solve(held.mT @ direction[..., None], factor))[..., 0]
    return direction


def scaled(direction: Attentions) -> tuple[Attentions, Lengths]:
    """The direction scaled to a largest entry of 1, and its original size."""
    size = direction.abs().amax(-1, keepdim=True)
    return direction / size.clamp(min=torch.finfo(size.dtype).tiny), size


def until_zero(attention: Attentions, direction: Attentions) -> tuple[Lengths, Int[Tensor, "B K 1"]]:
    """The step length at which a weight becomes 0, and its index; 0 if no step is possible."""
    length, token = (-attention / direction).where(direction < -RIDGE, torch.inf).min(-1, keepdim=True)
    return length.where(length.isfinite(), 0.0), token


# A feasible walk from one attention to sparser and more different ones.


STANDSTILL = 1e-10
NEAR = 1e-6
TINY = 1e-9
"""With so small an epsilon the whole output is held from the start."""


@dataclass(frozen=True, eq=False)
class Walk:
    """K attentions per example, the tokens each may use, and the output constraints that are active.

    Some furthest attention has no more non-zero weights than there are classes: with more, there is a direction that
    changes neither the output nor the sum, JSD is convex along it and so grows in one of its two senses, and a weight
    falls to zero. A walk follows such directions, that of the steepest growth each time. At first only the sum is
    held. When the output has moved by half of what is allowed, the measure that moves it most is held too, and the
    next one at two thirds, three quarters and so on.
    """

    problem: Problem
    attention: Attentions
    usable: Bool[Tensor, "B K T"]
    held: Float[Tensor, "B K T N"]  # each is linear in the attention; the first is its sum
    number: Int[Tensor, "B K 1"]  # of those beside the sum
    moved: Lengths  # how far the output was moved at the start
    live: Int[Tensor, "B 1 1"]  # classes

    @classmethod
    def start(cls, problem: Problem, attention: Attentions) -> Walk:
        """A walk at its start."""
        usable, moved = problem.mask[:, None].expand_as(attention), problem.tvd(attention)[..., None]
        held, number = usable[..., None].to(attention), torch.zeros_like(moved, dtype=torch.long)
        live = problem.alive.sum(-1)[:, None, None]
        if problem.epsilon < TINY:
            measures = problem.values[..., 1:] - problem.values[..., :1]
            held = torch.cat([held, held * scaled(measures.mT)[0].mT[:, None]], -1)
            number = number + live - 1
        return cls(problem, attention, usable, held, number, moved, live)

    def end(self, first: Attentions) -> Attentions:
        """The attention at the end of the walk.

        From the observed attention, where JSD has no gradient, `first` is the direction until a weight falls to zero.
        """
        away = (self.attention - self.problem.weights[:, None]).abs().amax(-1, keepdim=True)
        walk, still = self, away < NEAR
        for _ in range(self.attention.shape[-1] - 1):
            whole = (walk.usable == self.problem.mask[:, None]).all(-1, keepdim=True)
            gradient = first.where(still & whole, jsd_gradient(self.problem, walk.attention))
            direction, size = scaled(free(gradient, walk.held))
            going = (walk.usable.sum(-1, keepdim=True) > walk.number + 1) & (size > STANDSTILL)
            if not bool(going.any()):
                break
            walk = walk._step(direction, going)
        total = walk.attention.sum(-1, keepdim=True)
        return walk.attention / total.where(total > 0, 1.0)

    def _step(self, direction: Attentions, going: Bool[Tensor, "B K 1"]) -> Walk:
        """One step until a weight becomes 0, which removes its token, or until the output reaches its level."""
        length, token = until_zero(self.attention, direction)
        length = length.where(going, 0.0)
        allowed = self._allowed(direction, length)
        whole = going & (allowed == length)
        gone = torch.zeros_like(self.usable).scatter(-1, token, whole)
        attention = (self.attention + allowed * direction).clamp(min=0).where(~gone, 0.0)
        # a token that is gone has no part in what is held; in place, as it is large, and the walk so far is not kept
        position = token[..., None].expand(*token.shape, self.held.shape[-1])
        self.held.scatter_(2, position, self.held.gather(2, position).where(~whole[..., None], 0.0))
        walk = replace(self, attention=attention, usable=self.usable & ~gone)
        return walk._hold(going & ~whole)

    def _allowed(self, direction: Attentions, length: Lengths) -> Lengths:
        """A feasible step length: this one, or approximately the largest before the output leaves its level."""
        path = Path.along(self.problem, self.attention, direction)
        return path.shortened(length, self._level(), 0.01 * self.problem.safe)

    def _level(self) -> Lengths:
        """The output change at which one more constraint becomes active."""
        part = (self.number + 1) / (self.number + 2)
        # once the whole output is held, rounding alone still moves it
        part = part.where(self.number < self.live - 1, 1.0)
        return self.moved + part * (self.problem.safe - self.moved)

    def _hold(self, chosen: Bool[Tensor, "B K 1"]) -> Walk:
        """Adds the linearised output change to the active constraints of the chosen walks."""
        if not bool(chosen.any()):
            return self
        number, held = self.number + chosen, self.held
        if int(number.max()) == held.shape[-1]:
            held = torch.cat([held, torch.zeros_like(held[..., :1])], -1)
        rows = chosen[..., 0]
        kept, gradient = held[rows][:, None], tvd_gradient(self.problem, self.attention)[rows][:, None]
        # what is held already is taken out, so that the measures stay far from each other
        measure, _ = scaled(free(gradient, kept))
        example, walk = rows.nonzero(as_tuple=True)
        held[example, walk, :, number[rows][:, 0]] = measure[:, 0]
        return replace(self, held=held, number=number)


# Exponential tilting of an attention until it gives the observed output.


TILT_STEPS = 6
CLASSES = 16
"""So many of the likeliest classes are looked at."""

TILT_RIDGE = 1e-9


def tilted(problem: Problem, aim: Attentions) -> Attentions:
    """Attentions near the targets, on the same tokens, whose output is within epsilon / 2 of the observed one.

    Among all attentions with the observed logits, the one with the least Kullback-Leibler divergence from the aim is
    in proportion to aim_t exp(λ · z_t). Newton's method finds λ, and what is wrong after a few steps is made up for by
    some of the observed attention.
    """
    likely = problem.observed.topk(min(problem.observed.shape[-1], CLASSES)).indices
    values = problem.odds.gather(-1, likely[:, None].expand(-1, problem.mask.shape[1], -1))
    values = values - problem.weights[:, None] @ values
    values = values / values.abs().amax((1, 2), keepdim=True).clamp(min=torch.finfo(values.dtype).tiny)
    scores = aim.log()
    for _ in range(TILT_STEPS):
        scores = scores - _newton(scores.softmax(-1).nan_to_num(0.0), values) @ values.mT
    return _mixed(problem, scores.softmax(-1).nan_to_num(0.0))


def _newton(attention: Attentions, values: Float[Tensor, "B T C"]) -> Float[Tensor, "B K C"]:
    """A damped Newton step on log Σ aim_t exp(λ · z_t), whose gradient is the mean of z, 0 at the solution λ."""
    mean = attention @ values
    square = (attention[..., None] * values[:, None]).mT @ values[:, None]
    spread = square - mean[..., None] * mean[..., None, :]
    ridge = TILT_RIDGE * torch.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    step = torch.cholesky_solve(mean[..., None], torch.linalg.cholesky_ex(spread + ridge).L)[..., 0]
    # self-concordance: with this damping the function never grows
    return step / (1 + (mean * step).sum(-1, keepdim=True).clamp(min=0).sqrt())


def _mixed(problem: Problem, attention: Attentions) -> Attentions:
    """Each attention mixed with the observed one so that the output moves by epsilon / 2."""
    observed, level = problem.weights[:, None], torch.full_like(attention[..., :1], 0.5 * problem.safe)
    direction = attention - observed
    path = Path.along(problem, observed.expand_as(direction), direction)
    return observed + path.shortened(torch.ones_like(level), level, 0.01 * problem.safe) * direction


# Several walks to sparse attentions per text; in a long text, first over groups of tokens.


SINGLES, GROUPS = 32, 32
"""In a text of more tokens, so many of the least attended ones stand alone in a walk, and the others form groups."""

ROUNDS = 8


def thinned(problem: Problem, walks: int, seed: int = 0) -> Attentions:
    """The ends of several walks with random directions; independent of padding and of the rest of the batch."""
    generator = torch.Generator().manual_seed(seed)
    tokens, classes = problem.values.shape[1:]
    noise = torch.rand(SINGLES + GROUPS, walks, dtype=torch.float64, generator=generator).T.to(problem.values.device)
    size = walks * min(tokens, SINGLES + GROUPS) * max(tokens, classes)
    return torch.cat([_thinned(part, noise) for part in problem.split(max(1, 16 * ENTRIES // max(size, 1)))])


def _thinned(problem: Problem, noise: Float[Tensor, "K N"]) -> Attentions:
    """A walk over all tokens or groups and, while it ends in groups, another one over the tokens in them."""
    groups = Groups.of(problem, problem.weights, problem.mask)
    ends = _walks(groups.problem, noise[:, : groups.mass.shape[1]])
    attention, number = (ends @ groups.member).flatten(0, 1), (ends > 0).sum(-1).flatten()
    for _ in range(ROUNDS):
        rows = ((attention > 0).sum(-1) > number).nonzero()[:, 0]
        if len(rows) == 0:
            break
        groups = Groups.of(chosen_rows(problem, rows // len(noise)), attention[rows], attention[rows] > 0)
        start = groups.mass[:, None]
        ends = Walk.start(groups.problem, start).end(torch.zeros_like(start))
        attention[rows], number[rows] = (ends @ groups.member)[:, 0], (ends > 0).sum(-1)[:, 0]
    return attention.reshape(len(problem.mask), len(noise), -1)


def _walks(problem: Problem, noise: Float[Tensor, "K T"]) -> Attentions:
    """The ends of walks; of every four, three start at random attentions with nearly the observed output.

    One of these leaves out most tokens that are attended more than others, and the fourth walk starts at the observed
    attention in any direction.
    """
    observed, tiny = problem.weights[:, None], torch.finfo(noise.dtype).tiny
    average = 1 / problem.mask.sum(-1).clamp(min=1)[:, None, None]
    kind = torch.arange(len(noise), device=noise.device)[:, None] % 4
    # exponential variables are in proportion to a random attention; tokens that are hardly used get more of it
    aim = (-noise.clamp(min=tiny).log() / (observed + average)).where(problem.mask[:, None], 0.0)
    aim = aim.where((kind != 2) | (observed < 2 * average) | (noise < 0.3), 0.0)
    aim = aim / aim.sum(-1, keepdim=True).clamp(min=tiny)
    start = observed.where(kind == 3, tilted(problem, aim))
    return Walk.start(problem, start).end((noise - 0.5).where(kind == 3, aim - observed))


@dataclass(frozen=True, eq=False)
class Groups:
    """A problem with groups in the place of tokens, the attention to them, and its distribution within groups.

    A mixture of tokens is a token: its logits are their mean, and the JSD of groups is at most that of the tokens.
    """

    problem: Problem
    mass: Float[Tensor, "B G"]
    member: Float[Tensor, "B G T"]

    @classmethod
    def of(cls, problem: Problem, attention: Attention, used: Mask) -> Groups:
        """Groups of the used tokens, one token each if they are few, in the proportions of this attention."""
        rank = problem.weights.where(used, 2.0).argsort(dim=-1, stable=True).argsort(dim=-1)
        group = rank.where(rank < SINGLES, SINGLES + (rank - SINGLES) % GROUPS)
        belongs = (one_hot(group, min(group.shape[-1], SINGLES + GROUPS)) * used[..., None]).mT.to(attention.dtype)
        mass = (belongs @ attention[..., None])[..., 0]
        member = (belongs * attention[:, None]).where(mass[..., None] > 0, belongs)
        member = member / member.sum(-1, keepdim=True).clamp(min=torch.finfo(mass.dtype).tiny)
        weights = (belongs @ problem.weights[..., None])[..., 0]
        real = belongs.any(-1)
        return cls(Problem(member @ problem.values, weights, real, problem.observed, problem.epsilon), mass, member)


# Local improvement of an attention along the boundary of the feasible set.


SLIDE_STEPS = 12
LENGTHS = 4
RETURNS = 3
BORDER = 0.98
"""An output that has moved by this part of epsilon is at the border."""

KINK = 0.2
"""The edges of the border are rounded by this part of epsilon, else an ascent jams in them."""


def slide(problem: Problem, attention: Attentions) -> Attentions:
    """Feasible attentions with at least the JSD of the given ones, on the same tokens or fewer.

    A step goes up the gradient of JSD, at the border along its tangent. Several lengths are tried, brought back within
    epsilon and compared; the next step is longer or shorter accordingly.
    """
    score = jsd(attention, problem.weights[:, None])
    reach = torch.ones_like(score)[..., None]
    parts = 0.5 ** torch.arange(LENGTHS, dtype=reach.dtype, device=reach.device)
    for _ in range(SLIDE_STEPS):
        direction, back = _directions(problem, attention)
        length, _ = until_zero(attention, direction)
        tried = attention[..., None, :] + (length * reach * parts)[..., None] * direction[..., None, :]
        tried = _returned(problem, tried.clamp(min=0), back)
        further, chosen = _scores(problem, tried).max(-1, keepdim=True)
        better = further > score[..., None]
        best = tried.gather(2, chosen[..., None].expand(-1, -1, -1, tried.shape[-1]))[:, :, 0]
        attention, score = best.where(better, attention), further[..., 0].where(better[..., 0], score)
        reach = reach * (4 * parts[chosen]).where(better, 0.5**LENGTHS)
        reach = reach.clamp(max=1)
    return attention


def _directions(problem: Problem, attention: Attentions) -> tuple[Attentions, Attentions]:
    """The JSD gradient tangential to the boundary, and the direction of fastest output change."""
    used = (attention > 0).to(attention)
    away, _ = scaled(tvd_gradient(problem, attention, KINK * problem.safe) * used)
    border = (problem.tvd(attention) > BORDER * problem.safe)[..., None]
    direction, _ = scaled(free(jsd_gradient(problem, attention), torch.stack([used, away * border], -1)))
    return direction, free(away, used[..., None])


def _returned(problem: Problem, tried: Tried, away: Attentions) -> Tried:
    """Projects back to within epsilon by a few Newton steps, if they suffice."""
    shape = tried.shape
    away = away[:, :, None].expand(shape).flatten(1, 2)
    tried = tried.flatten(1, 2)
    for _ in range(RETURNS):
        excess = problem.tvd(tried) - problem.safe
        derivative = (tvd_gradient(problem, tried, KINK * problem.safe) * away).sum(-1)
        step = (excess / derivative).where((excess > 0) & (derivative > 0), 0.0)
        tried = (tried - step[..., None] * away).clamp(min=0)
        tried = tried / tried.sum(-1, keepdim=True).clamp(min=torch.finfo(tried.dtype).tiny)
    return tried.reshape(shape)


def _scores(problem: Problem, tried: Tried) -> Float[Tensor, "B K N"]:
    """The JSD of each attention, minus infinity where infeasible."""
    within = problem.tvd(tried.flatten(1, 2)).reshape(tried.shape[:-1]) <= problem.limit
    return jsd(tried, problem.weights[:, None, None]).where(within, -torch.inf)
