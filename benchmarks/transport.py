"""Sinkhorn by hand beside POT's, on a batch of alignments: time with gradients, and how far the plans are apart.

pip install POT; python -m benchmarks.transport
"""

from __future__ import annotations

import time
from collections.abc import Callable

import ot
import torch
from torch import Tensor

from assay.rationales.aligner import sinkhorn

TEXTS, WORDS, ASKED, EPSILON, STEPS = 64, 30, 15, 0.05, 50
REPEATS = 10


def ours(cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return sinkhorn(cost, rows, columns, EPSILON, STEPS)


def theirs(cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """One text after the other: POT's solver with a gradient takes one pair of marginals."""
    plans = [
        ot.sinkhorn(row, column, each, EPSILON, method="sinkhorn_log", numItermax=STEPS, warn=False)
        for each, row, column in zip(cost, rows, columns, strict=True)
    ]
    return torch.stack(plans)


def batched(cost: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """All texts at once, for equal numbers of words."""
    plans: Tensor = ot.solve_batch(
        cost, EPSILON, rows, columns, max_iter=STEPS, tol=1e-6, method="log_sinkhorn", grad="autodiff"
    ).plan
    return plans


def seconds(solver: Callable[[Tensor, Tensor, Tensor], Tensor], cost: Tensor, *masses: Tensor) -> float:
    """The fastest of some runs, forward and backward."""
    found = []
    for _ in range(REPEATS):
        leaf, started = cost.clone().requires_grad_(), time.perf_counter()
        (solver(leaf, *masses) * cost).sum().backward()
        found.append(time.perf_counter() - started)
    return min(found)


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cost = torch.rand(TEXTS, WORDS, ASKED)
    rows = torch.full((TEXTS, WORDS), 1 / WORDS)
    columns = torch.full((TEXTS, ASKED), 1 / ASKED)
    for solver in (ours, theirs, batched):
        plan = solver(cost, rows, columns)
        error = float((plan.sum(1) - columns).abs().max() + (plan.sum(2) - rows).abs().max())
        print(
            f"{solver.__name__:8} {1e3 * seconds(solver, cost, rows, columns):7.1f} ms, error of marginals {error:.1e}"
        )


if __name__ == "__main__":
    main()
