"""The adversary for any number of classes against dense grids, plain loops, the paper's search and exact answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.intervene.adversary import Search, furthest
from assay.models.network import BARRED
from tests.intervene.problems import Case, bounded, bracket, case, check_answer, distance, exact, grid_optimum, moved


def pairs_optimum(problem: Case, epsilon: float, parts: int = 1000) -> Tensor:
    """The largest JSD among all tokens alone and all pairs in steps of 1/parts that are within epsilon; else 0."""
    values, weights, mask = problem
    share = torch.linspace(0, 1, parts + 1, dtype=torch.float64)
    best = torch.zeros(len(mask), dtype=torch.float64)
    for row, length in enumerate(mask.sum(-1).tolist()):
        for i in range(length):
            for j in range(i):
                mixtures = torch.zeros(parts + 1, mask.shape[1], dtype=torch.float64)
                mixtures[:, i], mixtures[:, j] = share, 1 - share
                within = moved(values[row : row + 1], weights[row : row + 1], mixtures[None])[0] <= epsilon
                apart = distance(mixtures, weights[row].expand_as(mixtures))
                best[row] = max(best[row].item(), np.where(within, apart, 0.0).max())
    return best


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("classes", [4, 5])
@pytest.mark.parametrize(("tokens", "parts"), [(3, 200), (4, 50), (5, 24)])
def test_the_best_point_of_a_dense_grid_lies_between_the_bounds(
    tokens: int, parts: int, classes: int, epsilon: float
) -> None:
    problem = case([tokens] * 6, classes, scale=1.5, seed=tokens)
    found = bounded(*problem, epsilon)
    check_answer(found, problem, epsilon)
    best = grid_optimum(*problem[:2], epsilon, parts)
    assert (best <= found.upper + 1e-9).all()
    assert (best <= found.jsd[:, 0] + 5e-3).all()


@pytest.mark.parametrize(("classes", "certain"), [(4, 0.0), (5, 3.0), (6, 6.0)])
def test_no_token_and_no_pair_of_a_plain_loop_is_further(classes: int, certain: float) -> None:
    problem = case([7, 5, 9, 2], classes, seed=classes)
    problem[0][..., 0] += certain
    some = torch.zeros(4, dtype=torch.bool)
    for epsilon in (0.02, 0.1):
        found, best = bounded(*problem, epsilon), pairs_optimum(problem, epsilon)
        check_answer(found, problem, epsilon)
        assert (best <= found.jsd[:, 0] + 1e-9).all()
        some |= best > 0.1
    assert some.sum() >= 3  # there are such pairs


@pytest.mark.parametrize("classes", [4, 5, 10])
def test_it_is_at_least_the_papers_search_on_texts_with_more_tokens_than_classes(classes: int) -> None:
    problem = case(list(range(classes + 1, 31)), classes)
    found, reached = bounded(*problem), Search()(*problem)
    assert (reached.jsd[:, 0] <= found.jsd[:, 0] + 1e-9).all()
    assert (found.jsd[:, 0] - reached.jsd[:, 0]).mean() > 0.1
    # the search knows no upper bound but that of attention without any limit on the output
    assert (found.upper <= reached.upper + 1e-12).all()
    assert (found.upper < reached.upper - 1e-3).sum() > 10


def test_for_two_classes_the_exact_answer_is_the_upper_bound_and_nearly_always_found() -> None:
    problem = case(list(range(2, 40)), 2)
    for epsilon in (0.01, 0.1):
        found, known = bounded(*problem, epsilon), exact(*problem, epsilon)
        check_answer(found, problem, epsilon)
        np.testing.assert_allclose(found.upper, known.jsd[:, 0], atol=1e-9)
        assert (known.jsd[:, 0] - found.jsd[:, 0] < 1e-8).sum() >= 36


def test_for_three_classes_the_bracket_lies_between_the_bounds() -> None:
    problem = case([*range(2, 21), 64], 3)
    for epsilon in (0.01, 0.1):
        found, known = bounded(*problem, epsilon), bracket(*problem, epsilon)
        check_answer(found, problem, epsilon)
        assert (found.jsd[:, 0] <= known.upper + 1e-9).all()
        assert (known.jsd[:, 0] <= found.upper + 1e-9).all()
        assert (known.upper - found.jsd[:, 0]).median() < 1e-3


@pytest.mark.parametrize("certain", [0.0, 4.0, 9.0])
@pytest.mark.parametrize("classes", [10, 20])
def test_many_classes_give_a_sound_answer_in_short_and_long_texts(classes: int, certain: float) -> None:
    problem = case([3, 21, 90, 1, 150], classes)
    problem[0][..., 0] += certain
    found = bounded(*problem)
    check_answer(found, problem, 0.01)
    assert (found.jsd[[1, 2, 4], 0] > (0.05 if classes < 20 or certain else 0.01)).all()
    assert found.kind == "lower bound"


@pytest.mark.parametrize("classes", [4, 10])
def test_without_any_tolerance_the_output_stays(classes: int) -> None:
    problem = case([classes + 3, 30, 80], classes)
    found = bounded(*problem, 0.0)
    check_answer(found, problem, 0.0)
    assert (found.jsd[:, 0] > 0.05).all()
    assert ((found.weights[:, 0] > 0).sum(-1) <= classes).all()
    assert (found.upper >= bounded(*problem, 0.0, 1).jsd[:, 0]).all()


def test_an_answer_that_meets_its_upper_bound_is_the_optimum() -> None:
    values, weights, mask = case([6, 30, 80], 7)
    values[..., 0] += 14.0  # every token alone gives nearly the same output
    found = bounded(values, weights, mask)
    least = weights.where(mask, 2.0).argmin(-1)
    assert torch.equal(found.weights[:, 0].argmax(-1), least)
    np.testing.assert_allclose(found.upper, found.jsd[:, 0], atol=1e-9)


def test_barred_classes_change_neither_bound() -> None:
    values, weights, mask = case([4, 9, 20, 70], 3)
    barred = pad(values, (0, 4)) + BARRED * (torch.arange(7) >= 3)
    for epsilon in (0.0, 0.01, 0.3):
        found, live, known = (
            bounded(barred, weights, mask, epsilon),
            bounded(values, weights, mask, epsilon),
            bracket(values, weights, mask, epsilon),
        )
        check_answer(found, (barred, weights, mask), epsilon)
        np.testing.assert_allclose(found.upper, live.upper, atol=1e-9)
        assert (found.jsd[:, 0] <= known.upper + 1e-9).all()
        if epsilon > 0:
            assert (found.jsd[:, 0] > known.jsd[:, 0] - 0.05).all()


def test_each_text_may_have_classes_of_its_own() -> None:
    values, weights, mask = case([12, 25, 20], 30)
    candidates = torch.zeros(3, 1, 30, dtype=torch.bool)
    for row, classes in enumerate(([3, 7, 8, 20], [0, 1, 2, 3, 4, 5, 6, 29], [11])):
        candidates[row, 0, classes] = True
    values = values + BARRED * ~candidates
    found = bounded(values, weights, mask)
    check_answer(found, (values, weights, mask), 0.01)
    assert torch.equal(found.weights[2, 0].argmax(-1), weights[2, :20].argmin())  # one class: attention is free
    for row in range(2):
        alone = bounded(*(tensor[row : row + 1] for tensor in (values, weights, mask)))
        np.testing.assert_allclose(alone.jsd[0], found.jsd[row], atol=1e-9)
        np.testing.assert_allclose(alone.upper[0], found.upper[row], atol=1e-9)


@pytest.mark.parametrize("lengths", [[5, 9, 12], [5, 90, 40]])
def test_neither_padding_nor_a_long_neighbour_changes_anything(lengths: list[int]) -> None:
    values, weights, mask = case(lengths, 5)
    found = bounded(values, weights, mask)
    for row, length in enumerate(lengths):
        alone = bounded(*(tensor[row : row + 1, :length] for tensor in (values, weights, mask)))
        np.testing.assert_allclose(alone.weights[0], found.weights[row, :, :length], atol=1e-7)
        np.testing.assert_allclose(alone.jsd[0], found.jsd[row], atol=1e-9)
        np.testing.assert_allclose(alone.upper[0], found.upper[row], atol=1e-9)


@pytest.mark.parametrize("tokens", [20, 80])
def test_attention_that_leaves_tokens_out_is_answered_with_these_tokens(tokens: int) -> None:
    values, weights, mask = case([tokens] * 4, 4)
    weights = weights.where(weights > weights.median(-1, keepdim=True).values, 0.0)
    weights = weights / weights.sum(-1, keepdim=True)
    found = bounded(values, weights, mask, 0.05)
    check_answer(found, (values, weights, mask), 0.05)
    assert (found.weights[:, 0].where(weights == 0, 0.0).sum(-1) > 0.5).all()


def test_furthest_asks_it_for_more_than_three_classes() -> None:
    problem = case([5, 8], 4)
    assert torch.equal(furthest(*problem, 0.05, 2).weights, bounded(*problem, 0.05, 2).weights)
    with torch.inference_mode():
        again = bounded(*(tensor.clone() for tensor in problem), 0.05, 2)
    assert torch.equal(again.weights, bounded(*problem, 0.05, 2).weights)
    quick = Search(steps=60, learning_rate=0.1)(*problem, 0.05)
    assert (quick.jsd[:, 0] <= furthest(*problem, 0.05).jsd[:, 0]).all()
