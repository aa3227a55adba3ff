"""Local improvement of an attention along the boundary of the feasible set."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from assay.intervene.adversary.directions import free, jsd_gradient, scaled, tvd_gradient, until_zero
from assay.intervene.adversary.distance import jsd
from assay.intervene.adversary.problem import Problem

STEPS = 12
LENGTHS = 4
RETURNS = 3
BORDER = 0.98
"""An output that has moved by this part of epsilon is at the border."""

KINK = 0.2
"""The edges of the border are rounded by this part of epsilon, else an ascent jams in them."""


def slide(problem: Problem, attention: Float[Tensor, "B K T"]) -> Float[Tensor, "B K T"]:
    """Feasible attentions with at least the JSD of the given ones, on the same tokens or fewer.

    A step goes up the gradient of JSD, at the border along its tangent. Several lengths are tried, brought back within
    epsilon and compared; the next step is longer or shorter accordingly.
    """
    score = jsd(attention, problem.weights[:, None])
    reach = torch.ones_like(score)[..., None]
    parts = 0.5 ** torch.arange(LENGTHS, dtype=reach.dtype, device=reach.device)
    for _ in range(STEPS):
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


def _directions(
    problem: Problem, attention: Float[Tensor, "B K T"]
) -> tuple[Float[Tensor, "B K T"], Float[Tensor, "B K T"]]:
    """The JSD gradient tangential to the boundary, and the direction of fastest output change."""
    used = (attention > 0).to(attention)
    away, _ = scaled(tvd_gradient(problem, attention, KINK * problem.safe) * used)
    border = (problem.tvd(attention) > BORDER * problem.safe)[..., None]
    direction, _ = scaled(free(jsd_gradient(problem, attention), torch.stack([used, away * border], -1)))
    return direction, free(away, used[..., None])


def _returned(
    problem: Problem, tried: Float[Tensor, "B K N T"], away: Float[Tensor, "B K T"]
) -> Float[Tensor, "B K N T"]:
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


def _scores(problem: Problem, tried: Float[Tensor, "B K N T"]) -> Float[Tensor, "B K N"]:
    """The JSD of each attention, minus infinity where infeasible."""
    within = problem.tvd(tried.flatten(1, 2)).reshape(tried.shape[:-1]) <= problem.limit
    return jsd(tried, problem.weights[:, None, None]).where(within, -torch.inf)
