"""Gradients against finite differences, closed forms and an integral over the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.explainers.gradients import Gradient, SmoothGrad, gradient_norm, input_x_gradient
from assay.models import budget
from assay.models.encoders import ENCODERS
from assay.types import Output
from tests import builders, pretrained


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


class Leaking:
    """A model that reads its padding: its answer depends on the mean embedding of all positions."""

    def __init__(self):
        self.inner = builders.model(encoder="average")

    def embed(self, batch):
        return self.inner.embed(batch)

    def __call__(self, x, batch, edit=None):
        return self.inner(x + x.mean(1, keepdim=True), batch, edit)


@pytest.mark.parametrize("explainer", [Gradient(), SmoothGrad(samples=2), gradient_norm, input_x_gradient])
def test_padding_has_no_score_even_where_a_model_reads_it(explainer):
    model, batch = Leaking(), builders.batch((5, 1, 3))
    x = model.embed(batch).detach().requires_grad_() + 1.0
    (free,) = torch.autograd.grad(model(x, batch).logits[:, 0].sum(), x)
    assert (free[~batch.mask] != 0).any()
    assert (explainer(model, batch, batch.labels)[~batch.mask] == 0).all()


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
    torch.testing.assert_close(Gradient()(model, batch, target).double(), (x * fixed).sum(-1).abs(), **close)


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
    torch.testing.assert_close(Gradient()(model, batch, target).double(), expected.detach(), atol=1e-7, rtol=1e-6)


def test_the_sign_tells_for_and_against():
    model, batch = builders.model(), builders.batch()
    for_one, for_zero = (input_x_gradient(model, batch, torch.full((4,), label)) for label in (1, 0))
    torch.testing.assert_close(for_one, -for_zero)


class Logistic:
    """p = σ(k Σ e): one steep direction; it keeps the embeddings that it was asked about."""

    def __init__(self, steepness=1.0):
        self.steepness = steepness
        self.asked = []

    def embed(self, batch):
        return torch.stack([batch.ids / 20 - 1, -batch.ids / 40], dim=-1).double()

    def __call__(self, x, batch, edit=None):
        self.asked.append(x.detach())
        score = self.steepness * (x * batch.mask[..., None]).sum((1, 2))
        return Output(torch.stack([torch.zeros_like(score), score], dim=-1), ())


def test_smoothgrad_without_noise_is_the_norm_of_the_gradient():
    model, batch = builders.model(), builders.batch()
    torch.testing.assert_close(
        SmoothGrad(samples=2, noise=0.0)(model, batch, batch.labels), gradient_norm(model, batch, batch.labels)
    )


def test_smoothgrad_tends_to_the_gradient_integrated_over_normal_noise():
    model, batch = Logistic(2.0), builders.batch((3, 1))
    x = model.embed(batch)
    found = SmoothGrad(samples=500, noise=0.4)(model, batch, torch.ones(2).long())
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    for row, count in enumerate((3, 1)):
        text = x[row, :count].numpy()
        deviation = 0.4 * (text.max() - text.min()) * math.sqrt(text.size)  # of the sum over all coordinates
        chance = 1 / (1 + np.exp(-2 * (text.sum() + deviation * points)))
        slope = 2 * (weights * chance * (1 - chance)).sum() / weights.sum()
        expected = torch.full((count,), slope * math.sqrt(2), dtype=torch.float64)
        torch.testing.assert_close(found[row, :count], expected, atol=0, rtol=0.08)


def test_the_noise_is_standard_normal_fresh_for_each_pair_and_seed_and_opposite_within_a_pair():
    batch = builders.batch((400,))
    x = Logistic().embed(batch)
    drawn = []
    for seed in (0, 1):
        model = Logistic()
        SmoothGrad(samples=8, noise=0.5, seed=seed)(model, batch, torch.ones(1).long())
        drawn += [(noisy - x[0]).flatten() / (0.5 * (x.max() - x.min())) for asked in model.asked for noisy in asked]
    both = torch.stack(drawn)  # [samples of both seeds, coordinates]
    noise = both[::2]
    torch.testing.assert_close(both[1::2], -noise, atol=1e-6, rtol=0)
    assert noise.mean().abs() < 0.03
    assert (noise.var() - 1).abs() < 0.05
    assert ((noise**4).mean() - 3).abs() < 0.3
    related = torch.corrcoef(noise) - torch.eye(8)
    assert related.abs().max() < 0.15
    neighbours = torch.corrcoef(torch.stack([noise[:, :-1].flatten(), noise[:, 1:].flatten()]))[0, 1]
    assert neighbours.abs() < 0.03


@pytest.mark.parametrize("tokens", [1, 12, 30])
def test_noisy_copies_are_the_same_however_many_are_read_together(monkeypatch, tokens):
    model, batch = builders.model(), builders.batch()
    together = SmoothGrad(samples=7)(model, batch, batch.labels)
    monkeypatch.setitem(budget.ROOM, "gradients", (tokens, tokens))
    torch.testing.assert_close(SmoothGrad(samples=7)(model, batch, batch.labels), together)


def test_smoothgrad_refuses_to_draw_nothing():
    with pytest.raises(AssayError, match="samples of at least 1"):
        SmoothGrad(samples=0)


def test_attention_that_takes_no_edit_cannot_be_held_and_says_so():
    model = pretrained.pretrained("deberta-v2")
    texts = pretrained.batch(["Not a good film"])
    with pytest.raises(AssayError, match="cannot be edited, so it cannot be held fixed"):
        Gradient()(model, texts, texts.labels)
