"""An upper bound for any number of classes: the minimum over several linear relaxations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.intervene.adversary.line import Line
from assay.intervene.adversary.problem import Problem

CLASSES = 6
"""So many of the likeliest classes are compared in pairs; the others are too unlikely to hold the output."""

ROUNDING = 1e-12
ROWS = 8


@dataclass(frozen=True, eq=False)
class Lines:
    """Linear functions of the output, Σ α_t odds_t, and their bounds within epsilon.

    Two classes i and j: y_i and y_j move by at most ε each, so log(y_i / y_j) = Σ α_t (z_t[i] - z_t[j]) stays between
    log((ŷ_i - ε) / (ŷ_j + ε)) and log((ŷ_i + ε) / (ŷ_j - ε)). Moving ε from one of them to the other reaches both, so
    these are the best borders there are; one that no probability reaches is infinite.

    The likeliest class c against the rest: for any shares s of the other classes, Σ s_j log y_j is at most
    Σ s_j log s_j + log(1 - y_c) (Gibbs), so Σ s_j log(y_j / y_c) ≤ Σ s_j log s_j + log((1 - ŷ_c + ε) / (ŷ_c - ε)). The
    shares are those of the observed output.
    """

    odds: Float[Tensor, "B N T"]
    borders: Float[Tensor, "B N 2"]

    @classmethod
    def around(cls, problem: Problem) -> Lines:
        """All linear constraints of each example, widened slightly against rounding."""
        epsilon = problem.epsilon + 2 * ROUNDING
        likely = problem.observed.topk(min(problem.observed.shape[-1], CLASSES)).indices
        parts = [_pairs(problem, likely, epsilon), _rest(problem, likely[:, :1], epsilon)]
        odds, borders = (torch.cat(column, 1) for column in zip(*parts, strict=True))
        slack = ROUNDING * (1 + odds.abs().amax(-1, keepdim=True)) * borders.new_tensor([-1.0, 1.0])
        return cls(odds, borders + slack)


def relaxed(problem: Problem) -> Float[Tensor, " B"]:
    """An upper bound on the JSD of attentions within epsilon.

    Keeping one line alone allows more attentions than the output does, and the furthest of them is known exactly: an
    upper bound, and the least one over all lines is the result. With two classes it is the optimum.
    """
    lines = Lines.around(problem)
    number = lines.odds.shape[1]
    weights, mask = (field.repeat_interleave(number, 0) for field in (problem.weights, problem.mask))
    odds, borders = lines.odds.flatten(0, 1), lines.borders.flatten(0, 1)
    inside = (odds >= borders[:, :1]) & (odds <= borders[:, 1:])
    best = Line(weights, mask, odds, inside, borders).vertices(1, ROWS).scores
    return best.reshape(-1, number).amin(-1).clamp(min=0)


def _pairs(problem: Problem, classes: Int[Tensor, "B L"], epsilon: float) -> tuple[Tensor, Tensor]:
    """The log-odds of every two of these classes, and their bounds."""
    first, second = torch.combinations(torch.arange(classes.shape[1], device=classes.device)).T
    logits = problem.values.mT.gather(1, classes[..., None].expand(-1, -1, problem.mask.shape[1]))
    likely = problem.observed.gather(1, classes)
    least, most = (likely - epsilon).clamp(min=0).log(), (likely + epsilon).log()
    borders = torch.stack([least[:, first] - most[:, second], most[:, first] - least[:, second]], -1)
    return logits[:, first] - logits[:, second], borders


def _rest(problem: Problem, likeliest: Int[Tensor, "B 1"], epsilon: float) -> tuple[Tensor, Tensor]:
    """The mean log-odds of the other classes against the likeliest one, and their bounds."""
    own, others = problem.observed.gather(1, likeliest), problem.observed.scatter(1, likeliest, 0.0)
    total, tiny = others.sum(-1, keepdim=True), torch.finfo(others.dtype).tiny
    shares = others / total.clamp(min=tiny)
    logits = problem.values - problem.values.gather(-1, likeliest[:, None].expand(-1, problem.mask.shape[1], -1))
    high = torch.xlogy(shares, shares).sum(-1, keepdim=True)
    high = high + (1 - own + epsilon).log() - (own - epsilon).clamp(min=0).log()
    high = high.where(total > tiny, torch.inf)  # without any rest there is nothing to be kept
    return (logits @ shares[..., None]).mT, torch.stack([torch.full_like(high, -torch.inf), high], -1)
