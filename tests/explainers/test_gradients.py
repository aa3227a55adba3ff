"""Gradients against finite differences and a closed form."""

from __future__ import annotations

import pytest
import torch

from assay.explainers.gradients import gradient, gradient_norm, input_x_gradient
from assay.models.encoders import ENCODERS
from tests import builders


def numerical(model, batch, target, fixed=None, step=1e-6):
    """∂p/∂e by central differences, attention free or fixed to the given weights."""
    edit = None if fixed is None else lambda weights, mask: fixed
    x = model.embed(batch).detach()
    slopes = torch.zeros_like(x)
    for place in range(x.shape[1]):
        for dimension in range(x.shape[2]):
            up, down = x.clone(), x.clone()
            up[:, place, dimension] += step
            down[:, place, dimension] -= step
            with torch.no_grad():
                high, low = (model(moved, batch, edit).probabilities for moved in (up, down))
            slopes[:, place, dimension] = (high - low).gather(1, target[:, None])[:, 0] / (2 * step)
    return x, slopes


@pytest.mark.parametrize("encoder", ENCODERS)
def test_all_three_equal_finite_differences(encoder):
    model, batch = builders.model(encoder=encoder, markers=True), builders.batch((5, 1, 3))
    target = torch.tensor([1, 0, 1])
    x, free = numerical(model, batch, target)
    close = {"atol": 1e-6, "rtol": 1e-5}
    torch.testing.assert_close(input_x_gradient(model, batch, target).double(), (x * free).sum(-1), **close)
    torch.testing.assert_close(gradient_norm(model, batch, target).double(), free.norm(dim=-1), **close)
    observed = model(x, batch).attention[-1].detach()
    _, fixed = numerical(model, batch, target, observed)
    torch.testing.assert_close(gradient(model, batch, target).double(), (x * fixed).sum(-1).abs(), **close)


def test_gradient_of_the_average_encoder_has_its_closed_form():
    model, batch = builders.model(encoder="average"), builders.batch()
    target = batch.labels
    x = model.embed(batch)
    output = model(x, batch)
    open_units = (model.encoder.projection(x) > 0).double()
    p = output.probabilities
    difference = model.decoder.weight[target] - model.decoder.weight[1 - target]
    chosen = (p[:, 0] * p[:, 1])[:, None, None]
    slope = (
        chosen
        * output.attention[-1][..., None]
        * ((difference[:, None] * open_units) @ model.encoder.projection.weight)
    )
    expected = (slope * x).sum(-1).abs() * batch.mask
    torch.testing.assert_close(gradient(model, batch, target).double(), expected.detach(), atol=1e-7, rtol=1e-6)


def test_the_sign_tells_for_and_against():
    model, batch = builders.model(), builders.batch()
    for_one, for_zero = (input_x_gradient(model, batch, torch.full((4,), label)) for label in (1, 0))
    torch.testing.assert_close(for_one, -for_zero)
