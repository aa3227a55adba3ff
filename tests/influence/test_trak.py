"""Newton steps in projected gradients, against the same with whole ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence.projection import Signs
from assay.influence.setting import Introspective, Method, Setting
from assay.influence.tracin import Trak
from assay.influence.training_run import TrainingRun
from assay.models.config import Training
from tests import builders
from tests.influence import small


def labels(setting: Setting) -> np.ndarray:
    return np.array([row.label for row in setting.train])


def projected(setting: Setting, whole: torch.Tensor, size: int) -> np.ndarray:
    """Gradients side by side, times the signs of every pair of row and column."""
    signs = Signs.drawn(setting.parameters, size, 0)
    parts = [torch.einsum("ik,jk->ijk", each, signs.columns[name]).flatten(0, 1) for name, each in signs.rows.items()]
    found: np.ndarray = (whole @ torch.cat(parts)).numpy() / np.sqrt(size)
    return found


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_scores_are_those_of_the_formula(kind: str) -> None:
    setting, size, damping = small.setting(builders.kind(kind, classes=3), count=12), 8, 1e-3
    learnt = projected(setting, small.gradients(setting, "margin", list(setting.train), labels(setting)), size)
    asked = projected(setting, small.asked(setting), size)
    shares = np.array(
        [
            float(setting.network(setting.network.embed(batch), batch).probabilities[0, row.label].detach())
            for row in setting.train
            for _, batch in setting.batches([row])
        ]
    )
    bent = (setting.weights * shares * (1 - shares)).mean()
    curvature = bent * learnt.T @ learnt + 12 * damping * np.eye(size)
    expected = -asked @ np.linalg.solve(curvature, learnt.T) * (1 - shares) * setting.weights
    np.testing.assert_allclose(Trak(size, damping=damping)(setting).scores, expected, rtol=1e-7)
    own = replace(setting, queries=setting.train, classes=labels(setting), target="loss")
    diagonal = Trak(size, damping=damping)(own).scores.diagonal()
    np.testing.assert_allclose(Trak(size, damping=damping).own(setting), diagonal, rtol=1e-7)


def test_a_linear_model_that_is_undecided_is_answered_as_by_an_influence_function() -> None:
    """All probabilities are 1/2 there, so nothing is lost by leaving the curvature of each example out."""
    network = builders.model(encoder="none")
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name == "decoder.weight")
    with torch.no_grad():
        network.decoder.weight.zero_()
        network.decoder.bias.zero_()
    setting = small.setting(network, count=40)
    setting = replace(setting, decay={}, weights=np.ones(40))
    inverse = torch.linalg.pinv(small.fisher(setting), rtol=1e-9)
    expected = (small.asked(setting) @ inverse @ small.learnt(setting).T).numpy() / 40
    np.testing.assert_allclose(Trak(size=30, damping=0.0)(setting).scores, expected, rtol=1e-6, atol=1e-10)


def test_several_models_have_a_standard_error() -> None:
    rows = small.texts(34, seed=3)
    training_run = TrainingRun(
        builders.model(encoder="average").train(), rows[:30], Training(batch_size=8, learning_rate=1e-2), 2
    )
    setting = Setting.of(training_run.learn(), rows[:30], rows[30:], training_run=training_run)
    one, several = Trak(16, damping=1e-2)(setting), Trak(16, 3, 1e-2)(setting)
    assert one.errors is None and several.errors is not None
    assert (several.errors > 0).all() and several.covered == 1
    assert not np.allclose(one.scores, several.scores)
    np.testing.assert_array_equal(several.scores, Trak(16, 3, 1e-2)(setting).scores)


def test_what_cannot_be_asked_is_told() -> None:
    setting = small.setting(builders.model())
    assert isinstance(Trak(), Method) and isinstance(Trak(), Introspective)
    assert Trak().unfit(setting) is None
    assert "not known" in (Trak(models=2).unfit(setting) or "")
    assert "12 examples" in (Trak(damping=0.0).unfit(setting) or "")
    with pytest.raises(AssayError, match="at least one"):
        Trak(models=0)
