"""Adversarial attention: the most different attention with the same output (Jain and Wallace 2019, section 4.2.2).

The decoder is linear, so the logits under any attention are the weighted mean of the tokens' own logits: every function
here takes those token logits, the observed attention and the mask, and needs no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from assay.intervene.adversary_bracket import bracket
from assay.intervene.adversary_lines import Lines, exact, relaxed
from assay.intervene.adversary_problem import (
    ENTRIES,
    ROUNDING,
    SHORTLIST,
    Adversaries,
    Attention,
    Attentions,
    Bound,
    Candidates,
    Mask,
    Problem,
    Values,
    jsd,
    mixture_jsd,
    one_hot_jsd,
    one_token,
    top,
)
from assay.intervene.adversary_walks import Path, slide, thinned

__all__ = ["Adversaries", "Search", "bounded", "bracket", "exact", "furthest", "jsd", "mixtures"]


ROWS = 16


def mixtures(problem: Problem, number: int, above: Bound) -> Candidates:
    """The best feasible attentions on one or two tokens; pairs that cannot exceed `above` are skipped.

    JSD is convex, so the best mixture of two tokens is at one end of those that are allowed. These are looked for
    where all lines of the output allow them, which is a short interval of shares if there is any.
    """
    tokens = max(problem.mask.shape[1], 1)
    step = min(ROWS, tokens)
    largest = max(4 * tokens * step, SHORTLIST * problem.values.shape[-1])
    rows = max(1, ENTRIES // largest)
    parts = zip(problem.split(rows), torch.split(above[:, None], rows), strict=True)
    return Candidates.cat([_sparse(part, least, number, step) for part, least in parts])


def _sparse(problem: Problem, above: Float[Tensor, "B 1"], number: int, step: int) -> Candidates:
    keys, order = problem.weights.where(problem.mask, 2.0).sort(dim=-1, stable=True)
    ordered = problem.on(order)
    alone = one_hot_jsd(keys).where(ordered.mask, -torch.inf)
    moved = 0.5 * (ordered.values.softmax(-1) - ordered.observed[:, None]).abs().sum(-1)
    singles = one_token(alone.where(moved <= problem.limit, -torch.inf))
    pairs = partial(_pairs, ordered, Lines.around(ordered), above)
    return singles.and_pairs(pairs, alone.where(alone > above, -torch.inf), number, step).relabel(order)


def _pairs(
    problem: Problem, lines: Lines, above: Float[Tensor, "B 1"], rows: slice, least: Float[Tensor, "B 1"]
) -> Candidates:
    """Both ends of the feasible mixtures of a token in `rows` with a later one, for the most promising pairs."""
    interval = _interval(lines, rows)
    bounds = mixture_jsd(interval, problem.weights[:, None, rows.start :, None], problem.weights[:, rows, None, None])
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
    scores = mixture_jsd(share, there, here).nan_to_num(-torch.inf)
    shares = torch.stack([1 - share, share], -1).nan_to_num(0.0)
    return Candidates(pair.repeat_interleave(2, 1), shares.flatten(1, 2), scores.flatten(1))


def _interval(lines: Lines, rows: slice) -> Float[Tensor, "B R L 2"]:
    """The least and the largest feasible share of a later token; swapped where there is none."""
    here, there = lines.odds[:, :, rows, None], lines.odds[:, :, None, rows.start :]
    step = there - here
    step = step.where(step != 0, torch.finfo(step.dtype).tiny)
    low, high = ((border[..., None, None] - here) / step for border in lines.borders.unbind(-1))
    return torch.stack([torch.minimum(low, high).amax(1), torch.maximum(low, high).amin(1)], -1).clamp(0, 1)


FEWEST, MOST, ALL = 4, 16, 160
"""Walks: all classes share them, because a walk takes the longer the more classes there are."""

SPARSE = 16
SEEDS = 12
"""The best and most different of both that an ascent starts from."""


@torch.no_grad()
def bounded(problem: Problem, k: int = 5) -> Adversaries:
    """The most different attention found within epsilon, k - 1 more diverse ones, and an upper bound.

    For Jain and Wallace (2019), equation 1 with k = 1. The lower bound is the best of three: one token or two mixed as
    far as is allowed, walks to attentions with at most as many tokens as classes, and an ascent along the border from
    the best of both. The upper bound is certified: it keeps one measure of the output at a time.
    """
    walks = min(max(ALL // problem.values.shape[-1], FEWEST), MOST)
    problem = problem.of_alive()
    walked = _candidates(problem, thinned(problem, walks))
    few = mixtures(problem, SPARSE, walked.scores.amax(-1))
    whole = few.dense(problem.mask.shape[1]).where(few.scores.isfinite()[..., None], problem.weights[:, None])
    found = _candidates(problem, torch.cat([walked.shares, whole], 1))
    further = slide(problem, found.diverse(problem.weights, SEEDS))
    found = _candidates(problem, torch.cat([found.shares, further], 1))
    return problem.answer(found.diverse(problem.weights, k), "lower bound", relaxed(problem))


def _candidates(problem: Problem, attention: Float[Tensor, "B N T"]) -> Candidates:
    """Dense attentions as candidates; the observed one and infeasible ones score minus infinity."""
    apart = jsd(attention, problem.weights[:, None])
    scores = apart.where((problem.tvd(attention) <= problem.limit) & (apart > ROUNDING), -torch.inf)
    return Candidates(torch.arange(attention.shape[-1], device=scores.device).expand_as(attention), attention, scores)


@dataclass(frozen=True)
class Search:
    """The relaxed objective of Jain and Wallace (2019), section 4.2.2, for a whole batch at once.

    Every example starts from the same random numbers, so that its result does not depend on the batch it is in.
    """

    steps: int = 500
    learning_rate: float = 0.01
    penalty: float = 500.0
    seed: int = 0

    def __call__(
        self, values: Values, weights: Attention, mask: Mask, epsilon: float = 0.01, k: int = 5
    ) -> Adversaries:
        """The best k attentions of the ascent whose output moves by at most epsilon."""
        with torch.inference_mode(False), torch.enable_grad():
            problem = Problem.of(values, weights, mask, epsilon)
            real, scores = problem.mask[:, None], self._start(problem, k).requires_grad_()
            optimiser = torch.optim.Adam([scores], self.learning_rate, amsgrad=True, maximize=True)
            best = problem.weights[:, None].expand_as(scores)
            record = torch.zeros_like(scores[..., 0])
            for _ in range(self.steps):
                attention = scores.where(real, -1e9).softmax(-1) * real
                apart = jsd(attention, problem.weights[:, None])
                excess = problem.tvd(attention) - epsilon
                # differs from Jain and Wallace (2019): the best iterate within epsilon is kept, not the last one
                better = ((excess <= 0) & (apart > record)).detach()
                best, record = attention.detach().where(better[..., None], best), apart.detach().where(better, record)
                # differs from Jain and Wallace (2019): the penalty is subtracted; their plus sign is a misprint
                gain = apart.sum() + _diversity(attention) - self.penalty / k * excess.relu().sum()
                (scores.grad,) = torch.autograd.grad(gain, scores)
                optimiser.step()
        return problem.answer(best, "lower bound", problem.ceiling)

    def _start(self, problem: Problem, k: int) -> Attentions:
        """Initial logits log(1/L) + 3 N(0, 1), drawn per token, so that padding does not change them."""
        generator = torch.Generator().manual_seed(self.seed)
        tokens = problem.mask.shape[1]
        even = torch.rand(tokens, k, dtype=torch.float64, generator=generator).clamp(min=1e-12)
        noise: Tensor = torch.special.ndtri(even).T.to(problem.values.device)
        return 3 * noise - problem.mask.sum(-1).clamp(min=1).log()[:, None, None]


def _diversity(attention: Attentions) -> Float[Tensor, ""]:
    """The second term of equation 2, summed over the batch."""
    k = attention.shape[1]
    first, second = torch.triu_indices(k, k, 1, device=attention.device)
    return jsd(attention[:, first], attention[:, second]).sum() / max(k * (k - 1), 1)


def furthest(values: Values, weights: Attention, mask: Mask, epsilon: float = 0.01, k: int = 5) -> Adversaries:
    """The best algorithm for the number of classes: exact for two, a bracket for three, else a lower bound."""
    solve = {2: exact, 3: bracket}.get(values.shape[-1], bounded)
    return solve(Problem.of(values, weights, mask, epsilon), k)
