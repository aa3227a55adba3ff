"""Adversaries against brute force: dense grids over the simplex, all pairs in a plain loop, and the paper's search."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn.functional import pad

from assay.errors import AssayError
from assay.intervene.adversary import Adversaries, Search, furthest, jsd
from tests.intervene.problems import bounded, bracket, case, check_answer, distance, exact, grid_optimum, outputs

SOLVERS = [
    pytest.param(exact, 2, id="exact"),
    pytest.param(bracket, 3, id="bracket"),
    pytest.param(bounded, 4, id="many"),
]
quick = Search(steps=60, learning_rate=0.1)


def test_jsd_equals_scipys_with_zeros_in_either_place() -> None:
    p = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.2, 0.3, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    q = torch.tensor([[0.0, 0.5, 0.5, 0.0], [0.2, 0.3, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    np.testing.assert_allclose(jsd(p, q), distance(p, q), atol=1e-15)
    assert jsd(p, q)[2] == pytest.approx(math.log(2))


def test_jsd_has_the_gradient_of_finite_differences_and_a_finite_one_at_zeros() -> None:
    p, q = (row.requires_grad_() for row in torch.rand(2, 3, 5, dtype=torch.float64).add(0.1).softmax(-1))
    assert torch.autograd.gradcheck(jsd, (p, q))
    corner, middle = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]], dtype=torch.float64)
    (gradient,) = torch.autograd.grad(jsd(corner.requires_grad_(), middle), corner)
    assert gradient.isfinite().all()
    assert gradient[2].item() == pytest.approx(math.log(2) / 2)


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.2])
@pytest.mark.parametrize(("tokens", "parts", "near"), [(2, 5000, 0.002), (3, 300, 0.02), (4, 70, 0.08)])
def test_exact_equals_the_best_point_of_a_dense_grid(tokens: int, parts: int, near: float, epsilon: float) -> None:
    problem = case([tokens] * 12, 2, scale=1.5, seed=tokens)
    found = exact(*problem, epsilon)
    check_answer(found, problem, epsilon)
    best = grid_optimum(*problem[:2], epsilon, parts)
    assert (best <= found.jsd[:, 0] + 1e-9).all()
    assert torch.equal(found.upper, found.jsd[:, 0])
    if epsilon >= 0.05:
        assert (best >= found.jsd[:, 0] - near).all()


def pairs_optimum(odds: np.ndarray, observed: np.ndarray, epsilon: float) -> float:
    """The largest JSD among single tokens within epsilon and pairs that land on its border."""
    output = 1 / (1 + math.exp(-observed @ odds))
    mixtures = [np.eye(len(odds))[np.abs(1 / (1 + np.exp(-odds)) - output) <= epsilon]]
    for border in (output - epsilon, output + epsilon):
        target = math.log(border / (1 - border))
        for i in np.flatnonzero(odds < target):
            j = np.flatnonzero(odds > target)
            pairs = np.zeros((len(j), len(odds)))
            pairs[np.arange(len(j)), j] = (target - odds[i]) / (odds[j] - odds[i])
            pairs[:, i] = 1 - pairs.sum(-1)
            mixtures.append(pairs)
    found = torch.from_numpy(np.concatenate(mixtures))
    return float(distance(found, torch.from_numpy(observed).expand_as(found)).max())


def test_exact_equals_a_plain_loop_over_pairs_in_long_texts() -> None:
    lengths = [180, 70, 33]
    values, weights, mask = case(lengths, 2, seed=3)
    found = exact(values, weights, mask, 0.02)
    check_answer(found, (values, weights, mask), 0.02)
    for row, length in enumerate(lengths):
        odds = (values[row, :length, 1] - values[row, :length, 0]).numpy()
        best = pairs_optimum(odds, weights[row, :length].numpy(), 0.02)
        assert found.jsd[row, 0].item() == pytest.approx(best, abs=1e-10)


def test_exact_looks_beyond_the_least_attended_tokens_of_a_long_text() -> None:
    # 40 little-attended tokens need much of a well-attended one to balance them; the next 39 need little of it
    odds = torch.cat([torch.full((40,), 8.0), torch.linspace(0.3, 0.6, 39), torch.full((5,), -3.0)]).double()
    weights = torch.tensor([0.1 / 40] * 40 + [0.6 / 39] * 39 + [0.06] * 5, dtype=torch.float64)[None]
    values = torch.stack([torch.zeros_like(odds), odds], -1)[None]
    found = exact(values, weights, torch.ones(1, 84, dtype=torch.bool))
    first, second = found.weights[0, 0].nonzero().flatten().tolist()
    assert first == 40
    assert second >= 79
    assert found.jsd[0, 0].item() == pytest.approx(pairs_optimum(odds.numpy(), weights[0].numpy(), 0.01), abs=1e-10)


@pytest.mark.parametrize("epsilon", [0.01, 0.05])
def test_exact_is_at_least_any_search_on_every_example(epsilon: float) -> None:
    problem = case(list(range(1, 26)), 2)
    found = exact(*problem, epsilon)
    check_answer(found, problem, epsilon)
    reached = quick(*problem, epsilon).jsd[:, 0]
    assert (reached <= found.jsd[:, 0] + 1e-9).all()
    assert (reached > 0.05).sum() > 12  # the search does find something to be compared with


@pytest.mark.parametrize("scale", [1.0, 4.0, 12.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.2])
@pytest.mark.parametrize(("tokens", "parts"), [(3, 200), (4, 50), (5, 24)])
def test_the_bracket_holds_the_best_point_of_a_dense_grid(
    tokens: int, parts: int, epsilon: float, scale: float
) -> None:
    problem = case([tokens] * 6, 3, scale, seed=tokens)
    found = bracket(*problem, epsilon)
    check_answer(found, problem, epsilon)
    best = grid_optimum(*problem[:2], epsilon, parts)
    assert (best <= found.upper + 1e-9).all()
    assert (best <= found.jsd[:, 0] + 1e-3).all()
    assert (found.upper - found.jsd[:, 0]).mean() < 2e-3


def test_the_bracket_is_tight_where_the_paper_uses_it() -> None:
    problem = case(list(range(1, 21)), 3)
    found = bracket(*problem, 0.01)
    check_answer(found, problem, 0.01)
    assert (found.upper - found.jsd[:, 0] < 1e-4).all()
    assert (quick(*problem, 0.01).jsd[:, 0] <= found.jsd[:, 0] + 1e-4).all()


def test_a_bracket_of_two_live_classes_is_the_exact_answer() -> None:
    values, weights, mask = case([9, 6, 12], 2)
    third = pad(values, (0, 1), value=-60.0)
    ours, reference = bracket(third, weights, mask, 0.03), exact(values, weights, mask, 0.03)
    np.testing.assert_allclose(ours.jsd[:, 0], reference.jsd[:, 0], atol=1e-7)
    np.testing.assert_allclose(ours.upper, reference.jsd[:, 0], atol=1e-7)


def test_a_text_too_long_to_enumerate_is_still_bracketed() -> None:
    problem = case([90, 64, 30], 3)
    found = bracket(*problem)
    check_answer(found, problem, 0.01)
    values, weights, _ = problem
    alone = distance(torch.eye(90, dtype=torch.float64), weights[:1].expand(90, -1))
    assert found.upper[0] < alone.max() - 1e-4
    assert found.upper[0] - found.jsd[0, 0] < 0.02
    for row, length in ((1, 64), (2, 30)):
        short = bracket(
            values[row : row + 1, :length], weights[row : row + 1, :length], problem[2][row : row + 1, :length]
        )
        np.testing.assert_allclose(found.upper[row : row + 1], short.upper, atol=1e-12)


@pytest.mark.parametrize(("solver", "classes"), SOLVERS)
def test_an_output_near_certainty_has_no_limit_on_one_side(solver: Callable[..., Adversaries], classes: int) -> None:
    values, weights, mask = case([4] * 8, classes)
    values[..., 0] += 7.0
    assert (outputs(values, weights[:, None])[:, 0, 0] > 0.99).any()
    found = solver(values, weights, mask, 0.01)
    check_answer(found, (values, weights, mask), 0.01)
    best = grid_optimum(values, weights, 0.01, 60)
    assert (best <= found.upper + 1e-9).all()
    assert (best <= found.jsd[:, 0] + 1e-3).all()


@pytest.mark.parametrize(("solver", "classes"), SOLVERS)
def test_equal_tokens_leave_attention_free(solver: Callable[..., Adversaries], classes: int) -> None:
    values, weights, mask = case([6, 4, 2], classes)
    values = values[:, :1].expand_as(values)
    for epsilon in (0.0, 0.01):
        found = solver(values, weights, mask, epsilon)
        check_answer(found, (values, weights, mask), epsilon)
        least = weights.where(mask, 2.0).argmin(-1)
        assert torch.equal(found.weights[:, 0].argmax(-1), least)
        assert (found.weights[:, 0].amax(-1) == 1).all()
        np.testing.assert_allclose(found.upper, found.jsd[:, 0], atol=1e-9)


@pytest.mark.parametrize(("solver", "classes"), SOLVERS)
def test_without_any_tolerance_the_output_stays(solver: Callable[..., Adversaries], classes: int) -> None:
    problem = case([5, 9, 14], classes)
    found = solver(*problem, 0.0)
    check_answer(found, problem, 0.0)
    assert (found.jsd[:, 0] > 0.05).all()
    assert ((found.weights[:, 0] > 0).sum(-1) <= classes).all()


@pytest.mark.parametrize(("solver", "classes"), SOLVERS)
def test_with_full_tolerance_the_least_attended_token_takes_all(
    solver: Callable[..., Adversaries], classes: int
) -> None:
    problem = case([5, 9, 14], classes)
    found = solver(*problem, 1.0)
    assert torch.equal(found.weights[:, 0].argmax(-1), problem[1].where(problem[2], 2.0).argmin(-1))
    np.testing.assert_allclose(found.upper, found.jsd[:, 0], atol=1e-12)


@pytest.mark.parametrize(("solver", "classes"), SOLVERS)
def test_repeated_tokens_and_zero_weights_do_no_harm(solver: Callable[..., Adversaries], classes: int) -> None:
    values, weights, mask = case([4, 4, 4, 4], classes)
    values[:, 1] = values[:, 0]
    weights[:, 1] = weights[:, 0]
    weights[2:, 2] = 0.0
    weights = weights / weights.sum(-1, keepdim=True)
    found = solver(values, weights, mask, 0.05)
    check_answer(found, (values, weights, mask), 0.05)
    best = grid_optimum(values, weights, 0.05, 60)
    assert (best <= found.jsd[:, 0] + 1e-3).all()
    assert (best <= found.upper + 1e-9).all()


@pytest.mark.parametrize(("solver", "classes"), [*SOLVERS, pytest.param(quick, 4, id="search")])
def test_padding_and_batch_order_change_nothing(solver: Callable[..., Adversaries], classes: int) -> None:
    values, weights, mask = case([5, 9, 3, 12], classes)
    found = solver(values, weights, mask)
    order = torch.tensor([2, 0, 3, 1])
    garbage = pad(values, (0, 0, 0, 4), value=1e6)
    again = solver(garbage[order], pad(weights, (0, 4))[order], pad(mask, (0, 4))[order])
    np.testing.assert_allclose(again.weights, pad(found.weights, (0, 4))[order], atol=1e-9)
    np.testing.assert_allclose(again.jsd, found.jsd[order], atol=1e-9)
    np.testing.assert_allclose(again.upper, found.upper[order], atol=1e-9)
    alone = solver(values[2:3, :3], weights[2:3, :3], mask[2:3, :3])
    np.testing.assert_allclose(alone.weights[0], found.weights[2, :, :3], atol=1e-9)


@pytest.mark.parametrize(("solver", "classes"), [*SOLVERS, pytest.param(quick, 4, id="search")])
def test_one_token_leaves_no_choice_and_no_token_gives_zeros(solver: Callable[..., Adversaries], classes: int) -> None:
    values, weights, mask = case([3, 1, 2], classes)
    mask[2] = False
    found = solver(values, weights, mask)
    for numbers in (found.jsd, found.tvd, found.upper):
        assert numbers[1:].abs().max() < 1e-12
    assert torch.equal(found.weights[1], weights[1].expand(5, -1))
    assert (found.weights[2] == 0).all()
    single = solver(values[:1, :1], weights[:1, :1].div(weights[:1, :1]), mask[:1, :1])
    assert torch.equal(single.weights, torch.ones(1, 5, 1, dtype=torch.float64))


@pytest.mark.parametrize(("solver", "classes"), SOLVERS)
def test_the_adversaries_differ_from_each_other(solver: Callable[..., Adversaries], classes: int) -> None:
    problem = case([14, 12, 10], classes)
    found = solver(*problem, 0.05, 4)
    check_answer(found, problem, 0.05)
    assert found.weights.shape == (3, 4, 14)
    first, second = torch.triu_indices(4, 4, 1)
    assert (jsd(found.weights[:, first], found.weights[:, second]).mean(-1) > 0.3).all()
    np.testing.assert_allclose(found.jsd[:, :1], solver(*problem, 0.05, 1).jsd, atol=1e-12)


def test_slots_without_a_further_candidate_hold_the_observed_attention() -> None:
    values = torch.tensor([[[0.0, -1.0], [0.0, 1.0]]], dtype=torch.float64)
    weights = torch.tensor([[0.3, 0.7]], dtype=torch.float64)
    found = exact(values, weights, torch.ones(1, 2, dtype=torch.bool), 0.01)
    assert (found.jsd[0, :2] > 0).all()  # the two ends of the allowed interval
    assert torch.equal(found.weights[0, 2:], weights.expand(3, -1))
    assert (found.jsd[0, 2:] == 0).all()


@pytest.mark.parametrize("number", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("solver", "classes"), [*SOLVERS, pytest.param(quick, 4, id="search")])
def test_lower_precision_is_raised_before_anything_is_computed(
    solver: Callable[..., Adversaries], classes: int, number: torch.dtype
) -> None:
    values, weights, mask = case([5, 9], classes)
    values, weights = values.to(number), weights.to(number)
    raised = weights.double() / weights.double().sum(-1, keepdim=True)
    found = solver(values, weights, mask)
    assert found.weights.dtype == torch.float64
    check_answer(found, (values.double(), raised, mask), 0.01)


def test_search_keeps_what_it_found_and_repeats_itself() -> None:
    problem = case([6, 11, 17], 4)
    short, long = (
        Search(steps=30, learning_rate=0.1)(*problem, 0.05),
        Search(steps=80, learning_rate=0.1)(*problem, 0.05),
    )
    check_answer(long, problem, 0.05)
    assert (long.jsd[:, 0] >= short.jsd[:, 0]).all()
    assert (long.jsd[:, 0] > 0.1).all()
    assert torch.equal(long.weights, Search(steps=80, learning_rate=0.1)(*problem, 0.05).weights)
    assert not torch.equal(long.weights, Search(steps=80, learning_rate=0.1, seed=1)(*problem, 0.05).weights)


def test_search_works_where_gradients_are_switched_off() -> None:
    problem = case([6, 11], 4)
    expected = quick(*problem)
    with torch.no_grad():
        assert torch.equal(quick(*problem).weights, expected.weights)
    with torch.inference_mode():
        assert torch.equal(quick(*(tensor.clone() for tensor in problem)).weights, expected.weights)


def test_furthest_chooses_by_the_number_of_classes() -> None:
    kinds = {classes: furthest(*case([5], classes), 0.05, 2).kind for classes in (2, 3, 4)}
    assert kinds == {2: "exact", 3: "bracket", 4: "lower bound"}
    assert Search() == Search(steps=500, learning_rate=0.01, penalty=500.0, seed=0)


def test_questions_without_an_answer_are_refused_in_one_sentence() -> None:
    with pytest.raises(AssayError, match="two classes"):
        exact(*case([3], 3))
    with pytest.raises(AssayError, match="three classes"):
        bracket(*case([3], 2))
    with pytest.raises(AssayError, match="at least two classes"):
        furthest(*case([3], 1))
    with pytest.raises(AssayError, match="epsilon"):
        exact(*case([3], 2), epsilon=-0.1)


@pytest.mark.gpu
@pytest.mark.parametrize(("solver", "classes"), [*SOLVERS, pytest.param(quick, 4, id="search")])
def test_the_gpu_gives_the_same_answer(solver: Callable[..., Adversaries], classes: int) -> None:
    problem = case([5, 9, 30], classes)
    there, here = solver(*(tensor.cuda() for tensor in problem)), solver(*problem)
    np.testing.assert_allclose(there.jsd.cpu(), here.jsd, atol=1e-9)
    np.testing.assert_allclose(there.upper.cpu(), here.upper, atol=1e-9)
