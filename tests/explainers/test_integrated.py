"""Integrated gradients: completeness, captum at the same nodes, a linear model, and the truth about gaps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients as Captum

from assay import costs
from assay.errors import AssayError
from assay.explainers import integrated
from assay.explainers.integrated import FLOOR, IntegratedGradients
from assay.models import budget
from assay.models.encoders import ENCODERS
from assay.types import BLANKS, Batch, Output
from tests import builders

EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS)


def difference(model, batch, target, name):
    """p(text) − p(baseline)."""
    x = model.embed(batch)
    empty = model.blank(name).expand_as(x)
    with torch.no_grad():
        whole, none = (model(each, batch).probabilities.gather(1, target[:, None])[:, 0] for each in (x, empty))
    return whole - none


def captum(model, batch, target, ends, nodes):
    """captum's scores between two embeddings of the batch, with as many Gauss–Legendre nodes."""

    def answer(x, ids, mask):
        return model(x, Batch(ids, mask, ids[:, 0])).probabilities

    start, end = ends
    return (
        Captum(answer)
        .attribute(
            end,
            start,
            target=target,
            additional_forward_args=(batch.ids, batch.mask),
            n_steps=nodes,
            method="gausslegendre",
        )
        .sum(-1)
    )


@EVERY_ENCODER
@pytest.mark.parametrize("name", BLANKS)
def test_scores_add_up_to_the_difference_from_the_baseline(encoder, name):
    model, batch = builders.model(encoder=encoder, classes=3, markers=True), builders.batch()
    target = torch.tensor([2, 0, 1, 1])
    explained = IntegratedGradients(name).attribute(model, batch, target)
    whole = difference(model, batch, target, name)
    gap = (explained.scores.sum(-1) - whole).abs() / whole.abs().clamp(min=FLOOR)
    assert (gap <= 1e-2).all()
    torch.testing.assert_close(explained.numbers["gap"], gap, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("encoder", sorted(set(ENCODERS) - {"cnn", "conv", "average", "transformer"}))  # with kinks
def test_it_equals_captum_where_both_know_the_integral(encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    target, x = batch.labels, model.embed(batch).detach()
    explained = IntegratedGradients("mean", tolerance=torch.inf, nodes=41).attribute(model, batch, target)
    expected = captum(model, batch, target, (model.blank("mean").expand_as(x), x), 80) * batch.mask
    torch.testing.assert_close(explained.scores, expected, atol=1e-7, rtol=1e-7)
    assert (explained.numbers["nodes"] == 41).all()


@pytest.mark.parametrize("nodes", [3, 5, 9, 19, 49])
def test_nodes_are_the_ends_and_where_a_legendre_polynomial_is_level(nodes):
    places, weights = (each.numpy() for each in integrated.lobatto(nodes))
    level = np.sort(np.polynomial.legendre.Legendre.basis(nodes - 1).deriv().roots().real)
    np.testing.assert_allclose(2 * places - 1, [-1, *level, 1], atol=1e-10)
    degrees = np.arange(2 * nodes - 2)
    np.testing.assert_allclose((weights[:, None] * places[:, None] ** degrees).sum(0), 1 / (degrees + 1), atol=1e-12)
    assert weights.min() > 0


def simpson(model, batch, target, ends, pieces):
    """Simpson's rule over so many pieces of the path, a gradient at a time."""
    start, step = ends[0], ends[1] - ends[0]
    total = torch.zeros_like(step)
    for node in range(2 * pieces + 1):
        x = (start + node / (2 * pieces) * step).requires_grad_()
        model(x, batch).probabilities.gather(1, target[:, None]).sum().backward()
        total += x.grad * (4 if node % 2 else 1 if node in (0, 2 * pieces) else 2) / (6 * pieces)
    return (total * step).sum(-1) * batch.mask


@EVERY_ENCODER
def test_pieces_are_cut_in_two_and_share_their_nodes(encoder):
    """Three nodes are Simpson's rule; halves know their ends and the middle."""
    model, batch = builders.model(encoder=encoder), builders.batch()
    target, x = batch.labels, model.embed(batch).detach()
    start = model.blank("mask").detach().expand_as(x)
    for pieces in (1, 2, 4, 8):
        method = IntegratedGradients("mask", tolerance=1e-15, nodes=3, most=2 * pieces + 1)
        explained = method.attribute(model, batch, target)
        assert (explained.numbers["nodes"] == 2 * pieces + 1).all()
        torch.testing.assert_close(explained.scores, simpson(model, batch, target, (start, x), pieces))


@EVERY_ENCODER
@pytest.mark.parametrize(("spare", "points"), [(10**9, 47), (24 * 48, 23), (11 * 48, 11), (48, 0)])
def test_reading_ahead_takes_fewer_turns_and_changes_nothing(encoder, spare, points, monkeypatch):
    model, batch = builders.model(encoder=encoder), builders.batch()  # 4 × 12 tokens with their padding
    method = IntegratedGradients(tolerance=1e-5)
    expected = method.attribute(model, batch, batch.labels)
    assert expected.numbers["nodes"].max() > 11
    monkeypatch.setitem(budget.ROOM, "path", (spare, spare))
    with costs.measured() as cost:
        found = method.attribute(model, batch, batch.labels)
    torch.testing.assert_close(found.scores, expected.scores, atol=1e-12, rtol=1e-9)
    assert torch.equal(found.numbers["nodes"], expected.numbers["nodes"])
    assert cost.forward >= points * len(batch)


class Straight:
    """p is a curve over w · e, summed over tokens; on the way from zero to a text it is just that curve."""

    vectors = torch.linspace(-1, 1, 2 * builders.WORDS, dtype=torch.float64).reshape(-1, 2)
    ordinary = 4
    slope = torch.tensor([0.013, -0.04], dtype=torch.float64)

    def __init__(self, curve):
        self.curve = curve

    def blank(self, name):
        return torch.zeros(2).double() if name == "zero" else self.vectors[4:].mean(0) + 0.1

    def embed(self, batch):
        return self.vectors[batch.ids]

    def total(self, x, batch):
        return (x @ self.slope * batch.mask).sum(-1)

    def __call__(self, x, batch, edit=None):
        chance = self.curve(self.total(x, batch)).clamp(1e-12, 1 - 1e-12)
        return Output(torch.stack([1 - chance, chance], dim=-1).log(), ())


@pytest.mark.parametrize("name", ["zero", "mean"])
def test_a_linear_model_gets_its_coefficients_times_the_step(name):
    model, batch = Straight(lambda total: total + 0.5), builders.batch()
    explained = IntegratedGradients(name).attribute(model, batch, torch.ones(4).long())
    expected = ((model.embed(batch) - model.blank(name)) @ model.slope) * batch.mask
    torch.testing.assert_close(explained.scores, expected, atol=1e-12, rtol=1e-10)
    assert (explained.numbers["nodes"] == 5).all()


def test_a_steep_text_gets_more_nodes_than_an_easy_one_and_is_complete():
    model = Straight(lambda total: torch.sigmoid(50_000 * (total - 0.06)))
    ids = torch.tensor([[4, 4, 4, 4], [39, 39, 39, 39]])  # only the first crosses the step
    batch = Batch(ids, torch.ones_like(ids, dtype=torch.bool), torch.ones(2).long())
    explained = IntegratedGradients().attribute(model, batch, batch.labels)
    assert (explained.numbers["gap"] <= 1e-2).all()
    steep, easy = explained.numbers["nodes"].tolist()
    assert easy == 5 and 50 < steep < 200
    x = model.embed(batch)
    plain = captum(model, batch, batch.labels, (torch.zeros_like(x), x), 50)
    assert (plain[0].sum() - 1).abs() > 0.5  # as many nodes spread evenly miss it
    torch.testing.assert_close(explained.scores[0], torch.full((4,), 0.25).double(), atol=3e-3, rtol=0)


def test_a_text_is_done_as_soon_as_the_gaps_of_its_pieces_cancel():
    batch = builders.batch((1,))
    whole = Straight(None).total(Straight(None).embed(batch), batch)

    def curve(total):  # Simpson's rule misses cos over the whole path, and sin over each half, once up and once down
        turn = 2 * torch.pi * total / whole
        return 0.5 + 0.1 * total / whole + 0.02 * (turn.sin() + 1 - turn.cos())

    explained = IntegratedGradients(tolerance=1e-6, nodes=3).attribute(Straight(curve), batch, torch.tensor([1]))
    assert explained.numbers["nodes"].item() == 5
    torch.testing.assert_close(explained.scores, torch.tensor([[0.1]]).double())


def test_a_gap_that_is_left_when_the_nodes_are_spent_is_told():
    model, batch = builders.model(), builders.batch()
    explained = IntegratedGradients(tolerance=1e-12, nodes=3, most=3).attribute(model, batch, batch.labels)
    whole = difference(model, batch, batch.labels, "zero")
    gap = (explained.scores.sum(-1) - whole).abs() / whole.abs().clamp(min=FLOOR)
    assert (gap > 1e-3).all()
    torch.testing.assert_close(explained.numbers["gap"], gap)
    assert (explained.numbers["nodes"] == 3).all()


def test_no_text_gets_more_nodes_than_allowed():
    model, batch = builders.model(encoder="transformer"), builders.batch()
    used = IntegratedGradients(tolerance=1e-14, nodes=3, most=40).attribute(model, batch, batch.labels).numbers["nodes"]
    assert (used <= 40).all() and (used > 20).any()


@EVERY_ENCODER
def test_small_pieces_change_nothing(encoder, monkeypatch):
    model, batch = builders.model(encoder=encoder), builders.batch()
    at_once = IntegratedGradients()(model, batch, batch.labels)
    monkeypatch.setitem(budget.ROOM, "gradients", (100, 100))
    torch.testing.assert_close(IntegratedGradients()(model, batch, batch.labels), at_once)


def test_the_cost_is_a_pass_each_way_for_each_node():
    model, batch = builders.model(), builders.batch()
    with costs.measured() as cost:
        explained = IntegratedGradients().attribute(model, batch, batch.labels)
    nodes = explained.numbers["nodes"].sum().item()
    assert (cost.forward, cost.backward) == (nodes, nodes)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"baseline": "zeros"}, "did you mean 'zero'"), ({"nodes": 8}, "odd"), ({"tolerance": 0.0}, "above 0")],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(AssayError, match=said):
        IntegratedGradients(**options)
