"""Logits as sums over training examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from assay.errors import AssayError
from assay.influence.last_layer import Representer, head, read_by_head, refit
from assay.influence.setting import Introspective, Method, Setting
from tests import builders, pretrained
from tests.influence import small


@pytest.mark.parametrize("kind", ["lstm", "hierarchical-none", "structured", "spans"])
def test_terms_of_all_examples_add_up_to_the_logits_of_the_layer(kind: str) -> None:
    setting = small.setting(builders.kind(kind, classes=3), count=15)
    points = Representer(strength=1e-3).points(setting)
    features, _ = read_by_head(setting, setting.queries, head(setting).weight)
    summed = points.kernel(features) @ points.values
    np.testing.assert_allclose(summed, features @ points.layer[:, :-1].T + points.layer[:, -1], rtol=1e-6, atol=1e-8)


def test_the_layer_is_where_the_loss_is_lowest() -> None:
    torch.manual_seed(0)
    features, labels = torch.randn(40, 5, dtype=torch.float64), torch.randint(0, 3, (40,))
    weights = torch.rand(40, dtype=torch.float64) / 40
    layer = refit(features, labels, weights, 1e-4, 3).requires_grad_()
    loss = weights @ F.cross_entropy(features @ layer.T, labels, reduction="none") + 1e-4 * layer.square().sum()
    assert torch.autograd.grad(loss, layer)[0].abs().max() < 1e-11


def test_scores_are_the_terms_that_go_with_an_example() -> None:
    setting = small.setting(builders.kind("cnn"), count=30)
    points, found = Representer().points(setting), Representer()(setting)
    features, _ = read_by_head(setting, setting.queries, head(setting).weight)
    kernel, asked = points.kernel(features), setting.classes
    margin = points.values[:, asked] - points.values[:, 1 - asked]
    np.testing.assert_allclose(found.scores, -margin.T * kernel, rtol=1e-9, atol=1e-12)
    logits = kernel @ points.values
    rows = np.arange(len(asked))
    np.testing.assert_allclose(found.scores.sum(1), logits[rows, 1 - asked] - logits[rows, asked], rtol=1e-8)
    assert 0 < found.covered < 0.1 and 0 <= found.notes["decisions kept"] <= 1


def test_own_scores_are_those_of_asking_about_the_example() -> None:
    setting = small.setting(builders.kind("cnn"), count=12)
    own = Representer().own(setting)
    labels = np.array([row.label for row in setting.train])
    each = replace(setting, queries=setting.train, classes=labels, target="loss")
    np.testing.assert_allclose(own, Representer()(each).scores.diagonal(), rtol=1e-9)
    assert (own > 0).all()


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "distilbert"])
def test_the_last_layer_of_a_transformer_is_found(architecture: str) -> None:
    network = pretrained.pretrained(architecture)
    rows = [replace(row, ids=row.ids % 20 + 5, query=None) for row in small.texts(5, 3, classes=3)]
    setting = Setting.of(network, rows, rows[:2])
    found = head(setting)
    features, logits = read_by_head(setting, rows, found.weight)
    bias = 0.0 if found.bias is None else setting.parameters[found.bias].detach().numpy()
    np.testing.assert_allclose(features @ setting.parameters[found.weight].detach().numpy().T + bias, logits, rtol=1e-8)


def test_a_model_without_a_last_layer_is_told() -> None:
    network = builders.model(encoder="average")
    decode = network.decode
    network.decode = lambda states, weights: decode(states, weights).tanh()  # type: ignore[method-assign]
    setting = small.setting(network)
    assert "linear" in (Representer().unfit(setting) or "")
    with pytest.raises(AssayError, match="linear"):
        Representer()(setting)
    assert Representer().unfit(small.setting(builders.model())) is None


def test_options_are_checked_and_the_method_looks_inwards() -> None:
    assert isinstance(Representer(), Method) and isinstance(Representer(), Introspective)
    with pytest.raises(AssayError, match="above 0"):
        Representer(0.0)
