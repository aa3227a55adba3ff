"""Curvature by Kronecker products: exact where it should be, and over every parameter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence import kronecker
from assay.influence.curvature import output_roots
from assay.influence.kronecker import Kronecker, Layer, Table, Vector, solved
from assay.influence.setting import Introspective, Method, Setting
from assay.influence.similarity import GradientDot, query_gradients, train_products
from assay.models import budget
from tests import builders, pretrained
from tests.influence import small

DAMPING = 1e-3


def exact(setting: Setting, damping: float) -> np.ndarray:
    """The scores with the inverse of the whole curvature."""
    curvature = small.fisher(setting)
    inverse = torch.linalg.inv(curvature + damping * torch.eye(len(curvature), dtype=torch.float64))
    return (small.asked(setting) @ inverse @ small.learnt(setting).T).numpy() * setting.weights / len(setting.train)


def only(network: torch.nn.Module, *names: str) -> None:
    """Freezes all parameters but those named."""
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name in names)


@pytest.mark.parametrize("name", ["decoder.weight", "embedding.weight"])
def test_one_layer_that_reads_single_words_is_exact(name: str) -> None:
    network = builders.model(encoder="none", embedding=builders.WORDS)
    with torch.no_grad():
        network.embedding.weight.copy_(torch.eye(builders.WORDS))
    only(network, name)
    setting = small.setting(network, count=20, longest=1)
    np.testing.assert_allclose(
        Kronecker(damping=DAMPING)(setting).scores, exact(setting, DAMPING), rtol=1e-7, atol=1e-12
    )


def test_inputs_in_one_direction_are_exact_with_the_bias_as_an_input() -> None:
    network = builders.model(encoder="none", classes=2)
    with torch.no_grad():
        network.embedding.weight.copy_(network.embedding.weight[:1] + torch.arange(1.0, 7.0))  # one text for all
    only(network, "decoder.weight", "decoder.bias")
    setting = small.setting(network)
    np.testing.assert_allclose(
        Kronecker(damping=DAMPING)(setting).scores, exact(setting, DAMPING), rtol=1e-7, atol=1e-12
    )


def test_the_directions_of_the_softmax_are_its_curvature() -> None:
    logits = torch.randn(5, 4, dtype=torch.float64) * 3
    logits[0, 2], logits[1] = -torch.inf, torch.tensor([0.0, -800, -900, -900])
    roots, shares = output_roots(logits), logits.softmax(-1)
    assert roots.shape == (5, 4, 3)
    torch.testing.assert_close(roots @ roots.mT, shares.diag_embed() - shares[:, :, None] * shares[:, None])


@pytest.mark.parametrize("kind", ["lstm", "cnn", "transformer", "hierarchical-gru"])
def test_every_parameter_takes_part_and_the_values_are_the_mean_squares_of_gradients(kind: str) -> None:
    setting = small.setting(builders.kind(kind, classes=3), count=3)
    blocks = Kronecker().fitted(setting)
    names = [name for block in blocks for name in block.names]
    assert sorted(names) == sorted(setting.parameters)
    expected = small.traces(setting)
    for block in blocks:  # a rotation leaves the trace as it is
        assert float(block.values.sum()) == pytest.approx(sum(expected[name] for name in block.names), rel=1e-8)
    assert any(isinstance(block, Table) for block in blocks)
    assert kind.startswith("hierarchical") or not any(
        isinstance(block, Vector) and block.names[0].endswith("bias_hh_l0") for block in blocks
    )


def test_small_parameters_have_their_whole_curvature() -> None:
    network = builders.kind("transformer")
    name = "encoder.blocks.0.before_attention.weight"
    only(network, name)
    setting = small.setting(network)
    np.testing.assert_allclose(Kronecker(damping=DAMPING)(setting).scores, exact(setting, DAMPING), rtol=1e-7)


@pytest.mark.parametrize("kind", ["lstm", pytest.param("transformer", marks=pytest.mark.slow)])
def test_what_must_hold_of_any_influence_function(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network = builders.model(encoder=kind, hidden=4)
    setting = small.setting(network, count=4, longest=4, target="loss")
    twice = [*setting.train, setting.train[3]]
    weights = np.append(setting.weights, setting.weights[3])
    setting = replace(
        setting, train=twice, weights=weights, queries=twice, classes=np.array([row.label for row in twice])
    )
    found = Kronecker(damping=DAMPING)(setting)
    scores = found.scores / (weights / len(twice))
    assert found.covered == 1
    np.testing.assert_allclose(scores, scores.T, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(scores[:, 3], scores[:, -1], rtol=1e-9)
    own = Kronecker(damping=DAMPING).own(setting)
    assert (own >= 0).all()
    np.testing.assert_allclose(own, found.scores.diagonal(), rtol=1e-8)
    flat = Kronecker(damping=1e9)(setting).scores * 1e9
    np.testing.assert_allclose(flat, GradientDot()(setting).scores, rtol=1e-5, atol=1e-9)
    monkeypatch.setitem(budget.ROOM, "activations", (1, 1))  # each text alone, so without padding
    monkeypatch.setattr(kronecker, "AT_ONCE", 1)
    np.testing.assert_allclose(Kronecker(damping=DAMPING)(setting).scores, found.scores, rtol=1e-6, atol=1e-10)


def test_parts_of_the_parameters_add_up() -> None:
    setting = small.setting(builders.kind("cnn"), count=6)
    method = Kronecker(damping=DAMPING)
    blocks = method.fitted(setting)
    for block in blocks:
        block.damp(DAMPING)
    vectors = query_gradients(setting)
    partial = [train_products(setting, block.solved(vectors)) for block in blocks]
    total = train_products(setting, solved(blocks, vectors)) * setting.weights / len(setting.train)
    np.testing.assert_allclose(np.sum(partial, 0) * setting.weights / len(setting.train), total, rtol=1e-9)
    np.testing.assert_allclose(method(setting).scores, total, rtol=1e-9)


def test_weights_with_inputs_in_rows_are_known_as_others_are() -> None:
    """GPT-2 stores its weights the other way round."""
    network = pretrained.pretrained("gpt2")
    ids = [torch.tensor([each]) for each in range(6, 12)]
    rows = [replace(row, ids=own, query=None) for row, own in zip(small.texts(6, 1), ids, strict=True)]
    setting = Setting.of(network, rows[:4], rows[4:])
    blocks = Kronecker().fitted(setting)
    assert sorted(name for block in blocks for name in block.names) == sorted(setting.parameters)
    trace = small.traces(setting)
    for block in blocks:
        assert float(block.values.sum()) == pytest.approx(sum(trace[name] for name in block.names), rel=1e-8)
    mapped = [block for block in blocks if isinstance(block, Layer) and block.transposed]
    assert len(mapped) == 8 and all(len(block.names) == 2 for block in mapped)
    vectors = query_gradients(setting)
    for block in blocks:
        block.damp(1e9)
    back = solved(blocks, vectors)
    for name, each in vectors.items():
        torch.testing.assert_close(back[name] * 1e9, each, rtol=1e-6, atol=1e-9)


def test_damping_may_be_a_share_of_the_mean_value() -> None:
    network = builders.model(encoder="none")
    only(network, "decoder.weight")
    setting = replace(small.setting(network), decay={})
    mean = float(Kronecker().fitted(setting)[0].values.mean())
    relative, absolute = Kronecker(relative=True), Kronecker(damping=0.1 * mean)
    np.testing.assert_allclose(relative(setting).scores, absolute(setting).scores, rtol=1e-10)
    assert relative(setting).notes["damping"] == 0.1


def test_options_are_checked_and_the_method_looks_inwards() -> None:
    assert isinstance(Kronecker(), Method) and isinstance(Kronecker(), Introspective)
    with pytest.raises(AssayError, match="Fisher"):
        Kronecker("expektd")
