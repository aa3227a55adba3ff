"""Rollout against whole matrices, flow against a linear programme, Chefer's relevance against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.explainers.attention_layers import Chefer, Flow, Rollout
from assay.models.encoders import positions
from assay.types import Output
from tests import builders
from tests.explainers.graphs import largest_flow

MARKERS = pytest.mark.parametrize("markers", [False, True])
CLOSE = {"atol": 1e-6, "rtol": 1e-5}


def single(row, markers, lengths=(5, 1, 3)):
    """A model, a batch of several texts, and for one of them alone: its layers [H, S, S] and its pooled weights."""
    model, batch = builders.model(encoder="transformer", markers=markers), builders.batch(lengths, width=6)
    alone = batch[row : row + 1]
    count = lengths[row]
    alone = type(alone)(alone.ids[:, :count], alone.mask[:, :count], alone.labels)
    with torch.no_grad():
        *layers, pooled = (weights[0] for weights in model.layered(model.embed(alone), alone).attention)
    return model, batch, layers, pooled


def residual(layer):
    """One layer of the graph: half of what is read, half of what was there."""
    return (layer.mean(0) + torch.eye(layer.shape[-1])) / 2


@MARKERS
@pytest.mark.parametrize("row", [0, 1, 2])
def test_rollout_is_the_last_row_of_the_product_of_all_layers(row, markers):
    model, batch, layers, pooled = single(row, markers)
    product = torch.eye(layers[0].shape[-1]).double()
    for layer in layers:
        product = residual(layer) @ product
    inner = slice(1, -1) if markers else slice(None)
    expected = (pooled @ product[inner])[inner]
    found = Rollout()(model, batch, batch.labels)[row]
    torch.testing.assert_close(found[: len(pooled)].double(), expected, **CLOSE)
    assert (found[len(pooled) :] == 0).all()
    assert found.sum().item() == pytest.approx(1.0, abs=1e-6) or markers


@MARKERS
@pytest.mark.parametrize("row", [0, 1, 2])
def test_flow_solves_the_linear_programme(row, markers):
    model, batch, layers, pooled = single(row, markers)
    graph = [residual(layer).tolist() for layer in layers]
    padded = [0.0, *pooled.tolist(), 0.0] if markers else pooled.tolist()
    expected = [largest_flow(graph, padded, place + markers) for place in range(len(pooled))]
    found = Flow()(model, batch, batch.labels)[row]
    torch.testing.assert_close(found[: len(pooled)].double(), torch.tensor(expected).double(), **CLOSE)
    assert (found[len(pooled) :] == 0).all()


class Shown:
    """Two tokens, two layers of one head, and weights that are written down."""

    layers = 2

    def __init__(self, first, second, pooled):
        self.attention = tuple(torch.tensor(part).double() for part in ([[first]], [[second]], [pooled]))

    def embed(self, batch):
        return torch.zeros(1, 2, 1)

    def __call__(self, x, batch, edit=None):
        return self.layered(x, batch)

    def layered(self, x, batch):
        return Output(torch.zeros(1, 2), self.attention)

    def token_index(self, batch):
        return torch.arange(2)[None]


def test_a_case_worked_by_hand():
    # (A + I)/2 is [[1, 0], [.5, .5]] at the bottom and [[.5, .5], [0, 1]] above; the pooled weights are .2 and .8.
    model, batch = Shown([[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]], [0.2, 0.8]), builders.batch((2,))
    # Rollout above the bottom: .2 · .5 = .1, and .2 · .5 + .8 = .9; so .1 + .9 · .5 = .55, and .9 · .5 = .45.
    torch.testing.assert_close(Rollout()(model, batch, batch.labels), torch.tensor([[0.55, 0.45]]).double())
    # To the first token .2 goes straight down and .5 by the second, as wide as its pipe; to the second token only .5.
    torch.testing.assert_close(Flow()(model, batch, batch.labels), torch.tensor([[0.7, 0.5]]).double())


def replayed(model, batch, given):
    """The logit of class 1 when the attention of the given number has these weights; the rest follows from it."""
    encoder, x, mask = model.encoder, model.embed(batch), batch.mask
    if model.architecture.markers:
        x, mask = model.surrounded(x, mask)
    states = encoder.project(x) + positions(x.shape[1], encoder.size).to(x)
    for number, block in enumerate(encoder.blocks):
        query, key, value = (
            part.unflatten(-1, (block.heads, -1)).transpose(1, 2)
            for part in block.project(block.before_attention(states)).chunk(3, dim=-1)
        )
        scores = torch.einsum("bhid,bhjd->bhij", query, key) / query.shape[-1] ** 0.5
        heads = given.get(number, scores.softmax(-1)) @ value
        states = states + block.merge(heads.transpose(1, 2).flatten(2))
        states = states + block.mix(block.before_mixing(states))
    states = encoder.norm(states)
    states = states[:, 1:-1] if model.architecture.markers else states
    pooled = given.get(len(encoder.blocks), model.attend(states, batch))
    return model.decoder((pooled[..., None] * states).sum(1))[:, 1]


@MARKERS
@torch.no_grad()
def test_chefer_adds_what_each_layer_says_for_the_class(markers):
    model, batch = builders.model(encoder="transformer", markers=markers), builders.batch((3,), seed=1)
    weights = model.layered(model.embed(batch), batch).attention
    torch.testing.assert_close(replayed(model, batch, {}), model(model.embed(batch), batch).logits[:, 1])
    spoken = []
    for number, tensor in enumerate(weights):
        gradient = torch.zeros_like(tensor)
        for place in np.ndindex(*tensor.shape):
            up, down = tensor.clone(), tensor.clone()
            up[place] += 1e-6
            down[place] -= 1e-6
            gradient[place] = (replayed(model, batch, {number: up}) - replayed(model, batch, {number: down})) / 2e-6
        spoken.append((gradient * tensor).clamp(min=0)[0])
    *layers, pooled = spoken
    relevance = torch.eye(layers[0].shape[-1]).double()
    for layer in layers:
        relevance = relevance + layer.mean(0) @ relevance
    inner = slice(1, -1) if markers else slice(None)
    expected = (pooled @ relevance[inner])[inner]
    assert expected.max() > 1e-3
    found = Chefer()(model, batch, torch.tensor([1]))[0]
    torch.testing.assert_close(found.double(), expected, atol=1e-8, rtol=1e-5)
