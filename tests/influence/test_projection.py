"""Random projections: right on average, exact at full size; and the projected form against the dual one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence import projected
from assay.influence.dual import DualGaussNewton
from assay.influence.gradient_records import Outer, Rows, Whole
from assay.influence.gradients import Gradients
from assay.influence.projected import ProjectedGaussNewton, ProjectedSystem
from assay.influence.projection import Projection, isometry, sides
from assay.influence.setting import Introspective, Method
from tests.influence.dense import setting

FULL = ProjectedGaussNewton(size=1500, side=64, damping=1e-2)
SMALL = ProjectedGaussNewton(size=64, side=4, damping=1e-2)


def gradients(dtype: torch.dtype = torch.float64) -> Gradients:
    """Of three examples: a matrix in both orders, a table, a matrix that is a table too, and a vector."""
    random = torch.Generator().manual_seed(3)

    def draw(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=random, dtype=dtype)

    ids = torch.randint(0, 9, (3, 4), generator=random)
    shapes = {"matrix": (6, 8), "turned": (8, 6), "table": (9, 5), "tied": (9, 5), "vector": (7,)}
    sizes = {name: torch.Size(shape) for name, shape in shapes.items()}
    records = {
        "matrix": [
            Outer(draw(3, 4, 8), draw(3, 4, 6), sizes["matrix"]),
            Outer(draw(3, 2, 8), draw(3, 2, 6), sizes["matrix"]),
        ],
        "turned": [Outer(draw(3, 4, 8), draw(3, 4, 6), sizes["turned"], transposed=True)],
        "table": [Rows(ids, draw(3, 4, 5), sizes["table"])],
        "tied": [Outer(draw(3, 4, 5), draw(3, 4, 9), sizes["tied"]), Rows(ids, draw(3, 4, 5), sizes["tied"])],
        "vector": [Whole(draw(3, 7))],
    }
    return Gradients(records, sizes, 3)


def drawn(found: Gradients, size: int, side: int, seed: int = 0, **factors: float) -> Projection:
    """A projection that counts each parameter once, or as often as is said."""
    every = dict.fromkeys(found.shapes, 1.0) | factors
    return Projection.drawn(found, sides(found, side, seed), every, size, seed)


def test_a_projection_of_full_size_keeps_every_inner_product() -> None:
    found = gradients()
    flat = found.flat()
    exact = drawn(found, flat.shape[1], 9)(found, torch.float64)
    torch.testing.assert_close(exact @ exact.T, flat @ flat.T)
    half = drawn(found, flat.shape[1], 9, table=0.5)(found, torch.float64)
    table = found.dense("table")
    torch.testing.assert_close(half @ half.T, flat @ flat.T - 0.75 * table @ table.T)


def test_smaller_projections_are_right_on_average() -> None:
    found = gradients()
    flat = found.flat()
    made = [drawn(found, 40, 4, seed)(found, torch.float64) for seed in range(80)]
    kernels = torch.stack([each @ each.T for each in made])
    error = (kernels.mean(0) - flat @ flat.T) / (kernels.std(0) / len(made) ** 0.5)
    assert error.abs().max() < 4
    assert kernels.std(0).max() < 0.6 * (flat @ flat.T).max()


def test_forms_of_one_gradient_are_projected_alike() -> None:
    found = gradients()
    projection = drawn(found, 40, 4)
    shapes = found.shapes
    dense = {name: [Whole(found.dense(name).view(3, *shapes[name]))] for name in shapes}
    torch.testing.assert_close(projection(found, torch.float64), projection(Gradients(dense, shapes, 3), torch.float64))


def test_a_side_keeps_what_is_main_and_the_rest_on_average() -> None:
    spread = torch.diag(torch.tensor([*range(9), 1e6, 2e6, 3e6]).double())
    made = torch.stack([isometry(spread, 4, torch.Generator().manual_seed(seed)) for seed in range(400)])
    torch.testing.assert_close(made.mT @ made, torch.diag(torch.tensor([1.0, 1, 1, 9]).double()).expand(400, 4, 4))
    whole = made @ made.mT
    torch.testing.assert_close(whole[:, 9:, 9:], torch.eye(3).double().expand(400, 3, 3))
    error = (whole.mean(0) - torch.eye(12)) / (whole.std(0) / 20).clamp(min=1e-9)
    assert error.abs().max() < 4


@pytest.mark.parametrize(("classes", "leverage"), [(2, True), (3, False)])
def test_the_projected_form_of_full_size_is_the_dual_form(classes: int, leverage: bool) -> None:
    given = setting("cnn" if leverage else "average", classes)
    method, dual = replace(FULL, leverage=leverage), DualGaussNewton(1e-2, "plain", leverage)
    expected = dual(given).scores
    np.testing.assert_allclose(method(given).scores, expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(method.own(given), dual.own(given), rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_larger_projections_are_nearer_to_the_dual_form() -> None:
    given = setting("cnn", count=24)
    exact = DualGaussNewton(1e-2, "plain", True)(given).scores.ravel()

    def likeness(size: int, side: int) -> float:
        found = [ProjectedGaussNewton(size, side, 1e-2, seed=seed)(given).scores.ravel() for seed in range(2)]
        return float(np.mean([np.corrcoef(each, exact)[0, 1] for each in found]))

    few, more = likeness(32, 2), likeness(512, 8)
    assert few < more and more > 0.8


def test_lower_precision_says_nearly_the_same() -> None:
    given = setting("cnn")
    given.network.float()
    single, lower = (replace(SMALL, precision=each)(given).scores for each in ("float32", "bfloat16"))
    assert 0.99 < np.corrcoef(single.ravel(), lower.ravel())[0, 1] < 1


def test_work_that_was_stopped_goes_on_and_ends_in_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = setting("cnn")
    monkeypatch.setattr(projected, "ROWS", 5)
    expected = SMALL(given)
    assert expected.notes["read now"] == 12
    method, part = replace(SMALL, folder=tmp_path), ProjectedSystem._part
    left = iter(range(2))

    def stopped(self: ProjectedSystem, indices: np.ndarray) -> object:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return part(self, indices)

    monkeypatch.setattr(ProjectedSystem, "_part", stopped)
    with pytest.raises(KeyboardInterrupt):
        method(given)
    assert len(list(tmp_path.glob("0*.safetensors"))) == 2
    monkeypatch.setattr(ProjectedSystem, "_part", part)
    for memory, read in ((2**30, 2), (0, 0)):
        found = replace(method, memory=memory)(given)
        assert found.notes["read now"] == read
        np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(replace(SMALL, memory=0)(given).scores, expected.scores)


def test_features_of_something_else_are_refused(tmp_path: Path) -> None:
    given = setting("cnn")
    method = replace(SMALL, folder=tmp_path)
    method.own(given)
    assert json.loads((tmp_path / "features.json").read_text())["size"] == 64
    with pytest.raises(AssayError, match="another model, data or options"):
        replace(method, seed=1).own(given)
    assert replace(method, damping=None)(given).notes["damping"] == 1e-2  # as it was chosen then
    with torch.no_grad():
        next(iter(given.network.parameters())).mul_(1.5)
    with pytest.raises(AssayError, match="another model, data or options"):
        method.own(given)


def test_options_that_mean_nothing_are_refused() -> None:
    assert isinstance(FULL, Method) and isinstance(FULL, Introspective) and FULL.unfit(setting("cnn")) is None
    with pytest.raises(AssayError, match="bfloat16"):
        ProjectedGaussNewton(precision="half")
    with pytest.raises(AssayError, match="whole numbers"):
        ProjectedGaussNewton(size=0)
