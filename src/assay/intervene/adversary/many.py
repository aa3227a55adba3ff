"""Adversarial attention for any number of classes: a search as lower bound, a relaxation as upper bound."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.intervene.adversary.candidates import Candidates
from assay.intervene.adversary.distance import jsd
from assay.intervene.adversary.problem import ROUNDING, Adversaries, Problem
from assay.intervene.adversary.relaxation import relaxed
from assay.intervene.adversary.slide import slide
from assay.intervene.adversary.sparse import sparse
from assay.intervene.adversary.thinning import thinned

FEWEST, MOST, ALL = 4, 16, 160
"""Walks: all classes share them, because a walk takes the longer the more classes there are."""

SPARSE = 16
SEEDS = 12
"""The best and most different of both that an ascent starts from."""


@torch.no_grad()
def many(
    values: Float[Tensor, "B T C"],
    weights: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float = 0.01,
    k: int = 5,
) -> Adversaries:
    """The most different attention found within epsilon, k - 1 more diverse ones, and an upper bound.

    For Jain and Wallace (2019), equation 1 with k = 1. The lower bound is the best of three: one token or two mixed as
    far as is allowed, walks to attentions with at most as many tokens as classes, and an ascent along the border from
    the best of both. The upper bound is certified: it keeps one measure of the output at a time.
    """
    problem = Problem.of(values, weights, mask, epsilon).of_alive()
    walks = min(max(ALL // values.shape[-1], FEWEST), MOST)
    walked = _candidates(problem, thinned(problem, walks))
    few = sparse(problem, SPARSE, walked.scores.amax(-1))
    whole = few.dense(mask.shape[1]).where(few.scores.isfinite()[..., None], problem.weights[:, None])
    found = _candidates(problem, torch.cat([walked.shares, whole], 1))
    further = slide(problem, found.diverse(problem.weights, SEEDS))
    found = _candidates(problem, torch.cat([found.shares, further], 1))
    return problem.answer(found.diverse(problem.weights, k), "lower bound", relaxed(problem))


def _candidates(problem: Problem, attention: Float[Tensor, "B N T"]) -> Candidates:
    """Dense attentions as candidates; the observed one and infeasible ones score minus infinity."""
    apart = jsd(attention, problem.weights[:, None])
    scores = apart.where((problem.tvd(attention) <= problem.limit) & (apart > ROUNDING), -torch.inf)
    return Candidates(torch.arange(attention.shape[-1], device=scores.device).expand_as(attention), attention, scores)
