"""The gradient of each example: one backward pass for all, against one for each."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from assay.influence.gradients import Reader
from assay.models.textmodel import TextModel
from assay.models.walk import UnfusedOps
from assay.types import Batch
from tests import builders, pretrained

BY_NOTES = tuple(name for name in pretrained.ARCHITECTURES if name not in pretrained.CLOSED)


def each(network: TextModel, batch: Batch, weights: Tensor) -> Tensor:
    """The gradients of all examples, a backward pass for each."""
    asked = (network(network.embed(batch), batch).logits * weights).sum(-1)
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    rows = []
    for value in asked:
        found = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        pairs = zip(found, parameters, strict=True)
        rows.append(torch.cat([(torch.zeros_like(own) if one is None else one).flatten() for one, own in pairs]))
    return torch.stack(rows)


def agree(network: TextModel, batch: Batch) -> set[str]:
    """Compares both; what needed a backward pass for each example is returned."""
    torch.manual_seed(0)
    reader = Reader(network.eval())
    reading = reader.read(batch)
    weights = torch.randn_like(reading.logits)
    torch.testing.assert_close(reading.gradients(weights).flat(), each(network, batch, weights), rtol=1e-9, atol=1e-11)
    return reading.unbatched


@pytest.mark.parametrize("name", builders.KINDS)
def test_every_kind_of_network_gives_the_gradient_of_each_example(name: str) -> None:
    alone = agree(builders.kind(name), builders.structured(builders.batch()))
    assert all(each.startswith("word_") for each in alone)


@pytest.mark.parametrize("name", builders.MARKED)
def test_markers_around_a_text_have_gradients_of_each_example(name: str) -> None:
    assert not agree(builders.kind(name, markers=True), builders.structured(builders.batch()))


@pytest.mark.parametrize("architecture", pretrained.ARCHITECTURES)
def test_every_transformer_gives_the_gradient_of_each_example(architecture: str) -> None:
    alone = agree(pretrained.pretrained(architecture), pretrained.batch())
    assert not alone or architecture not in BY_NOTES


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "modernbert"])
def test_half_precision_is_no_reason_to_read_example_by_example(architecture: str) -> None:
    reader = Reader(pretrained.pretrained(architecture, dtype=torch.float32))
    with torch.autocast("cpu", torch.bfloat16):
        reader.read(pretrained.batch())
    assert not reader.unbatched


def test_the_pooled_head_gives_the_gradient_of_each_example() -> None:
    assert not agree(pretrained.attentive(), pretrained.batch())


def test_a_parameter_that_is_used_in_an_unknown_way_is_found_and_read_example_by_example() -> None:
    network = builders.model(encoder="average")
    decode = network.decode

    def odd(states: Tensor, weights: Tensor) -> Tensor:
        return decode(states, weights) + network.decoder.weight.square().sum() * weights.amax(-1, keepdim=True)

    network.decode = odd  # type: ignore[method-assign]
    assert agree(network, builders.batch()) == {"decoder.weight"}


@pytest.mark.parametrize("encoder", ["lstm", "gru", "transformer"])
def test_plain_operations_answer_as_the_fused_ones_and_can_be_differentiated_twice(encoder: str) -> None:
    network, batch = builders.model(encoder=encoder), builders.batch()
    x = network.embed(batch).detach().requires_grad_()
    expected = network(x, batch).logits
    with UnfusedOps():
        found = network(x, batch).logits
    torch.testing.assert_close(found, expected)
    x = x.detach()[:2, :4].requires_grad_()
    batch = batch[:2].narrowed(4)

    def answer(given: Tensor) -> Tensor:
        with UnfusedOps():
            logits: Tensor = network(given, batch).logits
        return logits

    assert torch.autograd.gradgradcheck(answer, (x,), fast_mode=True)
