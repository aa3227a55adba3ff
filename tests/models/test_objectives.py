"""What networks are asked for: each loss is what its formula says, text by text and weight by weight."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from assay.data.batches import Tokenised, collate
from assay.models.config import Training
from assay.models.objectives import SMALLEST, Guided, Imitated, Labels, Learning, Without, teacher_output
from tests import builders

SOME = ("lstm", "average", "hierarchical-gru", "paired-lstm")
PLAIN = Learning(Training(), nn.ModuleDict())


def pair(kind, projection="softmax"):
    """Two networks of a kind; the second one's weights are others."""
    options = builders.KINDS[kind]
    return [builders.model(seed=seed, projection=projection, **options) for seed in (0, 1)]


def read(network, batch):
    """Probabilities, weights, states and the decoder, as arrays."""
    with torch.no_grad():
        x = network.embed(batch)
        states = network.states(x, batch)
        weights = network.attend(states, batch)
        probabilities = network(x, batch).probabilities
    decoder = network.decoder.weight.detach().numpy(), network.decoder.bias.detach().numpy()
    return probabilities.numpy(), weights.numpy(), states.numpy(), decoder


def cross_entropy(states, weights, decoder, label):
    matrix, bias = decoder
    pooled = [sum(weights[t] * states[t][m] for t in range(len(weights))) for m in range(matrix.shape[1])]
    logits = [sum(matrix[c][m] * pooled[m] for m in range(len(pooled))) + bias[c] for c in range(len(bias))]
    return math.log(sum(math.exp(value) for value in logits)) - logits[label]


@pytest.mark.parametrize("projection", ["softmax", "sparsemax", "uniform"])
@pytest.mark.parametrize("kind", SOME)
def test_an_imitator_is_charged_for_its_answer_and_rewarded_for_its_attention(kind, projection):
    teacher, network = pair(kind, projection)
    batch = builders.texts()
    found = Imitated(teacher, 0.3).losses(network, batch, PLAIN)
    theirs, shown, *_ = read(teacher, batch)
    own, looked, *_ = read(network, batch)
    for row in range(len(batch)):
        apart = sum(abs(a - b) for a, b in zip(theirs[row], own[row], strict=True)) / 2
        divergence = sum(
            a * math.log(a / max(b, SMALLEST)) for a, b in zip(shown[row], looked[row], strict=True) if a > 0
        )
        assert found[row].item() == pytest.approx(apart - 0.3 * divergence, abs=1e-9)
    found.sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in network.parameters() if each.grad is not None)
    assert all(each.grad is None for each in teacher.parameters())


def test_a_network_that_imitates_itself_loses_nothing_and_its_score_is_the_loss_turned_over():
    teacher, network = pair("lstm")
    batch = builders.batch()
    assert Imitated(teacher, 0.5).losses(teacher, batch, PLAIN).abs().max() < 1e-12
    rows = [Tokenised(0, ids[mask], ids[mask][:, None].expand(-1, 2), ids[mask], 0) for ids, mask in zip(batch.ids, batch.mask, strict=True)]  # fmt: skip  # noqa: E501
    score, loss = Imitated(teacher, 0.5).judged(network.train(), rows)
    assert network.training
    assert loss == -score == pytest.approx(Imitated(teacher, 0.5).losses(network, batch, PLAIN).mean().item(), abs=1e-9)


@pytest.mark.parametrize("kind", SOME)
def test_a_guided_network_reads_the_texts_under_the_attention_of_its_teacher(kind):
    teacher, network = pair(kind)
    batch = builders.texts()
    found = Guided(teacher).losses(network, batch, PLAIN)
    _, shown, *_ = read(teacher, batch)
    _, _, states, decoder = read(network, batch)
    for row, label in enumerate(batch.labels.tolist()):
        assert found[row].item() == pytest.approx(cross_entropy(states[row], shown[row], decoder, label), abs=1e-9)


def test_a_guided_network_cannot_change_the_attention():
    teacher, network = pair("lstm")
    Guided(teacher).losses(network, builders.batch(), PLAIN).sum().backward()
    assert all(each.grad is None or not each.grad.any() for each in network.alignment.parameters())
    assert network.decoder.weight.grad.any() and network.embedding.weight.grad.any()


def test_the_teacher_reads_without_dropout_and_is_left_as_it_was():
    teacher = builders.model(dropout_words=0.5, dropout_decoder=0.5)
    batch = builders.batch()
    expected = teacher_output(teacher, batch).logits
    teacher.train()
    assert torch.equal(teacher_output(teacher, batch).logits, expected)
    assert teacher.training and not teacher_output(teacher, batch).logits.requires_grad


@pytest.mark.parametrize("kind", ["lstm", "hierarchical-gru"])
def test_labels_with_words_to_avoid_charge_the_attention_to_them(kind):
    network, batch = builders.kind(kind), builders.texts()
    avoided = tuple(batch.ids[3, :5].tolist())
    options = Training(avoid=("any",), deceive=0.7)
    found = Labels(avoided).losses(network, batch, Learning(options, nn.ModuleDict()))
    _, weights, states, decoder = read(network, batch)
    items = network.items(batch).numpy()
    within = network.within(network.embed(batch), batch).detach().numpy()
    for row, label in enumerate(batch.labels.tolist()):
        mass = sum(
            weights[row][items[row][t]] * within[row][t]
            for t in range(batch.ids.shape[1])
            if batch.mask[row, t] and batch.ids[row, t].item() in avoided
        )
        expected = cross_entropy(states[row], weights[row], decoder, label) - 0.7 * math.log(1 - mass)
        assert found[row].item() == pytest.approx(expected, abs=1e-9)


def test_words_are_deleted_alike_from_batches_and_from_rows():
    """A text that has no other word becomes one unknown word."""
    texts = [[5, 6, 7, 5], [5], [8, 9], [6, 5, 6]]
    rows = [Tokenised(0, torch.tensor(ids), torch.zeros(len(ids), 2).int(), torch.arange(len(ids)), 0) for ids in texts]
    without = Without((5, 6))
    batch = without.left(collate(rows))
    left = [ids[mask].tolist() for ids, mask in zip(batch.ids, batch.mask, strict=True)]
    assert left == [[7], [1], [8, 9], [1]]
    assert batch.ids.shape == (4, 2)
    assert [ids[mask].tolist() for ids, mask in zip(batch.sentences, batch.mask, strict=True)] == [
        [2],
        [0],
        [0, 1],
        [0],
    ]
    shorter = collate([without._shortened(row) for row in rows])
    assert torch.equal(shorter.ids, batch.ids * batch.mask) and torch.equal(shorter.mask, batch.mask)


def test_a_network_that_learns_without_words_never_reads_them():
    network, batch = builders.kind("lstm"), builders.batch()
    words = tuple(batch.ids[3, :4].tolist())
    Without(words).losses(network, batch, PLAIN).sum().backward()
    gradients = network.embedding.weight.grad.abs().sum(-1)
    assert not gradients[list(words)].any() and gradients.any()
    none = replace(batch, ids=batch.ids)
    assert np.allclose(
        Without((39_999,)).losses(network, none, PLAIN).detach(), Labels().losses(network, none, PLAIN).detach()
    )
