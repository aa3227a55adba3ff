"""Gradients that point the same way, against gradients side by side."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.influence import similarity
from assay.influence.setting import Introspective, Method
from assay.influence.similarity import GradientCosine, GradientDot
from assay.models import budget
from tests import builders
from tests.influence import small


@pytest.mark.parametrize("kind", ["lstm", "transformer", "hierarchical-gru"])
def test_dot_and_cosine_are_those_of_whole_gradients(kind: str) -> None:
    setting = small.setting(builders.kind(kind, classes=3), count=5, asked=2)
    asked, learnt = small.asked(setting), small.learnt(setting)
    expected = (asked @ learnt.T).numpy() * setting.weights / len(setting.train)
    np.testing.assert_allclose(GradientDot()(setting).scores, expected, rtol=1e-8, atol=1e-13)
    cosines = torch.nn.functional.cosine_similarity(asked[:, None], learnt[None], dim=-1)
    np.testing.assert_allclose(GradientCosine()(setting).scores, cosines.numpy(), rtol=1e-8, atol=1e-12)
    own = learnt.square().sum(1).numpy() * setting.weights / len(setting.train)
    np.testing.assert_allclose(GradientDot().own(setting), own, rtol=1e-8)


def test_a_dot_is_the_change_after_one_step_without_the_example() -> None:
    setting, rate = small.setting(builders.model(encoder="average"), asked=2), 1e-6
    learnt = small.learnt(setting)
    shares = torch.from_numpy(setting.weights / len(setting.train))

    def after(gone: int | None) -> torch.Tensor:
        """The margins of the queries after one step, perhaps without an example."""
        kept = shares.clone()
        if gone is not None:
            kept[gone] = 0
        own = list(setting.network.parameters())
        before = torch.nn.utils.parameters_to_vector(own).detach().clone()
        torch.nn.utils.vector_to_parameters(before - rate * kept @ learnt, own)
        found = []
        for row, chosen in zip(setting.queries, setting.classes, strict=True):
            ((_, batch),) = setting.batches([row])
            logits = setting.network(setting.network.embed(batch), batch).logits[0].detach()
            found.append(logits[chosen] - logits[1 - chosen])
        torch.nn.utils.vector_to_parameters(before, own)
        return torch.stack(found)

    scores = GradientDot()(setting).scores
    for gone in (0, 7):
        np.testing.assert_allclose((after(gone) - after(None)) / rate, scores[:, gone], rtol=1e-3, atol=1e-7)


def test_queries_in_turn_are_answered_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = small.setting(builders.model(encoder="average"), asked=5)
    expected = GradientDot()(setting).scores
    monkeypatch.setitem(budget.ROOM, "query gradients", (2 * setting.network.parameter_count, 0))
    assert len(list(similarity.parts(setting))) == 3
    np.testing.assert_allclose(GradientDot()(setting).scores, expected, rtol=1e-12)


def test_what_the_methods_are() -> None:
    assert isinstance(GradientDot(), Method | Introspective) and isinstance(GradientCosine(), Method)
    assert not isinstance(GradientCosine(), Introspective)
