"""Adversarial attention for three classes: a certified lower and upper bound."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

from assay.errors import AssayError
from assay.intervene.adversary.ball import KNOTS, Ball, Hull
from assay.intervene.adversary.candidates import SHORTLIST, Candidates, pick, top
from assay.intervene.adversary.distance import LOG2, shared
from assay.intervene.adversary.problem import ENTRIES, Adversaries, Problem
from assay.intervene.adversary.relaxation import relaxed

LONGEST = 64
"""Texts up to this length are enumerated whole: at most 41,664 triples of tokens."""

SECTORS = 8
ROUNDING = 1e-12


@torch.no_grad()
def bracket(
    values: Float[Tensor, "B T C"],
    weights: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float = 0.01,
    k: int = 5,
) -> Adversaries:
    """The most different attention found within epsilon, k - 1 more diverse ones, and an upper bound.

    For Jain and Wallace (2019), equation 1 with k = 1. JSD is convex, so some optimum has at most three non-zero
    weights. With one or two, it is a token inside the ball or a point where the line between two tokens crosses its
    border: both are found exactly. With three, it is a corner of the ball or lies on a side that bulges outwards,
    because from a side that bulges inwards one can move both ways along the tangent. Points on the outward sides give
    the lower bound. Tangents in place of these sides make a region that holds the ball and has finitely many such
    vertices: the best of them is the upper bound. In a text of more than 64 tokens only 64 are used, and the upper
    bound keeps one measure of the output at a time, as for more classes.
    """
    if values.shape[-1] != 3:
        raise AssayError("bracket() answers for three classes; use furthest(), which chooses by their number.")
    problem = Problem.of(values, weights, mask, epsilon)
    tokens = min(mask.shape[1], LONGEST)
    largest = max(3 * (KNOTS + 1) * math.comb(tokens, 3), 9 * KNOTS * (KNOTS + 2) * math.comb(tokens, 2), 1)
    parts = [_bracket(part, k) for part in problem.split(max(1, ENTRIES // largest))]
    chosen, upper = (torch.cat(column) for column in zip(*parts, strict=True))
    return problem.answer(chosen, "bracket", upper)


def _bracket(problem: Problem, k: int) -> tuple[Float[Tensor, "B K T"], Float[Tensor, " B"]]:
    """The attentions of the lower bound, and the upper bound."""
    short, tokens = _shorten(problem)
    # the ball a hair smaller, its hull a hair larger than asked for: rounding stays on the safe side
    inner = Ball.around(problem.observed, max(problem.epsilon * (1 - 1e-10), 0.1 * ROUNDING))
    outer = Hull(Ball.around(problem.observed, problem.epsilon + ROUNDING))
    upper = _vertices(short, outer, 1).scores[:, 0].clamp(min=0)
    if tokens.shape[1] < problem.mask.shape[1]:
        upper = upper.where(problem.mask.sum(-1) <= LONGEST, relaxed(problem))
    found = _vertices(short, inner, SHORTLIST)
    within = short.tvd(found.dense(tokens.shape[1])) <= problem.epsilon + ROUNDING
    found = Candidates(found.positions, found.shares, found.scores.where(within, -torch.inf))
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
    alone = (LOG2 + shared(torch.ones_like(problem.weights), problem.weights)).where(problem.mask, -torch.inf)
    worth = alone > (found.scores[:, -1:] if found.scores.shape[1] == number else -torch.inf)
    return found.join(_triples(problem, region, int(worth.sum(-1).max()))).best(number)


def _singles(problem: Problem, region: Ball | Hull) -> Candidates:
    """One-hot attentions."""
    positions = torch.arange(problem.mask.shape[1], device=problem.mask.device).expand_as(problem.mask)
    allowed = problem.mask & region.holds(problem.values[:, :, None])[..., 0]
    one = torch.ones_like(problem.weights)
    scores = (LOG2 + shared(one, problem.weights)).where(allowed, -torch.inf)
    return Candidates(_three(positions, positions), _three(one, 1 - one), scores)


def _pairs(problem: Problem, region: Ball | Hull) -> Candidates:
    """Mixtures of two tokens whose output lies on the boundary of the region."""
    first, second = _combinations(problem.mask.shape[1], 2, problem.mask.device)
    start, end = problem.values[:, first], problem.values[:, second]
    share = region.crossings(start, end)  # of the second token, [B, pairs, crossings]
    allowed = (share > 0) & (share < 1) & (problem.mask[:, first] & problem.mask[:, second])[..., None]
    share = share.where(allowed, 0.0)
    allowed &= region.holds(start[:, :, None] + share[..., None] * (end - start)[:, :, None])
    scores = LOG2 + shared(1 - share, problem.weights[:, first, None]) + shared(share, problem.weights[:, second, None])
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
