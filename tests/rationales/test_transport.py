"""Alignments: exact marginals, the assignment where the softness vanishes, and no more pairs than are allowed."""

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, linprog

from assay.errors import AssayError
from assay.rationales.transport import Transport, sinkhorn

SHARP = {"epsilon": 1e-3, "steps": 2000}


def costs(rows=2, text=5, query=4, seed=0):
    return torch.rand(rows, text, query, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def everything(cost):
    return torch.ones(cost.shape[:2]).bool(), torch.ones(cost.shape[0], cost.shape[2]).bool()


def test_the_plan_has_the_marginals_and_its_dual_form():
    cost = costs()
    rows = torch.tensor([[0.1, 0.2, 0.3, 0.2, 0.2], [0.5, 0.1, 0.1, 0.1, 0.2]], dtype=torch.float64)
    columns = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]], dtype=torch.float64)
    plan = sinkhorn(cost, rows, columns, epsilon=0.1, steps=500, tolerance=1e-12)
    torch.testing.assert_close(plan.sum(2), rows, atol=1e-9, rtol=0)
    torch.testing.assert_close(plan.sum(1), columns, atol=1e-9, rtol=0)
    duals = plan.log() * 0.1 + cost  # must be a sum of a term for the row and one for the column
    mixed = duals[:, :1, :1] - duals[:, :1] - duals[:, :, :1] + duals
    assert mixed.abs().max() < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_without_softness_it_is_the_best_assignment(seed):
    cost = costs(1, 6, 6, seed)
    plan = Transport(exact=True, **SHARP)(cost, *everything(cost))[0]
    rows, columns = linear_sum_assignment(cost[0].numpy())
    assert torch.nonzero(plan > 0.5).tolist() == [[r, c] for r, c in zip(rows, columns, strict=True)]
    assert float((plan * cost[0]).sum()) == pytest.approx(cost[0].numpy()[rows, columns].sum(), abs=2e-2)


@pytest.mark.parametrize(("most", "several"), [(2, 1), (3, 1), (3, 2)])
def test_at_most_so_many_pairs_are_aligned_and_they_are_the_best_ones(most, several):
    cost = costs(1, 5, 3, 7) - 0.6  # some pairs are worth it and some are not
    plan = Transport(most=most, several=several, **SHARP)(cost, *everything(cost))[0].numpy()
    text, query = plan.shape
    bounds = np.vstack(
        [np.kron(np.eye(text), np.ones(query)), np.kron(np.ones(text), np.eye(query)), np.ones(text * query)]
    )
    limits = np.r_[np.ones(text), several * np.ones(query), most]
    best = linprog(cost[0].numpy().ravel(), A_ub=bounds, b_ub=limits, bounds=(0, 1))
    assert plan.sum() <= most + 1e-6 and (plan.sum(1) <= 1 + 1e-6).all() and (plan.sum(0) <= several + 1e-6).all()
    assert float((plan * cost[0].numpy()).sum()) == pytest.approx(best.fun, abs=2e-2)
    assert (plan > 0.5).sum() == (best.x > 0.5).sum() <= 2 * max(text, query)


def test_padding_changes_nothing_and_gets_nothing():
    cost = costs(1, 4, 3)
    wide = torch.nn.functional.pad(cost, (0, 2, 0, 3), value=-9.0)
    text, query = torch.arange(7)[None] < 4, torch.arange(5)[None] < 3
    found = Transport(most=2)(wide, text, query)  # what padding would cost is not looked at
    torch.testing.assert_close(found[:, :4, :3], Transport(most=2)(cost, *everything(cost)), atol=1e-6, rtol=0)
    assert float(found.sum()) == pytest.approx(float(found[:, :4, :3].sum()), abs=1e-12)


def test_the_slope_is_that_of_finite_differences():
    cost, shape = costs(1, 3, 3) - 0.5, Transport(most=2, epsilon=0.3, steps=400, tolerance=1e-14)
    assert torch.autograd.gradcheck(
        lambda given: shape(given, *everything(given)), (cost.clone().requires_grad_(),), eps=1e-6, atol=1e-4
    )


def test_half_precision_comes_back_as_it_was_given():
    cost = costs().to(torch.bfloat16)
    plan = Transport(most=2)(cost, *everything(cost))
    assert plan.dtype == torch.bfloat16 and plan.isfinite().all()


@pytest.mark.parametrize("options", [{"most": 0}, {"several": 0}, {"epsilon": 0.0}])
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(AssayError):
        Transport(**options)
