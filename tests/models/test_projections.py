"""Projections onto the simplex against conditions of optimality, a solver, another library and finite differences."""

from __future__ import annotations

import entmax
import numpy as np
import pytest
import scipy.optimize
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import hessian, jacfwd, jacrev, vmap

from assay.errors import AssayError
from assay.models.projections import Entmax, Sparsegen, family, projection, softmax, sparsemax, uniform

CURVED = ("softmax", "sparsemax", "sparsegen(0.5)", "sparsegen(-3)", "entmax(1.2)", "entmax(1.5)", "entmax(1.8)")
NAMES = (*CURVED, "uniform", "entmax(1)", "entmax(2)")
EVERY = pytest.mark.parametrize("name", NAMES)
EVERY_CURVED = pytest.mark.parametrize("name", CURVED)
FORWARD = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch warns of itself
ALPHAS = pytest.mark.parametrize("alpha", [1.0001, 1.1, 1.25, 1.5, 1.75, 1.9, 2.0])


def scores(rows=6, items=7, spread=1.0):
    return spread * torch.randn(rows, items, dtype=torch.float64)


def some(like):
    """A mask with holes; the second row has nothing at all and the third one item only."""
    mask = torch.rand(like.shape) < 0.7
    mask[:, 0] = True
    mask[1], mask[2, 1:] = False, False
    return mask


def whole(like):
    return torch.ones_like(like, dtype=torch.bool)


@EVERY
@pytest.mark.parametrize("spread", [0.01, 1.0, 50.0])
def test_weights_are_shares_of_what_is_real(name, spread):
    z = scores(spread=spread)
    mask = some(z)
    weights = projection(name)(z, mask)
    assert (weights >= 0).all() and (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), mask.any(-1).double())


@ALPHAS
@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0])
def test_entmax_keeps_the_conditions_of_its_optimum(alpha, spread):
    """∂/∂p of Σ p z + (1 − Σ p^α) / (α (α − 1)) is one number on the support, and smaller at zero weight outside it."""
    z = scores(40, 30, spread)
    weights = Entmax(alpha)(z, whole(z))
    excess = z - weights ** (alpha - 1) / (alpha - 1)
    excess = excess - excess.gather(-1, z.argmax(-1, keepdim=True))
    assert excess[weights > 1e-12].abs().max() < 1e-8
    assert (excess < 1e-8).all()


@pytest.mark.parametrize("strength", [-4.0, -0.5, 0.0, 0.6])
def test_sparsegen_is_what_a_solver_finds(strength):
    for z in scores(4, 5).numpy():
        found = scipy.optimize.minimize(
            lambda p, z=z: ((p - z) ** 2).sum() - strength * (p**2).sum(),
            np.full(5, 0.2),
            method="SLSQP",
            bounds=[(0, 1)] * 5,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        row = torch.from_numpy(z)[None]
        np.testing.assert_allclose(Sparsegen(strength)(row, whole(row))[0], found.x, atol=1e-6)


@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_another_library_gives_the_same_weights_and_slopes(spread):
    z, side = scores(20, 40, spread).requires_grad_(), torch.randn(20, 40).double()
    for ours, theirs in (
        (sparsemax, lambda z: entmax.sparsemax(z, dim=-1)),
        (Entmax(1.5), lambda z: entmax.entmax15(z, dim=-1)),
        (Entmax(1.3), lambda z: entmax.entmax_bisect(z, 1.3, dim=-1)),
        (Entmax(1.7), lambda z: entmax.entmax_bisect(z, 1.7, dim=-1)),
        (Sparsegen(0.5), lambda z: entmax.sparsemax(2 * z, dim=-1)),
    ):
        mine, other = ours(z, whole(z)), theirs(z)
        torch.testing.assert_close(mine, other, atol=1e-9, rtol=1e-7)
        gradient, expected = (torch.autograd.grad((each * side).sum(), z)[0] for each in (mine, other))
        torch.testing.assert_close(gradient, expected, atol=1e-6, rtol=1e-5)


@FORWARD
@EVERY_CURVED
@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_first_and_second_derivatives_are_those_of_finite_differences(name, spread):
    z = scores(spread=spread).requires_grad_()
    mask = some(z)
    weights = projection(name)(z, mask)
    assert name == "softmax" or spread < 1 or (weights[mask] == 0).any()
    assert gradcheck(lambda z: projection(name)(z, mask), z)
    assert gradgradcheck(lambda z: projection(name)(z, mask), z, atol=1e-4)
    assert gradcheck(lambda z: projection(name)(z, mask), z, check_forward_ad=True, check_backward_ad=False)


@FORWARD
@EVERY_CURVED
def test_transformed_functions_agree(name):
    z = scores()
    mask = some(z)

    def one(row, real):
        return projection(name)(row, real)

    def curved(row, real):
        return (projection(name)(row, real) ** 2 * torch.arange(7.0)).sum()

    expected = torch.stack([one(row, real) for row, real in zip(z, mask, strict=True)])
    torch.testing.assert_close(vmap(one)(z, mask), expected)
    backward, forward = vmap(jacrev(one))(z, mask), vmap(jacfwd(one))(z, mask)
    torch.testing.assert_close(backward, forward)
    torch.testing.assert_close(backward, backward.mT)
    for row, real, found in zip(z, mask, vmap(hessian(curved))(z, mask), strict=True):
        plain = torch.autograd.functional.hessian(lambda row, real=real: curved(row, real), row)
        torch.testing.assert_close(found, plain)


@FORWARD
def test_a_sparse_weight_of_zero_has_no_slope_and_curvature_stays_finite():
    z = torch.tensor([[0.0, -0.1, -9.0, -0.2]], dtype=torch.float64)
    found = hessian(lambda z: (Entmax(1.5)(z, whole(z)) ** 3).sum())(z)[0, :, 0]
    assert found.isfinite().all() and (found[2] == 0).all() and (found[:, 2] == 0).all()
    assert (found[[0, 1, 3]][:, [0, 1, 3]] != 0).all()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rows_without_anything_give_zeros_and_no_slope(name, dtype):
    z = scores().to(dtype).requires_grad_()
    weights = projection(name)(z, torch.zeros_like(z, dtype=torch.bool))
    assert (weights == 0).all() and weights.dtype == dtype
    if weights.requires_grad:
        (gradient,) = torch.autograd.grad(weights.sum(), z, create_graph=True)
        assert (gradient == 0).all()
        if gradient.requires_grad:  # else it is the same everywhere
            assert (torch.autograd.grad(gradient.square().sum(), z)[0] == 0).all()
    assert projection(name)(z[:, :0], torch.zeros(6, 0, dtype=torch.bool)).shape == (6, 0)


@EVERY
def test_weights_are_one_function_of_heights_above_a_threshold(name):
    z = scores(spread=1.5)
    mask, known = some(z), family(projection(name))
    weights = projection(name)(z, mask)
    real = mask.any(-1)
    heights = known.heights(z, weights, mask)[real]
    torch.testing.assert_close(known.value(heights)[mask[real]], weights[real][mask[real]], atol=1e-12, rtol=1e-9)
    leaf = heights.requires_grad_()
    (gradient,) = torch.autograd.grad(known.value(leaf).sum(), leaf)
    torch.testing.assert_close(known.derivative(heights), gradient)


def test_even_weights_have_slopes_and_these_are_zero():
    z = scores().requires_grad_()
    (gradient,) = torch.autograd.grad((uniform(z, some(z)) * scores()).sum(), z)
    assert (gradient == 0).all()


@EVERY
def test_padding_changes_nothing_whatever_stands_there(name):
    z = scores()
    expected = projection(name)(z, whole(z))
    for filler in (0.0, 1e30, -1e30, torch.inf, -torch.inf):
        padded = torch.cat([z, torch.full((6, 9), filler, dtype=torch.float64)], dim=-1)
        found = projection(name)(padded, torch.arange(16).expand(6, 16) < 7)
        torch.testing.assert_close(found[:, :7], expected, atol=1e-14, rtol=1e-12)
        assert (found[:, 7:] == 0).all()


@EVERY_CURVED
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_huge_and_infinite_scores_have_finite_weights_and_slopes(name, dtype):
    z = torch.tensor([[1e30, 1e30, -1e30, 0], [0, -torch.inf, 1, -1e38], [-1e30, -1e30, -1e30, -2e30]], dtype=dtype)
    z.requires_grad_()
    weights = projection(name)(z, whole(z))
    (gradient,) = torch.autograd.grad((weights * torch.arange(4)).sum(), z)
    assert weights.isfinite().all() and gradient.isfinite().all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, dtype=dtype))
    torch.testing.assert_close(weights[0], torch.tensor([0.5, 0.5, 0, 0], dtype=dtype))
    torch.testing.assert_close(weights[2], torch.tensor([1, 1, 1, 0], dtype=dtype) / 3)
    assert weights[1, 1] == weights[1, 3] == 0


@EVERY
def test_fewer_digits_are_near(name):
    z = scores(30, 12, 2.0)
    exact = projection(name)(z, whole(z))
    for dtype, error in ((torch.float32, 1e-6), (torch.bfloat16, 3e-2)):
        found = projection(name)(z.to(dtype), whole(z))
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), exact, atol=error, rtol=0)
        torch.testing.assert_close(found.double().sum(-1), torch.ones(30).double(), atol=error, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_strength_far_below_zero_gives_even_weights_and_one_near_one_a_single_word(dtype):
    z, mask = scores().to(dtype), whole(scores())
    torch.testing.assert_close(Sparsegen(-1e4)(z, mask), uniform(z, mask), atol=2e-3, rtol=0)
    torch.testing.assert_close(Sparsegen(-1e12)(z, mask), uniform(z, mask), atol=1e-7, rtol=0)
    sharp = Sparsegen(0.9999)(z, mask)
    torch.testing.assert_close(sharp, torch.nn.functional.one_hot(z.argmax(-1), 7).to(dtype))
    exact = Sparsegen(0.999)(z.double(), mask)
    torch.testing.assert_close(Sparsegen(0.999)(z, mask).double(), exact, atol=1e-4, rtol=0)


def test_items_at_the_threshold_have_no_weight_and_ties_share():
    z = torch.tensor([[0.0, -1.0, -2.0], [1.0, 0.5, 0.5], [0.25, 0.25, 0.25]], dtype=torch.float64)
    expected = torch.tensor([[1.0, 0.0, 0.0], [2 / 3, 1 / 6, 1 / 6], [1 / 3] * 3], dtype=torch.float64)
    torch.testing.assert_close(sparsemax(z, whole(z)), expected)
    (row,) = Entmax(1.5)(z[1:2], whole(z[1:2]))
    assert row[1] == row[2]
    (gradient,) = torch.func.vjp(lambda z: sparsemax(z, whole(z)), z[:1])[1](torch.tensor([[1.0, 2.0, 3.0]]).double())
    assert (gradient == 0).all()  # the support is one word: nothing moves


def test_the_ends_of_entmax_are_softmax_and_sparsemax():
    z = scores()
    mask = some(z)
    assert torch.equal(Entmax(1.0)(z, mask), softmax(z, mask))
    assert torch.equal(Entmax(2.0)(z, mask), sparsemax(z, mask))
    for near, far in ((1e-3, 1e-6), (1e-5, 1e-8)):
        apart = [(Entmax(1 + step)(z, mask) - softmax(z, mask)).abs().max() for step in (near, far)]
        assert apart[0] < 5 * near and apart[1] < apart[0] / 100
    torch.testing.assert_close(Entmax(2 - 1e-7)(z, mask), sparsemax(z, mask), atol=1e-6, rtol=0)


def test_the_closed_form_of_one_and_a_half_is_the_limit_of_its_neighbours():
    z = scores(30, 50, 2.0)
    between = (Entmax(1.5 - 1e-6)(z, whole(z)) + Entmax(1.5 + 1e-6)(z, whole(z))) / 2
    torch.testing.assert_close(Entmax(1.5)(z, whole(z)), between, atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sparsegen(1)", "below 1"),
        ("sparsegen(nan)", "below 1"),
        ("sparsegen(-inf)", "below 1"),
        ("sparsegen(inf)", "below 1"),
        ("sparsegen", r"as in sparsegen\(0.5\)"),
        ("sparsegen(much)", "needs a number"),
        ("entmax(0.9)", "from 1 to 2"),
        ("entmax(2.1)", "from 1 to 2"),
        ("entmax(nan)", "from 1 to 2"),
        ("entmax(inf)", "from 1 to 2"),
        ("entmax()", r"as in entmax\(1.5\)"),
        ("softmax(2)", "takes no number"),
        ("sparsemix", "did you mean 'sparsemax'"),
        ("entmax(1.5", "Unknown projection"),
    ],
)
def test_what_is_no_projection_is_refused_in_one_sentence(text, reason):
    with pytest.raises(AssayError, match=reason) as refusal:
        projection(text)
    assert str(refusal.value).count(". ") == 0
