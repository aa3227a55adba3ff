"""Adversarial attention for three classes: a certified lower and upper bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from assay.errors import AssayError
from assay.intervene.adversary_lines import relaxed
from assay.intervene.adversary_problem import (
    ENTRIES,
    LOG2,
    SHORTLIST,
    Adversaries,
    Attentions,
    Bound,
    Candidates,
    Problem,
    mixture_jsd,
    one_hot_jsd,
    one_token,
    pick,
    shared,
    top,
)

PerClass = Float[Tensor, "B 3"]
Knots = Float[Tensor, "B 3 K"]
Ends = Float[Tensor, "B P 3"]
Points = Float[Tensor, "B P N 3"]
Crossings = Float[Tensor, "B P N"]
Levels = Float[Tensor, "B 3 L"]

KNOTS = 4
"""Points on each side that bulges outwards, its two corners among them."""

NEWTON = 40
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Ball:
    """The outputs within epsilon (total variation) of the observed one, for three classes, in logit differences.

    For three classes the total variation distance of y from ŷ is the largest |y_c - ŷ_c|. With the convex function
    φ_c(z) = logsumexp(z_a, z_b) - z_c = log((1 - y_c) / y_c), the ball is {z : least_c ≤ φ_c(z) ≤ most_c for each c}:
    a hexagon with curved sides. The sides φ_c = most_c bulge outwards, the sides φ_c = least_c bulge inwards, and the
    corners are the outputs (ŷ_a - ε, ŷ_b + ε, ŷ_c). Sides that no probability can reach are infinitely far away.
    """

    least: PerClass
    most: PerClass
    knots: Knots  # on the side of class a: the log-odds of class a + 1 against class a + 2

    @classmethod
    def around(cls, observed: PerClass, epsilon: float) -> Ball:
        """The ball of radius epsilon around the observed output."""
        observed = observed.clamp(min=1e-300)
        second, third = observed.roll(-1, -1), observed.roll(-2, -1)
        least = (second + third - epsilon).clamp(min=0).log() - (observed + epsilon).log()
        most = (second + third + epsilon).log() - (observed - epsilon).clamp(min=0).log()
        low, high = second.log() - (third + epsilon).log(), (second + epsilon).log() - third.log()
        return cls(least, most, _spread(low, high))

    def holds(self, logits: Points) -> Bool[Tensor, "B P N"]:
        """Whether logits lie inside."""
        sides, least, most = _sides(logits), self.least[:, None, None], self.most[:, None, None]
        return ((sides >= least - ROUNDING) & (sides <= most + ROUNDING)).all(-1)

    def crossings(self, start: Ends, end: Ends) -> Crossings:
        """Where the segment from start to end crosses a side, as a fraction; outside (0, 1) if it does not."""
        return _crossings(start, end, torch.stack([self.least, self.most], -1))

    def points(self) -> Float[Tensor, "B N 3"]:
        """The logits of the corners and of the other knots."""
        return self.lifted(self.knots, _softplus(self.knots))

    def lifted(self, odds: Float[Tensor, "B 3 N"], height: Float[Tensor, "B 3 N"]) -> Float[Tensor, "B M 3"]:
        """Logits with these log-odds of class a + 1 against a + 2, and most_a - height of a + 2 against a."""
        third = self.most[..., None] - height
        logits = torch.stack([torch.zeros_like(third), odds + third, third], -1)
        return torch.cat([logits[:, a].roll(a, -1) for a in range(3)], 1)


@dataclass(frozen=True, eq=False)
class Hull:
    """A polygon that contains the ball: sides that bulge outwards are replaced by tangents at the knots.

    The excess lies between a side and its tangents, for a point below ŷ_a - ε and beyond a corner of that side would
    have another class above ŷ + ε. So its corners are those of the ball and the points where tangents meet.
    """

    ball: Ball

    def holds(self, logits: Points) -> Bool[Tensor, "B P N"]:
        """Whether logits lie inside."""
        above = (_sides(logits) >= self.ball.least[:, None, None] - ROUNDING).all(-1)
        below = self._tangents(logits) <= self.ball.most[:, None, None, :, None] + ROUNDING
        return above & below.flatten(-2).all(-1)

    def crossings(self, start: Ends, end: Ends) -> Crossings:
        """Where the segment from start to end crosses a side, as a fraction; outside (0, 1) if it does not."""
        first, last = self._tangents(start[:, :, None])[:, :, 0], self._tangents(end[:, :, None])[:, :, 0]
        straight = (self.ball.most[:, None, :, None] - first) / (last - first)
        curved = _crossings(start, end, self.ball.least[..., None])
        return torch.cat([curved, straight.flatten(2)], -1)

    def points(self) -> Float[Tensor, "B N 3"]:
        """The logits of the corners and of the intersections of adjacent tangents."""
        knots = self.ball.knots
        slope, offset = self._slopes()
        rise = slope.diff(dim=-1)
        middle = 0.5 * (knots[..., 1:] + knots[..., :-1])
        meet = (-offset.diff(dim=-1) / rise).where(rise > 1e-5, middle)
        ends = knots[..., [0, -1]]
        height = torch.cat([offset[..., :-1] + slope[..., :-1] * meet, _softplus(ends)], -1)
        return self.ball.lifted(torch.cat([meet, ends], -1), height)

    def _slopes(self) -> tuple[Knots, Knots]:
        """Slope and offset of the tangents to log(1 + exp(x)) at the knots."""
        slope = self.ball.knots.sigmoid()
        return slope, _softplus(self.ball.knots) - slope * self.ball.knots

    def _tangents(self, logits: Points) -> Float[Tensor, "B P N 3 K"]:
        """The tangents to φ_a at the knots; each is nowhere above φ_a."""
        slope, offset = self._slopes()
        second, third = _others(logits)
        return third[..., None] + offset[:, None, None] + slope[:, None, None] * (second - third)[..., None]


def _spread(low: PerClass, high: PerClass) -> Knots:
    """Knots from low to high, denser where log(1 + exp(x)) is more curved: equal steps of ∫ √(second derivative)."""
    first, last = (0.5 * low).exp().atan(), (0.5 * high).exp().atan()
    position = torch.linspace(0, 1, KNOTS, dtype=low.dtype, device=low.device)[1:-1]
    inner = 2 * (first[..., None] + position * (last - first)[..., None]).tan().log()
    return torch.cat([low[..., None], inner, high[..., None]], -1)


def _softplus(x: Tensor) -> Tensor:
    return torch.logaddexp(x, torch.zeros_like(x))


def _others(logits: Tensor) -> tuple[Tensor, Tensor]:
    """For each class a, how far the logits of the classes a + 1 and a + 2 lie above its own."""
    return logits.roll(-1, -1) - logits, logits.roll(-2, -1) - logits


def _sides(logits: Tensor) -> Tensor:
    """φ of each class."""
    return torch.logaddexp(*_others(logits))


def _crossings(start: Tensor, end: Tensor, levels: Levels) -> Crossings:
    """Where φ_c equals level c on the segment from start to end; φ is convex, so once from each end."""
    both = [_descend(start, end, levels), 1 - _descend(end, start, levels)]
    return torch.cat([share.flatten(2) for share in both], -1)


def _descend(start: Tensor, end: Tensor, levels: Levels) -> Float[Tensor, "B P 3 L"]:
    """Where φ_c first falls to level c on the segment from start to end; NaN if it does not."""
    here, there = torch.stack(_others(start)), torch.stack(_others(end))
    (height, slope), (last, rise) = _climb(here, there - here), _climb(there, there - here)
    level = levels[:, None]
    falls = (height[..., None] > level) & (slope < 0)[..., None]
    falls &= (last[..., None] <= level) | (rise > 0)[..., None]
    example, segment, side, _ = falls.nonzero(as_tuple=True)
    start, end = here[:, example, segment, side], there[:, example, segment, side]
    share = levels.new_full(falls.shape, torch.nan)
    share[falls] = _newton(start, end - start, level.expand_as(falls)[falls])
    return share


def _newton(start: Float[Tensor, "2 N"], step: Float[Tensor, "2 N"], level: Float[Tensor, " N"]) -> Float[Tensor, " N"]:
    """The first root of φ = level from start along step; Newton's method never overshoots a convex function."""
    share = torch.zeros_like(level)
    for _ in range(NEWTON):
        height, slope = _climb(start + share * step, step)
        change = (level - height) / slope.where(slope < 0, torch.nan)
        share = share + change
        if not bool((change.abs() > 1e-14).any()):
            break
    return share


def _climb(others: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
    """φ at logit differences, and its derivative along a step."""
    share = (others[0] - others[1]).sigmoid()
    return torch.logaddexp(others[0], others[1]), step[1] + share * (step[0] - step[1])


LONGEST = 64
"""Texts up to this length are enumerated whole: at most 41,664 triples of tokens."""

SECTORS = 8
HULL_ROUNDING = 1e-12


@torch.no_grad()
def bracket(problem: Problem, k: int = 5) -> Adversaries:
    """The most different attention found within epsilon, k - 1 more diverse ones, and an upper bound.

    For Jain and Wallace (2019), equation 1 with k = 1. JSD is convex, so some optimum has at most three non-zero
    weights. With one or two, it is a token inside the ball or a point where the line between two tokens crosses its
    border: both are found exactly. With three, it is a corner of the ball or lies on a side that bulges outwards,
    because from a side that bulges inwards one can move both ways along the tangent. Points on the outward sides give
    the lower bound. Tangents in place of these sides make a region that holds the ball and has finitely many such
    vertices: the best of them is the upper bound. In a text of more than 64 tokens only 64 are used, and the upper
    bound keeps one measure of the output at a time, as for more classes.
    """
    if problem.values.shape[-1] != 3:
        raise AssayError("bracket() answers for three classes; use furthest(), which chooses by their number.")
    tokens = min(problem.mask.shape[1], LONGEST)
    largest = max(3 * (KNOTS + 1) * math.comb(tokens, 3), 9 * KNOTS * (KNOTS + 2) * math.comb(tokens, 2), 1)
    parts = [_bracket(part, k) for part in problem.split(max(1, ENTRIES // largest))]
    chosen, upper = (torch.cat(column) for column in zip(*parts, strict=True))
    return problem.answer(chosen, "bracket", upper)


def _bracket(problem: Problem, k: int) -> tuple[Attentions, Bound]:
    """The attentions of the lower bound, and the upper bound."""
    short, tokens = _shorten(problem)
    # the ball a hair smaller, its hull a hair larger than asked for: rounding stays on the safe side
    inner = Ball.around(problem.observed, max(problem.epsilon * (1 - 1e-10), 0.1 * HULL_ROUNDING))
    outer = Hull(Ball.around(problem.observed, problem.epsilon + HULL_ROUNDING))
    upper = _vertices(short, outer, 1).scores[:, 0].clamp(min=0)
    if tokens.shape[1] < problem.mask.shape[1]:
        upper = upper.where(problem.mask.sum(-1) <= LONGEST, relaxed(problem))
    found = _vertices(short, inner, SHORTLIST)
    within = short.tvd(found.dense(tokens.shape[1])) <= problem.epsilon + HULL_ROUNDING
    found = replace(found, scores=found.scores.where(within, -torch.inf))
    return found.relabel(tokens).diverse(problem.weights, k), upper


def _shorten(problem: Problem) -> tuple[Problem, Int[Tensor, "B S"]]:
    """The problem restricted to 64 tokens, by ascending attention, and their indices.

    In a longer text they are the least attended ones in each direction around the observed logits, so that they can
    still be mixed to give the observed output.
    """
    order = problem.weights.where(problem.mask, 2.0).argsort(dim=-1, stable=True)
    plane = _plane(problem.values)
    away = pick(plane, order) - problem.weights[:, None] @ plane
    turn = torch.atan2(away[..., 0], away[..., 1]) / (2 * math.pi) + 0.5
    sector = (turn * SECTORS).long().clamp(max=SECTORS - 1)
    rank = one_hot(sector, SECTORS).cumsum(1).gather(-1, sector[..., None])[..., 0]
    rank = rank.where(problem.mask.gather(1, order), order.shape[1] + 1)
    tokens = order.gather(1, rank.argsort(dim=-1, stable=True)[:, :LONGEST].sort(-1).values)
    return problem.on(tokens), tokens


def _vertices(problem: Problem, region: Ball | Hull, number: int) -> Candidates:
    """The best attentions on one, two or three tokens whose output is a vertex of the region.

    No triple beats its least attended token alone (convexity), so most of them need not be looked at.
    """
    found = _singles(problem, region).join(_pairs(problem, region)).best(number)
    alone = one_hot_jsd(problem.weights).where(problem.mask, -torch.inf)
    worth = alone > (found.scores[:, -1:] if found.scores.shape[1] == number else -torch.inf)
    return found.join(_triples(problem, region, int(worth.sum(-1).max()))).best(number)


def _singles(problem: Problem, region: Ball | Hull) -> Candidates:
    """One-hot attentions."""
    allowed = problem.mask & region.holds(problem.values[:, :, None])[..., 0]
    return one_token(one_hot_jsd(problem.weights).where(allowed, -torch.inf), 3)


def _pairs(problem: Problem, region: Ball | Hull) -> Candidates:
    """Mixtures of two tokens whose output lies on the boundary of the region."""
    first, second = _combinations(problem.mask.shape[1], 2, problem.mask.device)
    start, end = problem.values[:, first], problem.values[:, second]
    share = region.crossings(start, end)  # of the second token, [B, pairs, crossings]
    allowed = (share > 0) & (share < 1) & (problem.mask[:, first] & problem.mask[:, second])[..., None]
    share = share.where(allowed, 0.0)
    allowed &= region.holds(start[:, :, None] + share[..., None] * (end - start)[:, :, None])
    scores = mixture_jsd(share, problem.weights[:, second, None], problem.weights[:, first, None])
    scores, chosen = top(scores.where(allowed, -torch.inf).flatten(1))
    pair, share = chosen // max(share.shape[2], 1), share.flatten(1).gather(1, chosen)
    return Candidates(_three(first[pair], second[pair]), _three(1 - share, share), scores)


def _triples(problem: Problem, region: Ball | Hull, reach: int) -> Candidates:
    """Mixtures of three tokens, the first among the first `reach`, whose output is a vertex of the region.

    The share of token i is the area of the triangle that the vertex makes with the other two tokens.
    """
    tokens = problem.mask.shape[1]
    triples = _combinations(tokens, 3, problem.mask.device)
    triples = triples[:, : math.comb(tokens, 3) - math.comb(tokens - reach, 3)]
    plane = _plane(problem.values)
    x, y = (plane[:, None] - _plane(region.points())[:, :, None]).unbind(-1)  # [B, points, T]
    area = (x[..., :, None] * y[..., None, :] - y[..., :, None] * x[..., None, :]).flatten(2)
    parts = [area.index_select(2, triples[i - 2] * tokens + triples[i - 1]).flatten(1) for i in range(3)]
    whole = parts[0] + parts[1] + parts[2]  # [B, points * triples]
    allowed = whole.abs() > 1e-14 * plane.square().amax((1, 2))[:, None]
    allowed &= problem.mask[:, triples].all(1).repeat(1, x.shape[1])
    for part in parts:
        part /= whole
        allowed &= part >= 0
    example, spot = allowed.nonzero(as_tuple=True)
    there = problem.weights[example, triples[:, spot % triples.shape[1]]]
    scores = torch.full_like(whole, -torch.inf)
    scores[example, spot] = LOG2 + shared(torch.stack([part[example, spot] for part in parts]), there).sum(0)
    scores, chosen = top(scores)
    shares = torch.stack([part.gather(1, chosen) for part in parts], -1).where(scores.isfinite()[..., None], 0.0)
    return Candidates(triples.T[chosen % max(triples.shape[1], 1)], shares, scores)


@lru_cache(maxsize=16)
def _combinations(tokens: int, number: int, device: torch.device) -> Int[Tensor, "S N"]:
    """All subsets of that size, in order."""
    return torch.combinations(torch.arange(tokens, device=device), number).T


def _plane(logits: Tensor) -> Tensor:
    """The two logit differences that determine the output."""
    return logits[..., :2] - logits[..., 2:]


def _three(first: Tensor, second: Tensor) -> Tensor:
    """Appends a 0 to two entries."""
    return torch.stack([first, second, torch.zeros_like(first)], -1)
