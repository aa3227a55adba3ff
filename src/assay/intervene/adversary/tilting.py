"""Exponential tilting of an attention until it gives the observed output."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.intervene.adversary.path import Path
from assay.intervene.adversary.problem import Problem

STEPS = 6
CLASSES = 16
"""So many of the likeliest classes are looked at."""

RIDGE = 1e-9


def tilted(problem: Problem, aim: Float[Tensor, "B K T"]) -> Float[Tensor, "B K T"]:
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
    for _ in range(STEPS):
        scores = scores - _newton(scores.softmax(-1).nan_to_num(0.0), values) @ values.mT
    return _mixed(problem, scores.softmax(-1).nan_to_num(0.0))


def _newton(attention: Float[Tensor, "B K T"], values: Float[Tensor, "B T C"]) -> Float[Tensor, "B K C"]:
    """A damped Newton step on log Σ aim_t exp(λ · z_t), whose gradient is the mean of z, 0 at the solution λ."""
    mean = attention @ values
    square = (attention[..., None] * values[:, None]).mT @ values[:, None]
    spread = square - mean[..., None] * mean[..., None, :]
    ridge = RIDGE * torch.eye(values.shape[-1], dtype=values.dtype, device=values.device)
    step = torch.cholesky_solve(mean[..., None], torch.linalg.cholesky_ex(spread + ridge).L)[..., 0]
    # self-concordance: with this damping the function never grows
    return step / (1 + (mean * step).sum(-1, keepdim=True).clamp(min=0).sqrt())


def _mixed(problem: Problem, attention: Float[Tensor, "B K T"]) -> Float[Tensor, "B K T"]:
    """Each attention mixed with the observed one so that the output moves by epsilon / 2."""
    observed, level = problem.weights[:, None], torch.full_like(attention[..., :1], 0.5 * problem.safe)
    change = (attention - observed) @ problem.values
    start = (observed @ problem.values).expand_as(change)
    path = Path(start, change, problem.observed[:, None].expand_as(change))
    share = torch.ones_like(level)
    beyond = (path.moved(share) > level)[..., 0]
    share = share.masked_scatter(
        beyond[..., None], path.some(beyond).before(share[beyond], level[beyond], 0.01 * problem.safe)
    )
    return observed + share * (attention - observed)
