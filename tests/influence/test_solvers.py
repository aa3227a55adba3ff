"""Curvature against finite differences, and every solver against the inverse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.errors import AssayError
from assay.influence import curvature
from assay.influence.curvature import Curvature, GaussNewton, Hessian, by_name, flattened, output_roots
from assay.influence.setting import Setting
from assay.influence.solvers import Arnoldi, ConjugateGradients, Explicit, Lissa, Solver
from assay.models import budget
from tests import builders
from tests.influence import small


def drawn(setting: Setting, count: int = 3) -> Tensor:
    size = sum(each.numel() for each in setting.parameters.values())
    return torch.randn(count, size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def gradient(setting: Setting) -> Tensor:
    """The gradient of all that training minimises, text by text."""
    gradients = small.learnt(setting) * torch.from_numpy(setting.weights)[:, None] / len(setting.train)
    decay = [setting.decay.get(name, 0.0) * each.detach().flatten() for name, each in setting.parameters.items()]
    return gradients.sum(0) + torch.cat(decay)


@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
def test_products_with_the_hessian_are_differences_of_gradients(encoder: str) -> None:
    setting = small.setting(builders.model(encoder=encoder), count=4)
    vectors = drawn(setting, 1)
    found = Hessian(setting).matvec(vectors)
    for vector, product in zip(vectors, found, strict=True):
        gradients = []
        for step in (1e-5, -1e-5):
            moved = Setting(**{**vars(setting), "network": builders.model(encoder=encoder)})
            moved.__dict__.pop("reader", None)
            with torch.no_grad():
                for name, change in by_name(vector[None], setting).items():
                    moved.parameters[name].add_(change[0], alpha=step)
            gradients.append(gradient(moved))
        expected = (gradients[0] - gradients[1]) / 2e-5
        assert (product - expected).abs().max() <= 1e-5 * expected.abs().max()


@pytest.mark.parametrize(("encoder", "classes"), [("lstm", 2), ("transformer", 3), ("cnn", 4)])
def test_gauss_newton_is_the_expected_outer_product_of_gradients(encoder: str, classes: int) -> None:
    setting = small.setting(builders.model(encoder=encoder, classes=classes), count=6)
    rows, vectors = small.directions(setting), drawn(setting)
    curvature = GaussNewton(setting)
    torch.testing.assert_close(curvature.matvec(vectors), vectors @ rows.T @ rows + curvature.decay * vectors)
    if encoder == "cnn":
        torch.testing.assert_close(curvature.dense(), small.fisher(setting))


def test_roots_of_the_curvature_of_logits() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.1], [300.0, 0.0, -300.0, 0.0]], dtype=torch.float64)
    shares = logits.softmax(-1)
    roots = output_roots(logits)
    torch.testing.assert_close(roots @ roots.mT, shares.diag_embed() - shares[:, :, None] * shares[:, None])


@pytest.mark.parametrize("kind", [Hessian, GaussNewton])
def test_some_examples_stand_for_all_and_batches_change_nothing(
    kind: type[Curvature], monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = small.setting(builders.model(encoder="gru"), count=6)
    vectors = drawn(setting)
    some = replace(setting, train=[setting.train[index] for index in (4, 1)], weights=setting.weights[[4, 1]])
    torch.testing.assert_close(kind(setting).matvec(vectors, np.array([4, 1])), kind(some).matvec(vectors))
    whole = kind(setting).matvec(vectors)
    monkeypatch.setitem(budget.ROOM, "activations", (8, 8))
    monkeypatch.setattr(curvature, "AT_ONCE", 1)
    torch.testing.assert_close(kind(setting).matvec(vectors), whole)


def test_vectors_keep_their_order() -> None:
    setting = small.setting(builders.model())
    vectors = drawn(setting)
    torch.testing.assert_close(flattened(by_name(vectors, setting)), vectors, rtol=0, atol=0)


EXACT: dict[str, Solver] = {
    "explicit": Explicit(),
    "cg": ConjugateGradients(iterations=500, tolerance=1e-10),
    "lissa": Lissa(batch=None, repeats=1, tolerance=1e-10, most=5_000),
    "arnoldi": Arnoldi(steps=100, rank=100),
}


@pytest.mark.parametrize("name", EXACT)
def test_solvers_invert(name: str) -> None:
    setting = small.setting(builders.model(encoder="average"), count=12)
    curvature, vectors = GaussNewton(setting), drawn(setting)
    damping = torch.linspace(1.0, 2.0, curvature.size, dtype=torch.float64)
    expected = torch.linalg.solve(small.fisher(setting) + damping.diag(), vectors.T).T
    (found,) = EXACT[name].prepared(curvature, damping)(vectors).tries
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7)


def test_an_indefinite_hessian_is_inverted_and_a_flat_one_as_far_as_it_bends() -> None:
    setting = small.setting(builders.model(encoder="none"), count=5)
    hessian, vectors = Hessian(setting), drawn(setting)
    matrix = hessian.dense()
    assert torch.linalg.eigvalsh(matrix)[0] < 0
    damping = torch.full((hessian.size,), 1e-3, dtype=torch.float64)
    solved = Explicit().prepared(hessian, damping)(vectors)
    torch.testing.assert_close(solved.tries[0] @ (matrix + damping.diag()), vectors)
    assert solved.notes["smallest eigenvalue"] < 0
    flat = Explicit().prepared(hessian, damping * 0)(vectors @ matrix)
    assert flat.notes["flat directions"] > 0  # words that do not occur
    torch.testing.assert_close(flat.tries[0] @ matrix, vectors @ matrix)
    downward = ConjugateGradients().prepared(hessian, damping * 0)(vectors)
    assert not downward.notes["converged"]


def test_conjugate_gradients_say_when_they_have_not_finished() -> None:
    setting = small.setting(builders.model(encoder="average"))
    curvature = GaussNewton(setting)
    damping = torch.full((curvature.size,), 1e-4, dtype=torch.float64)
    few, many = (ConjugateGradients(steps).prepared(curvature, damping)(drawn(setting)) for steps in (2, 500))
    assert not few.notes["converged"] and few.notes["left"] > 1e-4 and few.notes["iterations"] == 2
    assert many.notes["converged"] and many.notes["left"] <= 1e-4


def test_a_series_of_drawn_examples_is_right_within_its_errors() -> None:
    setting = small.setting(builders.model(encoder="average"), count=12)
    curvature, vectors = GaussNewton(setting), drawn(setting)
    damping = torch.full((curvature.size,), 2.0, dtype=torch.float64)
    expected = torch.linalg.solve(curvature.dense() + damping.diag(), vectors.T).T
    solved = Lissa(batch=6, repeats=6, tolerance=1e-3).prepared(curvature, damping)(vectors)
    tries = torch.stack(solved.tries)
    errors = tries.std(0) / len(tries) ** 0.5
    off = ((tries.mean(0) - expected) / errors).abs()[errors > 1e-6]
    assert off.median() < 1.5
    scaled = curvature.dense() / 2.0
    assert solved.notes["scale"] > torch.linalg.eigvalsh(scaled)[-1]
    whole = ((tries.mean(0) - expected).norm() / expected.norm()).item()
    assert whole < 0.2


def test_a_series_without_damping_or_bound_is_refused() -> None:
    setting = small.setting(builders.model(encoder="average"))
    curvature = GaussNewton(replace(setting, decay={}))
    nothing = torch.zeros(curvature.size, dtype=torch.float64)
    with pytest.raises(AssayError, match="damping"):
        Arnoldi().prepared(curvature, nothing)
    with pytest.raises(AssayError, match="grows"):
        Lissa().solved(lambda vectors, _: 5 * vectors, drawn(setting), 1e-3, 0.5)
    doubled = Lissa(tolerance=1e-9).solved(lambda vectors, _: 5 * vectors, drawn(setting), 1.0, 0.5)
    torch.testing.assert_close(doubled.tries[0], drawn(setting) / 5)
    assert doubled.notes["scale"] == 4


def test_few_directions_are_those_of_the_largest_curvature() -> None:
    setting = replace(small.setting(builders.model(encoder="average"), count=12), decay={})
    curvature, vectors = GaussNewton(setting), drawn(setting)
    damping = torch.full((curvature.size,), 1e-2, dtype=torch.float64)
    values, axes = torch.linalg.eigh(curvature.dense())
    values = torch.where(torch.arange(len(values)) >= len(values) - 3, values, 0.0)
    expected = (vectors @ axes) / (values + 1e-2) @ axes.T
    (found,) = Arnoldi(steps=100, rank=3).prepared(curvature, damping)(vectors).tries
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
