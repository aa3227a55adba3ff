"""Relevance of landmarks, against sums, closed forms, and propagation layer by layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence.landmark_classifier import LandmarkNetwork, Layers
from assay.influence.landmarks import contrast, relevance

SIZES = (5, 4)  # landmarks of two sets


def network(layers: Layers, centred: bool = False, classes: int = 3) -> LandmarkNetwork:
    torch.manual_seed(1)
    projections = [torch.randn(size, size - 1, dtype=torch.float64) for size in SIZES]
    seen = torch.rand(20, sum(SIZES), dtype=torch.float64) if centred else None
    return LandmarkNetwork(projections, classes, layers, seen).double().eval()


def likeness() -> torch.Tensor:
    return torch.rand(6, sum(SIZES), dtype=torch.float64, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (7,), (7, 6)])
@pytest.mark.parametrize("centred", [False, True])
def test_parts_of_landmarks_sum_to_the_logit(activation: str, hidden: tuple[int, ...], centred: bool) -> None:
    found = network(Layers(hidden, activation), centred)
    parts = relevance(found, likeness())
    np.testing.assert_allclose(parts.sum(-1), found(likeness()).detach(), atol=1e-10)


def test_the_part_of_a_landmark_in_a_linear_network_has_a_closed_form() -> None:
    found = network(Layers(hidden=()))
    space = torch.block_diag(*found.projections)
    parts = relevance(found, likeness())
    expected = likeness()[:, None] * (found.weights[0] @ space.T)
    np.testing.assert_allclose(parts, expected.detach(), atol=1e-12)
    features = found.projected(likeness())
    np.testing.assert_allclose(parts.sum(-1), (features[:, None] * found.weights[0]).sum(-1).detach(), atol=1e-12)


def test_without_a_stabiliser_it_is_gradient_times_input_for_relu() -> None:
    found = network(Layers((7, 6)), centred=True)
    x = likeness().requires_grad_()
    logits = found(x)
    for number in range(3):
        (gradient,) = torch.autograd.grad(logits[:, number].sum(), x, retain_graph=True)
        expected = gradient * (x - found.usual)
        np.testing.assert_allclose(relevance(found, likeness())[:, number], expected.detach(), atol=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_rule_is_the_published_one_message_by_message(epsilon: float, activation: str) -> None:
    found = network(Layers((7,), activation, bias=True))
    x = likeness()[0].numpy()
    space = torch.block_diag(*found.projections).detach().numpy()
    below, above = (linear.weight.detach().numpy() for linear in found.linear)
    shifts = [linear.bias.detach().numpy() for linear in found.linear]
    features = x @ space
    sums = below @ features + shifts[0]
    hidden = np.maximum(sums, 0) if activation == "relu" else np.tanh(sums)
    logits = above @ hidden + shifts[1]

    def back(values: np.ndarray, weights: np.ndarray, outputs: np.ndarray, relevant: np.ndarray) -> np.ndarray:
        """R_i = Σ_j a_i w_ij / (z_j + ε sign z_j) R_j."""
        handed = np.zeros_like(values)
        for j, part in enumerate(relevant):
            handed += values * weights[j] / (outputs[j] + epsilon * np.sign(outputs[j])) * part
        return handed

    for number in range(3):
        top = np.eye(3)[number] * logits
        down = back(hidden, above, logits, top)
        expected = back(x, space.T, features, back(features, below, sums, down))
        np.testing.assert_allclose(relevance(found, likeness(), epsilon)[0, number], expected, atol=1e-9)


def test_biases_keep_their_share() -> None:
    found = network(Layers((7,), bias=True))
    missing = found(likeness()).detach() - relevance(found, likeness()).sum(-1)
    assert missing.abs().min() > 1e-4


def test_the_contrast_of_two_classes_is_their_difference() -> None:
    logits = torch.tensor([[1.0, 3.0], [2.0, -1.0]])
    assert contrast(logits, torch.tensor([1, 0])).tolist() == [2.0, 3.0]


def test_a_negative_stabiliser_is_refused() -> None:
    with pytest.raises(AssayError, match="at least 0"):
        relevance(network(Layers()), likeness(), -1.0)
