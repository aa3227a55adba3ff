"""Made-up problems for adversaries, and what numpy and scipy say about answers to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch
from scipy.special import rel_entr
from torch import Tensor
from torch.nn.functional import pad

from assay.intervene import adversary, adversary_bracket, adversary_lines
from assay.intervene.adversary import Adversaries, jsd
from assay.intervene.adversary_problem import Problem

Case = tuple[Tensor, Tensor, Tensor]


def solving(solve: Callable[[Problem, int], Adversaries]) -> Callable[..., Adversaries]:
    """A solver as a function of token logits, attention and mask, as `furthest` is."""

    def solved(values: Tensor, weights: Tensor, mask: Tensor, epsilon: float = 0.01, k: int = 5) -> Adversaries:
        return solve(Problem.of(values, weights, mask, epsilon), k)

    return solved


exact, bracket = solving(adversary_lines.exact), solving(adversary_bracket.bracket)
bounded = solving(adversary.bounded)


def case(lengths: list[int], classes: int, scale: float = 2.0, seed: int = 0) -> Case:
    generator = torch.Generator().manual_seed(seed)
    values = scale * torch.randn(len(lengths), max(lengths), classes, generator=generator, dtype=torch.float64)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    scores = torch.randn(*mask.shape, generator=generator, dtype=torch.float64)
    return values, scores.masked_fill(~mask, -torch.inf).softmax(-1), mask


def outputs(values: Tensor, weights: Tensor) -> np.ndarray:
    logits = weights.numpy() @ values.numpy()
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def distance(first: Tensor, second: Tensor) -> np.ndarray:
    p, q = first.numpy(), second.numpy()
    return np.asarray(rel_entr(p, (p + q) / 2) + rel_entr(q, (p + q) / 2)).sum(-1) / 2


def moved(values: Tensor, weights: Tensor, others: Tensor) -> np.ndarray:
    return 0.5 * np.abs(outputs(values, others) - outputs(values, weights[:, None])).sum(-1)


def grid_optimum(values: Tensor, weights: Tensor, epsilon: float, parts: int) -> Tensor:
    """The largest JSD among all attentions in steps of 1/parts that are within epsilon; 0 where there is none."""
    tokens = values.shape[1]
    bars = itertools.combinations(range(parts + tokens - 1), tokens - 1)
    edges = pad(pad(torch.tensor(list(bars), dtype=torch.float64), (1, 0), value=-1), (0, 1), value=parts + tokens - 1)
    grid = ((edges.diff(dim=-1) - 1) / parts).expand(len(values), -1, -1)
    within = torch.from_numpy(moved(values, weights, grid)) <= epsilon
    return jsd(grid, weights[:, None]).where(within, 0.0).amax(-1)


def check_answer(found: Adversaries, problem: Case, epsilon: float) -> None:
    """What every answer promises, checked with numpy and scipy alone."""
    values, weights, mask = problem
    observed = weights[:, None].expand_as(found.weights)
    assert (found.weights >= 0).all()
    assert (found.weights.masked_select(~mask[:, None]) == 0).all()
    assert torch.allclose(found.weights.sum(-1), torch.ones_like(found.jsd), rtol=0, atol=1e-12)
    assert (moved(values, weights, found.weights) <= epsilon + 1e-12).all()
    np.testing.assert_allclose(found.tvd, moved(values, weights, found.weights), atol=1e-12)
    np.testing.assert_allclose(found.jsd, distance(found.weights, observed), atol=1e-9)
    assert (found.jsd.diff(dim=-1) <= 0).all()
    assert (found.jsd[:, 0] <= found.upper + 1e-12).all()
