"""How much each head is needed: against finite differences, heads made idle by hand, and all heads gone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from assay.data.batches import Tokenised, collate, tokenise
from assay.data.examples import Example
from assay.errors import AssayError
from assay.models.hf_models import Pretrained
from assay.models.textmodel import predict
from assay.probes.heads import Gated, Pruning, curve, gate_gradients, importance, pruned, right
from tests.pretrained import batch, pretrained, tokeniser

HEADS = 4
TEXTS_OF_TWO_LENGTHS = ("not a good film", "dull!", "a very long film, is it fun?", "this is bad") * 3


@cache
def model(architecture: str = "bert") -> Pretrained:
    return pretrained(architecture)


@cache
def rows() -> tuple[Tokenised, ...]:
    examples = [Example(text, position % 3) for position, text in enumerate(TEXTS_OF_TWO_LENGTHS)]
    return tuple(tokenise(examples, tokeniser(), 60)[0])


def losses(network: Pretrained, gates: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of each text under gates that all texts share."""
    texts = batch()
    with torch.no_grad():
        logits = network(network.embed(texts), texts, Gated(gates.expand(len(texts), -1, -1))).logits
    return F.cross_entropy(logits, texts.labels, reduction="none")


@pytest.mark.parametrize("architecture", ["bert", "albert", "distilbert", "gpt2", "llama"])
def test_gate_gradients_are_finite_differences_of_the_loss(architecture: str) -> None:
    network = model(architecture)
    found = gate_gradients(network, batch(), HEADS)
    # the library has the norms of llama in float32, whatever the model is in
    step, near = (1e-2, 5e-5) if architecture == "llama" else (1e-5, 1e-8)
    for layer in range(network.layers):
        for head in range(HEADS):
            bent = torch.zeros(network.layers, HEADS, dtype=torch.float64)
            bent[layer, head] = step
            expected = (losses(network, 1 + bent) - losses(network, 1 - bent)) / (2 * step)
            assert torch.allclose(found[:, layer, head], expected, atol=near)
    assert found.abs().max() > 1e-4


def test_importance_is_the_mean_size_of_the_gradients_whatever_the_batches() -> None:
    network, texts = model(), rows()
    alone = torch.stack([gate_gradients(network, collate([row], 3), HEADS)[0] for row in texts])
    assert importance(network, texts) == pytest.approx(alone.abs().mean(0).numpy(), rel=1e-9)


def test_normalised_importance_has_length_one_in_each_layer() -> None:
    plain, made = importance(model(), rows()), importance(model(), rows(), normalised=True)
    assert np.linalg.norm(made, axis=1) == pytest.approx(1)
    assert made / made.sum(1, keepdims=True) == pytest.approx(plain / plain.sum(1, keepdims=True))


def test_a_head_whose_values_are_zero_has_no_importance() -> None:
    network = pretrained("bert")
    layer, head = 1, 2
    size = network.inner.config.hidden_size // HEADS
    value = network.inner.bert.encoder.layer[layer].attention.self.value
    with torch.no_grad():
        value.weight[head * size : (head + 1) * size] = 0
        value.bias[head * size : (head + 1) * size] = 0
    found = importance(network, rows())
    assert found[layer, head] == 0
    assert (np.delete(found.ravel(), layer * HEADS + head) > 0).all()


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_without_all_heads_it_is_as_if_every_weight_were_zero(architecture: str) -> None:
    network, texts = model(architecture), rows()
    nothing = predict(network, texts, lambda batch: lambda weights, mask: torch.zeros_like(weights))
    expected = nothing.argmax(-1) == [row.label for row in texts]
    found = right(network, texts, np.arange(network.layers * HEADS), HEADS)
    assert found.tolist() == expected.tolist()
    gated = predict(network, texts, lambda batch: Gated(torch.zeros(len(batch), network.layers, HEADS)))
    assert gated == pytest.approx(nothing, abs=1e-12)


def test_gates_of_one_change_nothing() -> None:
    network, texts = model(), rows()
    gated = predict(network, texts, lambda batch: Gated(torch.ones(len(batch), network.layers, HEADS)))
    assert gated == pytest.approx(predict(network, texts), abs=1e-12)


def test_one_head_gone_is_that_head_without_values() -> None:
    network, changed = model(), pretrained("bert")
    size = changed.inner.config.hidden_size // HEADS
    value = changed.inner.bert.encoder.layer[0].attention.self.value
    with torch.no_grad():
        value.weight[3 * size :] = 0
        value.bias[3 * size :] = 0
    gates = torch.ones(1, network.layers, HEADS)
    gates[:, 0, 3] = 0
    found = predict(network, rows(), lambda batch: Gated(gates.expand(len(batch), -1, -1)))
    assert found == pytest.approx(predict(changed, rows()), abs=1e-12)


def test_the_curve_goes_from_the_whole_model_to_none_of_its_heads() -> None:
    network, texts = model(), rows()
    found = importance(network, texts)
    points = curve(network, texts, found, Pruning(steps=4, draws=2))
    assert [point["pruned"] for point in points] == [0, 2, 4, 6, 8]
    whole = float(np.mean(predict(network, texts).argmax(-1) == [row.label for row in texts]))
    assert points[0]["accuracy"] == points[0]["random"] == points[0]["reverse"] == pytest.approx(whole)
    assert points[-1]["accuracy"] == points[-1]["random"] == points[-1]["reverse"]
    assert all(point["low"] <= point["accuracy"] <= point["high"] for point in points)
    half = np.argsort(found.ravel())[:4]
    assert points[2]["accuracy"] == pytest.approx(right(network, texts, half, HEADS).mean())
    other = np.argsort(found.ravel())[4:]
    assert points[2]["reverse"] == pytest.approx(right(network, texts, other, HEADS).mean())


def test_all_together_names_sizes_and_the_same_seed_gives_the_same_numbers() -> None:
    made = pruned(model(), rows()[:6], rows()[6:], Pruning(steps=2, draws=2, seed=3))
    assert (made["n"], made["n_dev"]) == (6, 6)
    assert np.shape(made["importance"]) == (2, HEADS)
    assert made["accuracy"] == made["curve"][0]["accuracy"]
    assert made == pruned(model(), rows()[:6], rows()[6:], Pruning(steps=2, draws=2, seed=3))


def test_the_model_is_left_as_it_was() -> None:
    network = model()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    network.train()
    importance(network, rows())
    assert network.training
    network.eval()
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_bfloat16_is_read_and_counted_in_float32() -> None:
    found = importance(pretrained("bert", dtype=torch.bfloat16), rows())
    exact = importance(model(), rows())
    assert np.corrcoef(found.ravel(), exact.ravel())[0, 1] > 0.9


def test_nothing_to_read_is_one_clear_sentence() -> None:
    with pytest.raises(AssayError, match="needs dev and test texts"):
        pruned(model(), (), rows())
    with pytest.raises(AssayError, match="at least one step"):
        Pruning(steps=0)
