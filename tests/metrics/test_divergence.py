from __future__ import annotations

import math

import numpy as np
import torch
from scipy import stats
from scipy.spatial.distance import jensenshannon

from assay.metrics.information import MAX_JSD, jsd, tvd


def distributions(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    generator = np.random.default_rng(seed)
    raw: np.ndarray = generator.random(shape) * (generator.random(shape) < 0.7)
    raw[..., 0] += 0.1
    raw /= raw.sum(-1, keepdims=True)
    return raw


def test_tvd_is_the_largest_difference_in_the_chance_of_any_event() -> None:
    p, q = distributions(0, (20, 6)), distributions(1, (20, 6))
    events = np.array([[event >> place & 1 for place in range(6)] for event in range(64)])
    np.testing.assert_allclose(tvd(p, q), abs((p - q) @ events.T).max(-1), atol=1e-12)


def test_tvd_of_tensors_is_that_of_arrays_and_carries_gradients() -> None:
    p, q = distributions(2, (4, 3, 5)), distributions(3, (4, 3, 5))
    tensor = torch.tensor(p, requires_grad=True)
    distance = tvd(tensor, torch.tensor(q))
    np.testing.assert_allclose(distance.detach().numpy(), tvd(p, q))
    distance.sum().backward()  # type: ignore[no-untyped-call]
    assert tensor.grad is not None
    np.testing.assert_allclose(tensor.grad.numpy(), np.sign(p - q) / 2)


def test_jsd_is_the_square_of_scipys_distance() -> None:
    p, q = distributions(4, (50, 7)), distributions(5, (50, 7))
    np.testing.assert_allclose(jsd(p, q), jensenshannon(p, q, axis=-1) ** 2, atol=1e-12)


def test_jsd_is_the_entropy_of_the_mixture_less_the_mean_entropy() -> None:
    p, q = distributions(6, (3, 8, 5)), distributions(7, (3, 8, 5))
    mixed, one, other = (stats.entropy(each, axis=-1) for each in ((p + q) / 2, p, q))
    np.testing.assert_allclose(jsd(p, q), mixed - (one + other) / 2, atol=1e-12)


def test_jsd_runs_from_zero_to_log_two() -> None:
    p = np.array([[0.5, 0.5, 0, 0], [0.2, 0.3, 0.4, 0.1], [1, 0, 0, 0]])
    q = np.array([[0, 0, 0.3, 0.7], [0.2, 0.3, 0.4, 0.1], [5e-324, 1, 0, 0]])
    np.testing.assert_allclose(jsd(p, q), [MAX_JSD, 0, MAX_JSD], atol=1e-15)
    assert math.log(2) == MAX_JSD


def test_jsd_is_never_negative_by_rounding() -> None:
    p = distributions(8, (2000, 30))
    q = p * (1 + 1e-16 * np.random.default_rng(9).standard_normal(p.shape))
    assert (jsd(p, q) >= 0).all()
    assert (jsd(np.nextafter(p, 1), p) >= 0).all()


def test_jsd_of_single_precision_is_summed_in_double() -> None:
    p, q = distributions(10, (5, 400)).astype(np.float32), distributions(11, (5, 400)).astype(np.float32)
    np.testing.assert_array_equal(jsd(p, q), jsd(p.astype(np.float64), q.astype(np.float64)))


def test_one_distribution_has_one_number() -> None:
    p, q = np.array([0.25, 0.75]), np.array([0.75, 0.25])
    assert tvd(p, q) == 0.5
    assert jsd(p, q).shape == ()
