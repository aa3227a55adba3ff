"""Distribution matching: moments that are true ones, and a gradient that reaches the selector."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from assay.errors import AssayError
from assay.rationales.game import Play
from assay.rationales.learning import Options
from assay.rationales.losses import Distillation, Moments, discrepancy
from assay.rationales.recipes import dmr
from tests import builders
from tests.rationales.small_players import players

READERS = ("predictor", "selector", "teacher")


def drawn(seed: int, count: int = 50) -> torch.Tensor:
    return torch.randn(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).tanh()


def test_the_same_set_in_another_order_has_no_discrepancy() -> None:
    first = drawn(0)
    assert float(discrepancy(first, first.flip(0))) == pytest.approx(0, abs=1e-15)
    assert float(discrepancy(first, torch.cat([first, first]))) == pytest.approx(0, abs=1e-15)


def test_equal_means_with_other_variances_are_told_apart() -> None:
    first = drawn(0)
    mean = first.mean(0)
    assert float(discrepancy(first, mean + 0.5 * (first - mean), highest=1)) == pytest.approx(0, abs=1e-15)
    assert float(discrepancy(first, mean + 0.5 * (first - mean), highest=2)) > 0.05


def test_it_is_the_sum_over_moments() -> None:
    first, second = drawn(0), drawn(1, 30) * 0.5 + 0.2
    x, y = first.numpy(), second.numpy()
    expected = np.linalg.norm(x.mean(0) - y.mean(0)) / 3.0
    for k in (2, 3, 4):
        moments = [((each - each.mean(0)) ** k).mean(0) for each in (x, y)]
        expected += np.linalg.norm(moments[0] - moments[1]) / 3.0**k
    assert float(discrepancy(first, second, 4, 3.0)) == pytest.approx(expected, rel=1e-12)


def test_two_points_have_the_discrepancy_that_can_be_worked_out_by_hand() -> None:
    wide = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)  # moments 0, 1, 0, 1, 0
    narrow = torch.tensor([[-0.5], [0.5]], dtype=torch.float64)  # moments 0, 1/4, 0, 1/16, 0
    assert float(discrepancy(wide, narrow)) == pytest.approx(0.75 / 4 + 0.9375 / 16, rel=1e-12)


def test_its_gradient_is_that_of_finite_differences() -> None:
    second = drawn(1, 6)
    assert torch.autograd.gradcheck(lambda first: discrepancy(first, second), drawn(0, 5).requires_grad_())


def test_the_gradient_reaches_the_selector_and_not_the_teacher() -> None:
    rules, batch = dmr(Options(rate=0.3)).rules, builders.batch()
    cast = players(rules, READERS)
    Moments()(Play(cast, batch, rules)).mean().backward()
    assert float(cast.head.score.weight.grad.abs().sum()) > 0
    assert float(cast.predictor.encoder.ahead.weight_ih_l0.grad.abs().sum()) > 0
    assert all(each.grad is None for each in cast.reader("teacher").parameters())


def test_soft_labels_are_those_of_the_teacher() -> None:
    rules, batch = dmr(Options(rate=0.3)).rules, builders.batch()
    cast = players(rules, READERS)
    play = Play(cast, batch, rules)
    teacher = cast.reader("teacher")(play.x, batch).logits / 2
    answer = play.read("predictor", "selected").logits / 2
    expected = F.cross_entropy(answer, teacher.softmax(-1), reduction="none")
    torch.testing.assert_close(Distillation(2.0)(play), expected)


def test_no_moments_at_all_are_refused() -> None:
    with pytest.raises(AssayError, match="from the first on"):
        Moments(highest=0)
