"""The ball of outputs within epsilon, and the hull around it, against what softmax itself says."""

from __future__ import annotations

import pytest
import torch
from scipy.spatial import ConvexHull
from torch import Tensor

from assay.intervene.adversary_bracket import Ball, Hull

OBSERVED = torch.tensor(
    [[0.3, 0.3, 0.4], [0.9, 0.06, 0.04], [0.02, 0.5, 0.48], [0.011, 0.012, 0.977]], dtype=torch.float64
)
CERTAIN = torch.tensor([[0.98, 0.015, 0.005], [0.999, 0.0009, 0.0001], [0.5, 0.5 - 1e-9, 1e-9]], dtype=torch.float64)


def change(logits: Tensor, observed: Tensor) -> Tensor:
    return 0.5 * (logits.softmax(-1) - observed[:, None]).abs().sum(-1)


def segments(observed: Tensor, number: int, spread: float) -> tuple[Tensor, Tensor]:
    ends = observed.log()[:, None, None] + spread * torch.randn(len(observed), 2, number, 3, dtype=torch.float64)
    return ends[:, 0], ends[:, 1]


@pytest.mark.parametrize("epsilon", [0.001, 0.01])
def test_points_of_the_ball_change_the_output_by_epsilon(epsilon: float) -> None:
    points = Ball.around(OBSERVED, epsilon).points()
    assert (change(points, OBSERVED) - epsilon).abs().max() < 1e-12


def test_sides_that_no_probability_reaches_have_no_points() -> None:
    points = Ball.around(CERTAIN, 0.01).points().isfinite().all(-1).reshape(3, 3, -1)
    assert torch.equal(points.all(-1), CERTAIN > 0.01)
    assert torch.equal(points.any(-1), CERTAIN > 0.01)


@pytest.mark.parametrize("observed", [OBSERVED, CERTAIN])
def test_the_ball_holds_what_is_within_epsilon_and_the_hull_holds_the_ball(observed: Tensor) -> None:
    logits = observed.log()[:, None] + 0.05 * torch.randn(len(observed), 4000, 3, dtype=torch.float64)
    ball = Ball.around(observed, 0.01)
    inside = ball.holds(logits[:, :, None])[..., 0]
    assert torch.equal(inside, change(logits, observed) <= 0.01)
    assert Hull(ball).holds(logits[:, :, None])[..., 0][inside].all()


@pytest.mark.parametrize("epsilon", [0.002, 0.01])
def test_the_corners_of_the_hull_enclose_the_ball(epsilon: float) -> None:
    hull = Hull(Ball.around(OBSERVED, epsilon)).points()
    place = torch.linspace(0, 1, 201, dtype=torch.float64)[:, None]
    for row, observed in enumerate(OBSERVED):
        corners = hull[row, :, :2] - hull[row, :, 2:]
        sides = ConvexHull(corners.numpy()).equations
        for a in range(3):
            ends = observed.repeat(2, 1)
            ends[:, a] -= epsilon
            ends[0, a - 1] += epsilon
            ends[1, a - 2] += epsilon
            side = (ends[0] + place * (ends[1] - ends[0])).log()
            beyond = (side[:, :2] - side[:, 2:]).numpy() @ sides[:, :2].T + sides[:, 2]
            assert beyond.max() < 1e-9


@pytest.mark.parametrize("observed", [OBSERVED, CERTAIN])
def test_crossings_are_where_a_walk_enters_or_leaves(observed: Tensor) -> None:
    start, end = segments(observed, 40, 0.5)
    walk = torch.linspace(0, 1, 20001, dtype=torch.float64)
    share = Ball.around(observed, 0.01).crossings(start, end)
    for row in range(len(observed)):
        for segment in range(40):
            there = start[row, segment] + walk[:, None] * (end - start)[row, segment]
            inside = change(there[None], observed[row : row + 1])[0] <= 0.01
            border = walk[1:][inside[1:] != inside[:-1]]
            assert ((share[row, segment] - border[:, None]).abs().nan_to_num(9.0).amin(-1) < 1e-4).all()
