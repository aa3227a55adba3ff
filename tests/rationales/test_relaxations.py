"""Masks that are drawn: their distributions are what they say, and their gradients are right."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
import torch
from scipy import integrate, optimize, special

from assay.errors import AssayError
from assay.rationales.relaxations import (
    RELAXATIONS,
    Bernoulli,
    CappedSimplex,
    GumbelStraightThrough,
    HardConcrete,
    HardKuma,
    RelaxedBernoulli,
    TopKStraightThrough,
    capped,
)

STRETCHED = (HardKuma(), HardKuma(-0.3, 1.05), HardConcrete(), HardConcrete(0.2, -0.2, 1.0))
SMOOTH = (RelaxedBernoulli(0.7), HardConcrete(), HardKuma())
DRAWS = 40_000


def scores(relaxation, shape=(3, 2, 5), spread=1.5):
    """Random scores and a mask, the second text being shorter."""
    generator = torch.Generator().manual_seed(4)
    theta = torch.randn(*shape, relaxation.parameters, generator=generator, dtype=torch.float64) * spread
    mask = torch.ones(shape[0], shape[2], dtype=torch.bool)
    mask[1:2, 3:] = False
    return theta, mask


def above(relaxation, theta, x):
    """P(z > x) of a stretched mask before it is clipped, in closed form."""
    unstretched = (x - relaxation.low) / (relaxation.high - relaxation.low)
    if isinstance(relaxation, HardKuma):
        a, b = torch.nn.functional.softplus(theta).unbind(-1)
        return (1 - unstretched**a) ** b
    odds = unstretched / (1 - unstretched) if unstretched < 1 else np.inf
    return (theta[..., 0] - relaxation.temperature * np.log(odds)).sigmoid()


def mean(relaxation, theta):
    """E[z], the integral of P(z > x) from 0 to 1, by Gauss–Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    parts = [weight / 2 * above(relaxation, theta, (node + 1) / 2) for node, weight in zip(nodes, weights, strict=True)]
    return torch.stack(parts).sum(0)


def many(relaxation, theta):
    """A draw for each of DRAWS texts with the same scores."""
    units = theta.shape[2]
    return relaxation.draw(theta[:1].expand(DRAWS, -1, -1, -1), torch.ones(DRAWS, units, dtype=torch.bool)).z


@pytest.mark.parametrize("name", RELAXATIONS)
def test_nothing_is_drawn_on_padding_and_padding_changes_nothing(name: str) -> None:
    relaxation = RELAXATIONS[name]()
    theta, mask = scores(relaxation)
    drawn = relaxation.draw(theta, mask)
    assert drawn.z.shape == drawn.chance.shape == theta.shape[:-1]
    assert not drawn.z[1, :, 3:].any() and not drawn.chance[1, :, 3:].any()
    assert ((drawn.z >= 0) & (drawn.z <= 1)).all()
    assert torch.equal(drawn.chance, relaxation.chance(theta, mask))
    changed = theta.clone()
    changed[1, :, 3:] = 50.0
    torch.manual_seed(7)
    first = relaxation.draw(theta, mask)
    torch.manual_seed(7)
    second = relaxation.draw(changed, mask)
    assert torch.equal(first.z, second.z) and torch.equal(first.chance, second.chance)
    if first.log_probability is not None:
        assert torch.equal(first.log_probability, second.log_probability)


@pytest.mark.parametrize("name", RELAXATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_extreme_scores_give_finite_masks_and_gradients(name: str, dtype: torch.dtype) -> None:
    relaxation = RELAXATIONS[name]()
    extremes = torch.tensor([-1e4, -40.0, -1.0, 0.0, 1.0, 40.0, 1e4], dtype=dtype)
    pairs = torch.cartesian_prod(*[extremes] * relaxation.parameters).reshape(1, 1, -1, relaxation.parameters)
    theta = pairs.expand(50, -1, -1, -1).clone().requires_grad_()
    drawn = relaxation.draw(theta, torch.ones(50, theta.shape[2], dtype=torch.bool))
    total = drawn.z.sum() + drawn.chance.sum()
    if drawn.log_probability is not None:
        total = total + drawn.log_probability.sum()
    total.backward()
    assert drawn.z.dtype == drawn.chance.dtype == dtype
    assert torch.isfinite(total) and torch.isfinite(theta.grad).all()


@pytest.mark.parametrize("relaxation", [Bernoulli(), GumbelStraightThrough(0.3), *STRETCHED], ids=repr)
def test_a_mask_is_open_as_often_as_its_chance_says(relaxation) -> None:
    theta, mask = scores(relaxation)
    chance = relaxation.chance(theta, mask)[0]
    error = (chance * (1 - chance) / DRAWS).sqrt()
    assert ((((many(relaxation, theta) > 0).double().mean(0) - chance).abs()) < 4 * error).all()


@pytest.mark.parametrize("relaxation", STRETCHED[:3], ids=repr)
def test_the_ends_of_a_stretched_mask_are_as_likely_as_they_occur(relaxation) -> None:
    theta, mask = scores(relaxation)
    closed, whole = 1 - above(relaxation, theta, 0.0)[0], above(relaxation, theta, 1.0)[0]
    assert (closed + whole <= 1).all() and torch.allclose(relaxation.chance(theta, mask)[0], 1 - closed)
    z = many(relaxation, theta)
    for expected, found in ((closed, z == 0), (whole, z == 1), (1 - closed - whole, (z > 0) & (z < 1))):
        error = (expected * (1 - expected) / DRAWS).sqrt() + 1e-9
        assert ((found.double().mean(0) - expected).abs() < 4 * error).all()


def test_a_mask_that_is_not_stretched_above_1_is_never_whole() -> None:
    theta, mask = scores(STRETCHED[3])
    chance = STRETCHED[3].chance(theta, mask)
    assert not above(STRETCHED[3], theta, 1.0).any() and torch.allclose(
        chance, above(STRETCHED[3], theta, 0.0) * mask[:, None]
    )


def test_a_relaxed_choice_passes_one_half_as_often_as_its_chance_says() -> None:
    theta, mask = scores(RelaxedBernoulli())
    chance = RelaxedBernoulli().chance(theta, mask)[0]
    found = (many(RelaxedBernoulli(), theta) > 0.5).double().mean(0)
    assert ((found - chance).abs() < 4 * (chance * (1 - chance) / DRAWS).sqrt()).all()


@pytest.mark.parametrize("relaxation", [HardKuma(), HardKuma(-0.3, 1.05)], ids=repr)
def test_the_mean_of_a_hard_kumaraswamy_is_that_of_its_draws_and_of_its_density(relaxation) -> None:
    theta, _ = scores(relaxation)
    expected = mean(relaxation, theta)
    z = many(relaxation, theta)
    assert ((z.mean(0) - expected[0]).abs() < 4 * z.std(0) / DRAWS**0.5).all()
    a, b = torch.nn.functional.softplus(theta[0, 0, 0]).tolist()
    low, width = relaxation.low, relaxation.high - relaxation.low

    def weighted(k: float) -> float:
        return min(max(low + width * k, 0.0), 1.0) * a * b * k ** (a - 1) * (1 - k**a) ** (b - 1)

    edges = [-low / width, (1 - low) / width]
    assert float(expected[0, 0, 0]) == pytest.approx(integrate.quad(weighted, 0, 1, points=edges)[0], abs=1e-7)
    beta = [special.betainc(1 / a, b + 1, edge**a) * special.beta(1 / a, b + 1) / a for edge in edges]
    assert float(expected[0, 0, 0]) == pytest.approx(width * (beta[1] - beta[0]), abs=1e-9)


@pytest.mark.parametrize("relaxation", SMOOTH, ids=repr)
def test_gradients_of_draws_and_chances_are_finite_differences_with_the_same_noise(relaxation) -> None:
    theta, mask = scores(relaxation, shape=(2, 1, 4), spread=1.0)

    def of(values, part):
        torch.manual_seed(3)
        return getattr(relaxation.draw(values, mask), part)

    for part in ("z", "chance"):
        assert torch.autograd.gradcheck(lambda values, part=part: of(values, part), theta.clone().requires_grad_())


def test_the_gradient_of_expected_draws_is_that_of_the_mean() -> None:
    theta, _ = scores(HardKuma(), shape=(1, 1, 3), spread=1.0)
    exact = theta.clone().requires_grad_()
    mean(HardKuma(), exact).sum().backward()
    copies = theta.expand(DRAWS, -1, -1, -1).clone().requires_grad_()
    HardKuma().draw(copies, torch.ones(DRAWS, 3, dtype=torch.bool)).z.sum().backward()
    error = copies.grad.std(0) / DRAWS**0.5
    assert ((copies.grad.mean(0) - exact.grad[0]).abs() < 4 * error).all()


@pytest.mark.parametrize("relaxation", [GumbelStraightThrough(), TopKStraightThrough(0.4), Bernoulli()], ids=repr)
def test_hard_masks_are_0_or_1(relaxation) -> None:
    theta, mask = scores(relaxation)
    z = relaxation.draw(theta, mask).z
    assert torch.isclose(z, z.round(), atol=1e-12).all() and 0 < z.sum() < z.numel()


def test_a_straight_through_mask_has_the_gradient_of_the_soft_one() -> None:
    theta, mask = scores(GumbelStraightThrough())
    hard, soft = theta.clone().requires_grad_(), theta.clone().requires_grad_()
    weights = torch.randn(theta.shape[:-1], dtype=torch.float64)
    for values, relaxation in ((hard, GumbelStraightThrough(0.7)), (soft, RelaxedBernoulli(0.7))):
        torch.manual_seed(3)
        (relaxation.draw(values, mask).z * weights).sum().backward()
    assert torch.allclose(hard.grad, soft.grad, atol=1e-14)
    best = theta.clone().requires_grad_()
    (TopKStraightThrough(0.4).draw(best, mask).z * weights).sum().backward()
    gradient = theta[..., 0].sigmoid() * (1 - theta[..., 0].sigmoid())
    assert torch.allclose(best.grad[..., 0], weights * gradient * mask[:, None], atol=1e-14)


def test_top_units_are_as_many_as_the_rate_says() -> None:
    theta, mask = scores(TopKStraightThrough())
    z = TopKStraightThrough(0.4).draw(theta, mask).z
    assert torch.equal(z.sum(-1).round(), torch.tensor([[2.0] * 2, [2.0] * 2, [2.0] * 2], dtype=torch.float64))
    for text, count in enumerate((5, 3, 5)):
        chosen = theta[text, 0, :count, 0].topk(2).indices
        assert torch.allclose(z[text, 0, chosen], torch.ones(2, dtype=torch.float64))


def test_the_log_probability_is_that_of_independent_choices() -> None:
    theta, mask = scores(Bernoulli())
    drawn = Bernoulli().draw(theta, mask)
    each = torch.distributions.Bernoulli(logits=theta[..., 0]).log_prob(drawn.z)
    assert torch.allclose(drawn.log_probability, (each * mask[:, None]).sum((1, 2)), atol=1e-12)


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 300.0])
def test_the_capped_simplex_meets_its_optimality_conditions(scale: float) -> None:
    generator = torch.Generator().manual_seed(1)
    theta = torch.randn(30, 8, generator=generator, dtype=torch.float64) * scale
    mask = torch.ones(30, 8, dtype=torch.bool)
    mask[10:20, 5:] = False
    budget = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).repeat(10)[:, None]
    z = capped(theta, mask, budget)
    assert (z.sum(-1, keepdim=True) <= budget + 1e-9).all() and not z[~mask].any()
    gradient = (theta - z).masked_fill(~mask, torch.nan)  # = τ + (multiplier of z ≤ 1) − (multiplier of z ≥ 0)
    for row in range(30):
        real = mask[row]
        inside = real & (z[row] > 1e-12) & (z[row] < 1 - 1e-12)
        slack = float(budget[row] - z[row].sum())
        levels = gradient[row][inside]
        level = float(levels.mean()) if inside.any() else max(0.0, float(gradient[row][real & (z[row] < 0.5)].max()))
        assert level >= -1e-9 and (slack < 1e-9 or abs(level) < 1e-9)
        assert ((levels - level).abs() < 1e-9).all()
        assert (gradient[row][real & (z[row] == 1)] >= level - 1e-9).all()
        assert (gradient[row][real & (z[row] == 0)] <= level + 1e-9).all()


def test_the_capped_simplex_is_what_a_solver_finds() -> None:
    generator = torch.Generator().manual_seed(2)
    theta = torch.randn(3, 5, generator=generator, dtype=torch.float64)
    z = capped(theta, torch.ones(3, 5, dtype=torch.bool), torch.full((3, 1), 2.0, dtype=torch.float64))
    for row, expected in zip(theta.numpy(), z.numpy(), strict=True):
        found = optimize.minimize(
            lambda x, row=row: 0.5 * x @ x - row @ x,
            np.full(5, 0.3),
            jac=lambda x, row=row: x - row,
            bounds=[(0, 1)] * 5,
            constraints={"type": "ineq", "fun": lambda x: 2 - x.sum(), "jac": lambda x: -np.ones(5)},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        assert np.allclose(found.x, expected, atol=1e-6)


def test_the_capped_simplex_passes_the_check_of_gradients_twice() -> None:
    generator = torch.Generator().manual_seed(3)
    theta = torch.randn(4, 5, generator=generator, dtype=torch.float64).requires_grad_()
    mask = torch.ones(4, 5, dtype=torch.bool)
    mask[0, 3:] = False
    budget = torch.tensor([1.0, 2.0, 4.0, 1.0], dtype=torch.float64)[:, None]
    assert torch.autograd.gradcheck(lambda scores: capped(scores, mask, budget), theta)
    assert torch.autograd.gradgradcheck(lambda scores: capped(scores, mask, budget), theta)


def test_a_cold_budget_picks_the_best_units() -> None:
    theta, mask = scores(CappedSimplex())
    theta = theta.abs()
    cold = CappedSimplex(0.4, temperature=1e-6).draw(theta, mask).z
    hard = TopKStraightThrough(0.4).draw(theta, mask).z
    assert torch.allclose(cold, hard, atol=1e-9)


def test_options_that_make_no_distribution_are_refused() -> None:
    for wrong in (
        lambda: RelaxedBernoulli(0.0),
        lambda: HardConcrete(-1.0),
        lambda: HardConcrete(low=0.0),
        lambda: HardKuma(high=1.0),
        lambda: CappedSimplex(temperature=0.0),
    ):
        with pytest.raises(AssayError):
            wrong()


@pytest.mark.parametrize("name", RELAXATIONS)
def test_options_are_plain_numbers(name: str) -> None:
    relaxation = RELAXATIONS[name]()
    assert RELAXATIONS[name](**asdict(relaxation)) == relaxation
