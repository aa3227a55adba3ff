"""Adversarial attention for two classes: the exact optimum in closed form."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from assay.errors import AssayError
from assay.intervene.adversary.line import Line
from assay.intervene.adversary.problem import Adversaries, Problem

ROUNDING = 1e-13


@torch.no_grad()
def exact(
    values: Float[Tensor, "B T C"],
    weights: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float = 0.01,
    k: int = 5,
) -> Adversaries:
    """The attention most different from `weights` whose output moves by at most epsilon, and k - 1 more.

    The exact optimum of Jain and Wallace (2019), equation 1 with k = 1. With two classes the allowed attentions are
    {α : lo ≤ Σ α_t v_t ≤ hi}, v_t the log-odds of a token alone, and the best vertex of this polytope is the answer.
    """
    if values.shape[-1] != 2:
        raise AssayError("exact() answers for two classes; use furthest(), which chooses by the number of classes.")
    problem = Problem.of(values, weights, mask, epsilon)
    odds = problem.values[..., 1] - problem.values[..., 0]
    inside = (odds.sigmoid() - problem.observed[:, 1:]).abs() <= epsilon + ROUNDING
    vertices = Line(problem.weights, problem.mask, odds, inside, _borders(problem)).vertices()
    return problem.answer(vertices.diverse(problem.weights, k), "exact")


def _borders(problem: Problem) -> Float[Tensor, "B 2"]:
    """The log-odds of the observed probability minus and plus epsilon; infinite outside [0, 1]."""
    # a hair less than epsilon, so that rounding does not carry a mixture over the border
    epsilon = max(problem.epsilon * (1 - 1e-12), 0.1 * ROUNDING)
    no, yes = problem.observed.unbind(-1)
    low = (yes - epsilon).clamp(min=0).log() - (no + epsilon).log()
    high = (yes + epsilon).log() - (no - epsilon).clamp(min=0).log()
    return torch.stack([low, high], -1)
