"""The parts of the adversary for many classes: gradients, paths, walks, tilted attentions and the certified lines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.intervene.adversary import jsd, mixtures
from assay.intervene.adversary_lines import Lines, relaxed
from assay.intervene.adversary_problem import Problem, one_token
from assay.intervene.adversary_walks import Groups, Path, Walk, free, jsd_gradient, slide, thinned, tilted, tvd_gradient
from tests.intervene.problems import case, moved
from tests.intervene.test_adversary_of_many import pairs_optimum


def problem_of(lengths: list[int], classes: int, epsilon: float = 0.05, seed: int = 0) -> Problem:
    return Problem.of(*case(lengths, classes, seed=seed), epsilon)


def random_attentions(problem: Problem, number: int, spread: float = 2.0) -> Tensor:
    scores = spread * torch.randn(len(problem.mask), number, problem.mask.shape[1], dtype=torch.float64)
    return scores.where(problem.mask[:, None], -torch.inf).softmax(-1)


def test_slopes_are_those_of_autograd() -> None:
    problem = problem_of([6, 9], 5)
    attention = random_attentions(problem, 3).requires_grad_()
    inside = problem.mask[:, None].expand_as(attention)
    (expected,) = torch.autograd.grad(2 * jsd(attention, problem.weights[:, None]).sum(), attention, retain_graph=True)
    assert torch.allclose(jsd_gradient(problem, attention)[inside], expected[inside])
    (expected,) = torch.autograd.grad(problem.tvd(attention).sum(), attention)
    assert torch.allclose(tvd_gradient(problem, attention), expected)


def test_the_rounded_slope_is_that_of_a_rounded_distance() -> None:
    problem = problem_of([6, 9], 5)
    attention = (0.97 * problem.weights[:, None] + 0.03 * random_attentions(problem, 3)).requires_grad_()
    change = (attention @ problem.values).softmax(-1) - problem.observed[:, None]
    rounded = torch.nn.functional.huber_loss(change, torch.zeros_like(change), reduction="sum", delta=0.01) / 0.01
    (expected,) = torch.autograd.grad(0.5 * rounded, attention)
    assert ((change.abs() < 0.01).any(), (change.abs() > 0.01).any()) == (True, True)
    assert torch.allclose(tvd_gradient(problem, attention, 0.01), expected, atol=1e-12)


def test_a_free_direction_is_the_nearest_one_that_changes_nothing_held() -> None:
    direction = torch.randn(2, 3, 9, dtype=torch.float64)
    held = torch.cat([torch.ones(2, 3, 9, 1), torch.randn(2, 3, 9, 3), torch.zeros(2, 3, 9, 1)], -1).double()
    held[0, :, 4] = 0  # a token that is not used
    found = free(direction, held)
    for example, walk in np.ndindex(2, 3):
        kept = held[example, walk].numpy()
        wanted = direction[example, walk].numpy() * kept[:, 0]
        wanted = wanted - kept @ np.linalg.lstsq(kept, wanted, rcond=None)[0]
        np.testing.assert_allclose(found[example, walk], wanted, atol=1e-12)


def test_the_ends_of_a_path_are_the_outermost_allowed_points_of_a_grid() -> None:
    start, end = torch.randn(2, 400, 4, dtype=torch.float64) * 2
    observed = (0.5 * (start + end) + 0.3 * torch.randn(400, 4, dtype=torch.float64)).softmax(-1)
    whole = torch.tensor([[0.0, 1.0]], dtype=torch.float64).expand(400, -1)
    path = Path(start, end - start, observed)
    ends = path.ends(whole, 0.1)
    grid = torch.linspace(0, 1, 4001, dtype=torch.float64).expand(400, -1)
    allowed = path.moved(grid) <= 0.1
    known = ends.isfinite().all(-1)
    assert 300 < known.sum() < 390
    assert (allowed.any(-1) & ~known).sum() <= 4  # intervals too short for the first grid
    assert (path.moved(ends)[known] <= 0.1).all()
    connected = known & ((allowed.diff(dim=-1) != 0).sum(-1) <= 2) & allowed.any(-1)
    low, high = (grid[0].where(allowed, fill) for fill in (torch.inf, -torch.inf))
    assert (ends[connected, 0] <= low.amin(-1)[connected]).all()
    assert (ends[connected, 1] >= high.amax(-1)[connected]).all()
    assert (ends[connected, 0] >= low.amin(-1)[connected] - 1 / 4000).all()
    assert (ends[connected, 1] <= high.amax(-1)[connected] + 1 / 4000).all()


def test_a_path_stops_shortly_before_its_level() -> None:
    start, change = torch.randn(2, 50, 6, dtype=torch.float64)
    path = Path(start, 3 * change, start.softmax(-1))
    high, level = torch.full((50, 1), 5.0, dtype=torch.float64), torch.full((50, 1), 0.01, dtype=torch.float64)
    length = path.before(high, level, 1e-4)
    assert (path.moved(length) <= 0.01).all()
    assert (path.moved(length * 1.3) > 0.01).all()


def test_sparse_attentions_are_those_of_a_plain_loop() -> None:
    for classes, epsilon in ((4, 0.1), (6, 0.3)):
        values, weights, mask = case([9, 6, 12], classes)
        problem = Problem.of(values, weights, mask, epsilon)
        found = mixtures(problem, 16, torch.full((3,), -torch.inf, dtype=torch.float64))
        best = pairs_optimum((values, weights, mask), epsilon)
        assert (best > 0.1).any()
        np.testing.assert_allclose(found.scores[:, 0].clamp(min=0), best, atol=2e-3)
        assert (found.scores[:, 0].clamp(min=0) >= best - 1e-9).all()
        reached = moved(values, weights, found.dense(12))[found.scores.isfinite().numpy()]
        assert (reached <= epsilon + 1e-12).all()


def test_pairs_that_cannot_be_further_than_asked_for_are_left_out_and_no_others() -> None:
    problem = problem_of([14, 14], 4, epsilon=0.3)
    everything = mixtures(problem, 64, torch.full((2,), -torch.inf, dtype=torch.float64))
    middle = everything.scores[:, 5]
    some = mixtures(problem, 64, middle)
    np.testing.assert_allclose(some.scores[:, :5], everything.scores[:, :5], atol=1e-12)
    assert some.scores.isfinite().sum() < 0.7 * everything.scores.isfinite().sum()


def test_pairs_are_walked_until_the_next_token_alone_is_no_better() -> None:
    alone = torch.tensor([[0.6, 0.5, 0.4, 0.3, 0.2]], dtype=torch.float64)
    asked = []

    def pairs(rows: slice, least: Tensor) -> object:
        asked.append((rows.start, least.item()))
        return one_token(torch.full_like(alone, -torch.inf))

    singles = one_token(torch.tensor([[-torch.inf, -torch.inf, 0.4, 0.3, 0.2]], dtype=torch.float64))
    assert singles.and_pairs(pairs, alone, 1, 1).scores.tolist() == [[0.4]]
    assert asked == [(0, 0.4), (1, 0.4)]


def test_an_output_within_epsilon_never_leaves_a_line() -> None:
    problem = problem_of([8, 12, 20], 7, epsilon=0.1)
    lines = Lines.around(problem)
    assert lines.odds.shape[1] == 16  # six classes in pairs, and one against the rest
    mixed = torch.rand(3, 5000, 1, dtype=torch.float64)
    attention = mixed * problem.weights[:, None] + (1 - mixed) * random_attentions(problem, 5000)
    within = problem.tvd(attention) <= 0.1
    assert (within.sum(-1) > 500).all()
    odds = attention @ lines.odds.mT
    low, high = lines.borders[:, None].unbind(-1)
    inside = ((odds >= low) & (odds <= high)).all(-1)
    assert inside[within].all()
    assert not inside.all()


def test_the_border_of_two_classes_is_reached_by_moving_epsilon_from_one_to_the_other() -> None:
    problem = problem_of([8], 4, epsilon=0.02)
    likely, unlikely = problem.observed[0].topk(2).indices.tolist()
    moved_output = problem.observed[0].clone()
    moved_output[likely] += 0.02
    moved_output[unlikely] -= 0.02
    odds = (moved_output[likely] / moved_output[unlikely]).log()
    assert Lines.around(problem).borders[0, 0, 1].item() == pytest.approx(odds.item(), abs=1e-9)


def test_the_border_of_the_likeliest_class_is_reached_by_moving_epsilon_to_the_others_in_proportion() -> None:
    problem = problem_of([8, 5], 5, epsilon=0.02)
    for row in range(2):
        own = int(problem.observed[row].argmax())
        others = problem.observed[row].clone()
        others[own] = 0
        shares = others / others.sum()
        moved_output = problem.observed[row] + 0.02 * shares
        moved_output[own] -= 0.02
        odds = (shares * (moved_output / moved_output[own]).log()).sum()
        assert Lines.around(problem).borders[row, -1, 1].item() == pytest.approx(odds.item(), abs=1e-9)


def test_the_upper_bound_falls_with_epsilon_and_never_exceeds_that_without_a_limit() -> None:
    bounds = torch.stack([relaxed(problem_of([6, 20, 90], 6, epsilon)) for epsilon in (0.0, 0.01, 0.1, 1.0)])
    assert (bounds.diff(dim=0) >= -1e-12).all()
    assert torch.allclose(bounds[-1], problem_of([6, 20, 90], 6).ceiling)
    assert (bounds[0] < bounds[-1] - 1e-3).all()


def test_a_tilted_attention_has_the_observed_output_and_is_the_aim_times_an_exponential() -> None:
    problem = problem_of([15, 25], 4, epsilon=0.02)
    aim = random_attentions(problem, 5, 0.5)
    aim[:, 0, 3] = 0
    found = tilted(problem, aim)
    assert (problem.tvd(found) <= 0.01).all()
    assert torch.allclose(found.sum(-1), torch.ones(2, 5, dtype=torch.float64))
    settled = problem.tvd(found) < 1e-6  # what has not settled is mixed with the observed attention
    assert settled.sum() >= 5
    for example, walk in settled.nonzero().tolist():
        used = (aim[example, walk] > 0).numpy()
        tilt = (found[example, walk] / aim[example, walk])[used].log().numpy()
        logits = np.column_stack([problem.values[example][used].numpy(), np.ones(used.sum())])
        fitted = logits @ np.linalg.lstsq(logits, tilt, rcond=None)[0]
        np.testing.assert_allclose(tilt, fitted, atol=1e-8)
        assert ((found[example, walk] > 0).numpy() == used).all()


def test_a_walk_without_tolerance_ends_with_as_many_tokens_as_classes() -> None:
    problem = problem_of([20, 12, 200], 5, epsilon=0.0)
    ends = thinned(problem, 8)
    assert (problem.tvd(ends) < 1e-12).all()
    assert ((ends > 0).sum(-1) <= 5).all()
    assert torch.allclose(ends.sum(-1), torch.ones(3, 8, dtype=torch.float64), rtol=0, atol=1e-12)
    assert (jsd(ends, problem.weights[:, None]) > 0.1).all()


def test_a_walk_that_ends_in_groups_goes_on_among_their_tokens() -> None:
    values, weights, mask = case([120] * 3, 4)
    hardly = weights.argsort(-1)[:, :40]
    values = values.scatter(1, hardly[..., None].expand(-1, -1, 4), 3.0)  # of no use for the output
    values[..., 0].scatter_(1, hardly, -3.0)
    ends = thinned(Problem.of(values, weights, mask, 0.0), 8)
    assert ((ends > 0).sum(-1) <= 4).all()
    assert (ends.gather(-1, hardly[:, None].expand(-1, 8, -1)).sum(-1) < 1).all()


@pytest.mark.parametrize("classes", [4, 12])
def test_walks_stay_within_epsilon_and_only_go_further(classes: int) -> None:
    problem = problem_of([30, 18], classes, epsilon=0.03)
    start = tilted(problem, random_attentions(problem, 6))
    ends = Walk.start(problem, start).end(torch.zeros_like(start))
    assert (problem.tvd(ends) <= 0.03).all()
    assert (problem.tvd(ends) > 0.015).sum() >= 8  # what is allowed is used
    observed = problem.weights[:, None]
    assert (jsd(ends, observed) >= jsd(start, observed) - 1e-12).all()
    assert ((ends > 0).sum(-1) <= classes).all()


def test_groups_keep_the_output_and_the_distance_of_their_tokens() -> None:
    problem = problem_of([100, 40], 4)
    groups = Groups.of(problem, problem.weights, problem.mask)
    assert groups.problem.values.shape == (2, 64, 4)
    assert (groups.member[1].amax(-1)[groups.problem.mask[1]] == 1).all()  # 40 tokens need no groups
    mass = random_attentions(groups.problem, 6)
    spread = mass @ groups.member
    assert torch.allclose(mass @ groups.problem.values, spread @ problem.values)
    apart = jsd(mass, groups.problem.weights[:, None])
    assert torch.allclose(apart, jsd(spread, problem.weights[:, None]))
    other = Groups.of(problem, spread[:, 0], problem.mask)  # in proportions that are not the observed ones
    assert torch.allclose(other.mass[:, None] @ other.member, spread[:, :1])
    assert (jsd(other.mass, other.problem.weights) <= jsd(spread[:, 0], problem.weights) + 1e-12).all()


def test_sliding_only_goes_further_with_the_same_tokens() -> None:
    problem = problem_of([25, 12], 6, epsilon=0.02)
    start = thinned(problem, 8)
    found = slide(problem, start)
    assert (problem.tvd(found) <= 0.02 + 1e-12).all()
    observed = problem.weights[:, None]
    gain = jsd(found, observed) - jsd(start, observed)
    assert (gain >= 0).all()
    assert (gain > 1e-3).sum() >= 8
    assert ((found > 0) <= (start > 0)).all()


def test_sliding_on_two_tokens_ends_at_the_border() -> None:
    problem = problem_of([2] * 6, 5, epsilon=0.02)
    start = problem.weights[:, None] + torch.tensor([0.001, -0.001])
    found = slide(problem, start)
    ends = Path(problem.values[:, 1], problem.values[:, 0] - problem.values[:, 1], problem.observed).ends(
        torch.tensor([[0.0, 1.0]], dtype=torch.float64).expand(6, -1), 0.02
    )
    np.testing.assert_allclose(found[:, 0, 0], ends[:, 1], atol=1e-5)
