"""Adversarial attention under linear constraints: the optimum for two classes, an upper bound for more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.intervene.adversary_problem import (
    ENTRIES,
    SHORTLIST,
    Adversaries,
    Attention,
    Bound,
    Candidates,
    Mask,
    Problem,
    in_chunks,
    mixture_jsd,
    one_hot_jsd,
    one_token,
    top,
)

Borders = Float[Tensor, "B 2"]

ROWS = 32
"""Tokens that are paired with all later ones before the walk looks whether it may end."""


@dataclass(frozen=True, eq=False)
class Line:
    """The polytope {α : low ≤ Σ α_t odds_t ≤ high}; `inside` says which one-hot attentions are in it.

    JSD is convex, so a vertex of this polytope maximises it: one token inside, or two tokens mixed so that they land on
    a border.
    """

    weights: Attention  # the observed one
    mask: Mask
    odds: Attention
    inside: Mask
    borders: Borders

    def vertices(self, number: int = SHORTLIST, rows: int = ROWS) -> Candidates:
        """The best vertices, best first."""
        tokens = self.mask.shape[1]
        step = max(1, min(rows, tokens, ENTRIES // (2 * max(tokens, 1))))
        parts = in_chunks(self, len(self.mask), max(1, ENTRIES // (2 * max(tokens, 1) * step)))
        return Candidates.cat([part._vertices(number, step) for part in parts])

    def _vertices(self, number: int, step: int) -> Candidates:
        # padding gets a key above every weight: it comes last, and is told from tokens by it
        keys, order = self.weights.where(self.mask, 2.0).sort(dim=-1, stable=True)
        mask, odds, inside = (field.gather(-1, order) for field in (self.mask, self.odds, self.inside))
        ordered = Line(keys, mask, odds, inside, self.borders)
        alone = one_hot_jsd(keys).where(ordered.mask, -torch.inf)
        singles = one_token(alone.where(ordered.inside, -torch.inf))
        return singles.and_pairs(partial(ordered._pairs, number), alone, number, step).relabel(order)

    def _pairs(self, number: int, rows: slice, least: Float[Tensor, "B 1"]) -> Candidates:
        """Mixtures of a token in `rows` with a later one that lie on the boundary, as one broadcast."""
        here, there = self.odds[:, None, rows, None], self.odds[:, None, None, rows.start :]
        share = (self.borders[..., None, None] - there) / (here - there)  # [B, 2, rows, later]
        later = torch.ones(share.shape[2:], dtype=torch.bool, device=share.device).triu(1)
        allowed = (share > 0) & (share < 1) & later
        allowed &= self.mask[:, None, rows, None] & self.mask[:, None, None, rows.start :]
        share = share.where(allowed, 0.0)
        here, there = self.weights[:, None, rows, None], self.weights[:, None, None, rows.start :]
        scores = mixture_jsd(share, here, there)
        allowed &= scores > least[..., None, None]
        scores, chosen = top(scores.where(allowed, -torch.inf).flatten(1), number)
        first, second = chosen // later.shape[1] % later.shape[0], chosen % later.shape[1]
        share = share.flatten(1).gather(1, chosen)
        return Candidates(torch.stack([first, second], -1) + rows.start, torch.stack([share, 1 - share], -1), scores)


ROUNDING = 1e-13


@torch.no_grad()
def exact(problem: Problem, k: int = 5) -> Adversaries:
    """The attention most different from the observed one whose output moves by at most epsilon, and k - 1 more.

    The exact optimum of Jain and Wallace (2019), equation 1 with k = 1. With two classes the allowed attentions are
    {α : lo ≤ Σ α_t v_t ≤ hi}, v_t the log-odds of a token alone, and the best vertex of this polytope is the answer.
    """
    if problem.values.shape[-1] != 2:
        raise AssayError("exact() answers for two classes; use furthest(), which chooses by the number of classes.")
    odds = problem.values[..., 1] - problem.values[..., 0]
    inside = (odds.sigmoid() - problem.observed[:, 1:]).abs() <= problem.epsilon + ROUNDING
    vertices = Line(problem.weights, problem.mask, odds, inside, _borders(problem)).vertices()
    return problem.answer(vertices.diverse(problem.weights, k), "exact")


def _borders(problem: Problem) -> Borders:
    """The log-odds of the observed probability minus and plus epsilon; infinite outside [0, 1]."""
    # a hair less than epsilon, so that rounding does not carry a mixture over the border
    epsilon = max(problem.epsilon * (1 - 1e-12), 0.1 * ROUNDING)
    no, yes = problem.observed.unbind(-1)
    low = (yes - epsilon).clamp(min=0).log() - (no + epsilon).log()
    high = (yes + epsilon).log() - (no - epsilon).clamp(min=0).log()
    return torch.stack([low, high], -1)


CLASSES = 6
"""So many of the likeliest classes are compared in pairs; the others are too unlikely to hold the output."""

SLACK = 1e-12
RELAXED_ROWS = 8


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
        epsilon = problem.epsilon + 2 * SLACK
        likely = problem.observed.topk(min(problem.observed.shape[-1], CLASSES)).indices
        parts = [_pairs(problem, likely, epsilon), _rest(problem, likely[:, :1], epsilon)]
        odds, borders = (torch.cat(column, 1) for column in zip(*parts, strict=True))
        slack = SLACK * (1 + odds.abs().amax(-1, keepdim=True)) * borders.new_tensor([-1.0, 1.0])
        return cls(odds, borders + slack)


def relaxed(problem: Problem) -> Bound:
    """An upper bound on the JSD of attentions within epsilon.

    Keeping one line alone allows more attentions than the output does, and the furthest of them is known exactly: an
    upper bound, and the least one over all lines is the result. With two classes it is the optimum.
    """
    lines = Lines.around(problem)
    number = lines.odds.shape[1]
    weights, mask = (field.repeat_interleave(number, 0) for field in (problem.weights, problem.mask))
    odds, borders = lines.odds.flatten(0, 1), lines.borders.flatten(0, 1)
    inside = (odds >= borders[:, :1]) & (odds <= borders[:, 1:])
    best = Line(weights, mask, odds, inside, borders).vertices(1, RELAXED_ROWS).scores
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
