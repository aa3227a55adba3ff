"""The furthest attention for two classes, in closed form."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.intervene.adversary.candidates import Candidates, top
from assay.intervene.adversary.distance import LOG2, shared
from assay.intervene.adversary.problem import ENTRIES, Adversaries, Problem

ROUNDING = 1e-13
ROWS = 32
"""Tokens that are paired with all later ones before the walk looks whether it may end."""


@torch.no_grad()
def exact(
    values: Float[Tensor, "B T C"],
    weights: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float = 0.01,
    k: int = 5,
) -> Adversaries:
    """The attention furthest from `weights` whose output moves by at most epsilon, and k - 1 more that differ.

    The exact optimum of Jain and Wallace (2019), equation 1 with k = 1. With two classes the allowed attentions are
    {α : lo ≤ Σ α_t v_t ≤ hi}, v_t the log-odds of a token alone. JSD is convex, so a vertex of this polytope
    maximises it: one token inside [lo, hi], or two tokens mixed so that they land on lo or on hi.
    """
    if values.shape[-1] != 2:
        raise AssayError("exact() answers for two classes; use furthest(), which chooses by the number of classes.")
    problem = Problem.of(values, weights, mask, epsilon)
    tokens = mask.shape[1]
    step = max(1, min(ROWS, tokens, ENTRIES // (2 * tokens)))
    parts = problem.split(max(1, ENTRIES // (2 * tokens * step)))
    chosen = [_vertices(part, step).diverse(part.weights, k) for part in parts]
    return problem.answer(torch.cat(chosen), "exact")


def _vertices(problem: Problem, step: int) -> Candidates:
    """The shortlist of vertices; pairs are taken in the order of their less attended token.

    No pair beats its less attended token alone (convexity), so the walk over a long text ends as soon as the next
    token alone is no better than what is on the shortlist.
    """
    # padding gets a key above every weight: it comes last, and is told from tokens by it
    keys, order = problem.weights.where(problem.mask, 2.0).sort(dim=-1, stable=True)
    odds = (problem.values[..., 1] - problem.values[..., 0]).gather(-1, order)
    borders, tokens = _borders(problem), keys.shape[1]
    ceilings = LOG2 + shared(torch.ones_like(keys), keys)
    found = _singles(problem, odds, keys)
    for start in range(0, tokens - 1, step):
        if start > 0 and bool((ceilings[:, start] <= found.scores[:, -1]).all()):
            break
        found = found.join(_pairs(odds, keys, borders, slice(start, start + step))).best()
    return found.relabel(order)


def _borders(problem: Problem) -> Float[Tensor, "B 2"]:
    """The log-odds of the observed output minus and plus epsilon; infinite where that is no probability."""
    # a hair less than epsilon, so that rounding does not carry a mixture over the border
    epsilon = max(problem.epsilon * (1 - 1e-12), 0.1 * ROUNDING)
    no, yes = problem.observed.unbind(-1)
    low = (yes - epsilon).clamp(min=0).log() - (no + epsilon).log()
    high = (yes + epsilon).log() - (no - epsilon).clamp(min=0).log()
    return torch.stack([low, high], -1)


def _singles(problem: Problem, odds: Float[Tensor, "B T"], keys: Float[Tensor, "B T"]) -> Candidates:
    """All the weight on one token, where that leaves the output within epsilon."""
    moved = (odds.sigmoid() - problem.observed[:, 1:]).abs()
    allowed = (keys <= 1) & (moved <= problem.epsilon + ROUNDING)
    positions, one = torch.arange(odds.shape[1], device=odds.device).expand_as(odds), torch.ones_like(odds)
    scores = (LOG2 + shared(one, keys)).where(allowed, -torch.inf)
    return Candidates(torch.stack([positions, positions], -1), torch.stack([one, 1 - one], -1), scores)


def _pairs(
    odds: Float[Tensor, "B T"], keys: Float[Tensor, "B T"], borders: Float[Tensor, "B 2"], rows: slice
) -> Candidates:
    """Every mixture of a token in `rows` with a later one that lands on a border, as one broadcast."""
    here, there = odds[:, None, rows, None], odds[:, None, None, rows.start :]
    share = (borders[..., None, None] - there) / (here - there)  # [B, 2, rows, later]
    later = torch.ones(share.shape[2:], dtype=torch.bool, device=share.device).triu(1)
    real = keys <= 1
    allowed = (share > 0) & (share < 1) & later & real[:, None, rows, None] & real[:, None, None, rows.start :]
    share = share.where(allowed, 0.0)
    scores = LOG2 + shared(share, keys[:, None, rows, None]) + shared(1 - share, keys[:, None, None, rows.start :])
    scores, chosen = top(scores.where(allowed, -torch.inf).flatten(1))
    first, second = chosen // later.shape[1] % later.shape[0], chosen % later.shape[1]
    share = share.flatten(1).gather(1, chosen)
    return Candidates(torch.stack([first, second], -1) + rows.start, torch.stack([share, 1 - share], -1), scores)
