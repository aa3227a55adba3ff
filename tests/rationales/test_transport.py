"""Transport plans: exact marginals, and the best assignment as they harden."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
import torch
from scipy.optimize import linear_sum_assignment

from assay.errors import AssayError
from assay.rationales.aligner import Transport, sinkhorn

HARD = {"epsilon": 1e-3, "steps": 2000}


def masses(rows: int, columns: int, count: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    """Random masses of the same sum; the first row and the last column have none."""
    heights, widths = torch.rand(count, rows, dtype=torch.float64), torch.rand(count, columns, dtype=torch.float64)
    heights[:, 0], widths[:, -1] = 0.0, 0.0
    return heights, widths * (heights.sum(1) / widths.sum(1))[:, None]


def costs(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def masks(lengths: list[int], width: int) -> torch.Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("epsilon", [1.0, 0.05, 1e-3])
def test_rows_and_columns_have_their_masses(epsilon, dtype):
    rows, columns = (each.to(dtype) for each in masses(6, 9))
    plan = sinkhorn(costs(4, 6, 9).to(dtype), rows, columns, epsilon)
    assert (plan >= 0).all()
    torch.testing.assert_close(plan.sum(2), rows, atol=1e-5, rtol=0)
    torch.testing.assert_close(plan.sum(1), columns, atol=1e-5, rtol=0)


def test_the_plan_is_the_entropic_optimum():
    """For ε = 1, log P + C is then a number of the row and one of the column, so its double differences are 0."""
    cost, rows, columns = costs(3, 5, 4), *masses(5, 4, 3)
    plan = sinkhorn(cost, rows, columns, 1.0, steps=400, tolerance=1e-13)[:, 1:, :-1]
    tilted = plan.log() + cost[:, 1:, :-1]
    twice = tilted.diff(dim=1).diff(dim=2)
    torch.testing.assert_close(twice, torch.zeros_like(twice), atol=1e-9, rtol=0)


def test_hard_plans_are_the_best_assignments():
    cost = costs(5, 6, 9)
    text, query = masks([6, 5, 6, 3, 4], 6), masks([9, 4, 6, 9, 4], 9)
    plan = Transport(exact=True, **HARD)(cost, text, query)
    for each, found, n, m in zip(cost, plan, text.sum(1), query.sum(1), strict=True):
        rows, columns = linear_sum_assignment(each[:n, :m].numpy())
        assert float((found * each).sum()) == pytest.approx(float(each[rows, columns].sum()), abs=1e-3)
        best = torch.zeros_like(found)
        best[rows, columns] = 1.0
        torch.testing.assert_close(found, best, atol=0.02, rtol=0)


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_of_all_partial_matchings_the_cheapest_is_found(most, exact):
    cost = costs(6, 3, 4)
    sizes = [most] if exact else range(most + 1)
    plan = Transport(most=most, exact=exact, **HARD)(cost, masks([3] * 6, 3), masks([4] * 6, 4))
    for each, found in zip(cost, plan, strict=True):
        matchings = (
            sum(float(each[row, column]) for row, column in zip(rows, columns, strict=True))
            for size in sizes
            for rows in combinations(range(3), size)
            for columns in permutations(range(4), size)
        )
        assert float((found * each).sum()) == pytest.approx(min(matchings), abs=5e-3)


@pytest.mark.parametrize("epsilon", [0.5, 0.05])
def test_no_more_is_aligned_than_may_be(epsilon):
    text, query = masks([7, 4, 2], 7), masks([5, 5, 5], 5)
    sure = {"epsilon": epsilon, "steps": 600, "tolerance": 1e-9}
    free = Transport(most=3, **sure)(costs(3, 7, 5), text, query)
    fixed = Transport(most=3, exact=True, **sure)(costs(3, 7, 5), text, query)
    many = Transport(several=2, exact=True, **sure)(costs(3, 7, 5), text, query)
    limit = torch.tensor([3.0, 3.0, 2.0]).double()
    assert (free.sum((1, 2)) <= limit + 1e-5).all()
    torch.testing.assert_close(fixed.sum((1, 2)), limit, atol=1e-5, rtol=0)
    torch.testing.assert_close(many.sum((1, 2)), torch.tensor([7.0, 4.0, 2.0]).double(), atol=1e-5, rtol=0)
    for plan, most in ((free, 1), (fixed, 1), (many, 2)):
        assert (plan.sum(2) <= 1 + 1e-5).all() and (plan.sum(1) <= most + 1e-5).all()
        assert not plan[~(text[:, :, None] & query[:, None, :])].any()


def test_hard_plans_are_sparse():
    rows, columns = masses(8, 8, 6)
    plan = sinkhorn(costs(6, 8, 8), rows, columns, **HARD)
    assert (plan > 1e-3).sum((1, 2)).max() <= 2 * 8 - 1


def test_what_costs_more_than_it_gains_is_not_aligned():
    cost, text, query = -torch.rand(4, 5, 3, dtype=torch.float64), masks([5] * 4, 5), masks([3] * 4, 3)
    plan = Transport(price=0.7, **HARD)(cost, text, query)
    assert not (plan > 0.5)[cost > -0.7].any() and (plan > 0.5).any()


def test_gradients_are_those_of_the_plan():
    cost = costs(2, 3, 4).requires_grad_()
    text, query = masks([3, 2], 3), masks([4, 3], 4)
    transport = Transport(most=2, epsilon=0.3, steps=40, tolerance=0.0)
    assert torch.autograd.gradcheck(lambda each: transport(each, text, query), (cost,))


def test_padding_changes_nothing_and_half_precision_stays_so():
    cost = costs(2, 4, 3)
    transport = Transport(most=2, tolerance=0.0)
    plan = transport(cost, masks([4, 3], 4), masks([3, 2], 3))
    wide = torch.nn.functional.pad(cost, (0, 3, 0, 2), value=0.1)
    padded = transport(wide, masks([4, 3], 6), masks([3, 2], 6))
    torch.testing.assert_close(padded[:, :4, :3], plan)
    half = transport(cost.bfloat16(), masks([4, 3], 4), masks([3, 2], 3))
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), plan, atol=0.1, rtol=0)


@pytest.mark.parametrize("options", [{"most": 0}, {"several": 0}, {"steps": 0}, {"epsilon": 0.0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(AssayError):
        Transport(**options)
