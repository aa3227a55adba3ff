"""Adversarial attentions on one or two tokens, for any number of classes."""

from __future__ import annotations

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from assay.intervene.adversary.candidates import SHORTLIST, Candidates, one_token, top
from assay.intervene.adversary.distance import LOG2, shared
from assay.intervene.adversary.path import Path
from assay.intervene.adversary.problem import ENTRIES, Problem
from assay.intervene.adversary.relaxation import Lines

ROWS = 16


def sparse(problem: Problem, number: int, above: Float[Tensor, " B"]) -> Candidates:
    """The best feasible attentions on one or two tokens; pairs that cannot exceed `above` are skipped.

    JSD is convex, so the best mixture of two tokens is at one end of those that are allowed. These are looked for
    where all lines of the output allow them, which is a short interval of shares if there is any.
    """
    tokens = max(problem.mask.shape[1], 1)
    step = min(ROWS, tokens)
    largest = max(4 * tokens * step, SHORTLIST * problem.values.shape[-1])
    rows = max(1, ENTRIES // largest)
    parts = zip(problem.split(rows), torch.split(above[:, None], rows), strict=True)
    return Candidates.stack([_sparse(part, least, number, step) for part, least in parts])


def _sparse(problem: Problem, above: Float[Tensor, "B 1"], number: int, step: int) -> Candidates:
    keys, order = problem.weights.where(problem.mask, 2.0).sort(dim=-1, stable=True)
    ordered = problem.on(order)
    alone = (LOG2 + shared(torch.ones_like(keys), keys)).where(ordered.mask, -torch.inf)
    moved = 0.5 * (ordered.values.softmax(-1) - ordered.observed[:, None]).abs().sum(-1)
    singles = one_token(alone.where(moved <= problem.limit, -torch.inf))
    pairs = partial(_pairs, ordered, Lines.around(ordered), above)
    return singles.and_pairs(pairs, alone.where(alone > above, -torch.inf), number, step).relabel(order)


def _pairs(
    problem: Problem, lines: Lines, above: Float[Tensor, "B 1"], rows: slice, least: Float[Tensor, "B 1"]
) -> Candidates:
    """Both ends of the feasible mixtures of a token in `rows` with a later one, for the most promising pairs."""
    interval = _interval(lines, rows)
    bounds = _score(interval, problem.weights[:, rows, None, None], problem.weights[:, None, rows.start :, None])
    hopeful = (bounds.amax(-1) > torch.maximum(least, above)[..., None]) & (interval[..., 0] <= interval[..., 1])
    hopeful &= problem.mask[:, rows, None] & problem.mask[:, None, rows.start :]
    hopeful &= torch.ones(hopeful.shape[1:], dtype=torch.bool, device=hopeful.device).triu(1)
    promise, chosen = top(bounds.mean(-1).where(hopeful, -torch.inf).flatten(1), SHORTLIST)
    pair = torch.stack([chosen // hopeful.shape[2], chosen % hopeful.shape[2]], -1) + rows.start
    example, position = promise.isfinite().nonzero(as_tuple=True)
    start, end = problem.values[example[:, None], pair[example, position]].unbind(1)
    share = promise.new_full((*promise.shape, 2), torch.nan)
    share[example, position] = Path(start, end - start, problem.observed[example]).ends(
        interval.flatten(1, 2)[example, chosen[example, position]], problem.limit
    )
    share = share.where((share > 0) & (share < 1), torch.nan)  # the others are one token alone
    here, there = (problem.weights.gather(1, token)[..., None] for token in pair.unbind(-1))
    scores = _score(share, here, there).nan_to_num(-torch.inf)
    shares = torch.stack([1 - share, share], -1).nan_to_num(0.0)
    return Candidates(pair.repeat_interleave(2, 1), shares.flatten(1, 2), scores.flatten(1))


def _score(share: Tensor, here: Tensor, there: Tensor) -> Tensor:
    """The JSD of a two-token mixture with this share on the token of observed weight `there`."""
    return LOG2 + shared(1 - share, here) + shared(share, there)


def _interval(lines: Lines, rows: slice) -> Float[Tensor, "B R L 2"]:
    """The least and the largest feasible share of a later token; swapped where there is none."""
    here, there = lines.odds[:, :, rows, None], lines.odds[:, :, None, rows.start :]
    step = there - here
    step = step.where(step != 0, torch.finfo(step.dtype).tiny)
    low, high = ((border[..., None, None] - here) / step for border in lines.borders.unbind(-1))
    return torch.stack([torch.minimum(low, high).amax(1), torch.maximum(low, high).amin(1)], -1).clamp(0, 1)
