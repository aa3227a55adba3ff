"""What is read off the attention that pools, against finite differences and closed forms."""

from __future__ import annotations

import pytest
import torch

from assay import costs
from assay.errors import AssayError
from assay.explainers.attention import (
    Attention,
    AttentionGradient,
    AttentionXGradient,
    AttentionXValue,
    StateGradient,
)
from assay.models.encoders import ENCODERS
from assay.types import Output
from tests import builders

EVERY_ENCODER = pytest.mark.parametrize("encoder", ENCODERS)
CLOSE = {"atol": 1e-6, "rtol": 1e-5}
TARGET = torch.tensor([2, 0, 1])


@pytest.fixture(params=ENCODERS)
def read(request):
    """A model, a batch, its states and its weights."""
    model = builders.model(encoder=request.param, classes=3, markers=True)
    batch = builders.batch((5, 1, 3))
    with torch.no_grad():
        states = model.states(model.embed(batch), batch)
        return model, batch, states, model.attend(states, batch)


def numerical(function, point, step=1e-6):
    """The derivative of one number for each row, by central differences over all other axes."""
    flat = point.reshape(len(point), -1)
    gradient = torch.zeros_like(flat)
    for place in range(flat.shape[1]):
        up, down = flat.clone(), flat.clone()
        up[:, place] += step
        down[:, place] -= step
        with torch.no_grad():
            gradient[:, place] = (function(up.reshape(point.shape)) - function(down.reshape(point.shape))) / (2 * step)
    return gradient.reshape(point.shape)


def chance(logits):
    return logits.softmax(-1)[torch.arange(3), TARGET]


def test_attention_is_the_weights_as_they_are(read):
    model, batch, _, weights = read
    torch.testing.assert_close(Attention()(model, batch, TARGET), weights)


def test_the_slope_at_the_states_goes_through_attention_and_decoder(read):
    model, batch, states, _ = read
    gradient = numerical(lambda moved: chance(model.decode(moved, model.attend(moved, batch))), states)
    expected = gradient.norm(dim=-1) * batch.mask
    torch.testing.assert_close(StateGradient()(model, batch, TARGET).double(), expected, **CLOSE)


def test_the_slope_at_the_weights_has_its_closed_form(read):
    model, batch, states, weights = read
    p = model.decode(states, weights).softmax(-1)
    values = states @ model.decoder.weight.T  # [B, T, C], no bias
    rows = torch.arange(3)
    closed = p[rows, TARGET, None] * (values[rows, :, TARGET] - (p[:, None] * values).sum(-1))
    closed = (closed * batch.mask).detach()
    torch.testing.assert_close(AttentionGradient()(model, batch, TARGET).double(), closed, **CLOSE)
    product = AttentionXGradient()(model, batch, TARGET).double()
    torch.testing.assert_close(product, weights * closed, **CLOSE)
    gradient = numerical(lambda moved: chance(model.decode(states, moved)), weights) * batch.mask
    torch.testing.assert_close(gradient, closed, **CLOSE)


def test_the_sign_tells_for_and_against():
    model, batch = builders.model(), builders.batch()
    for explainer in (AttentionGradient(), AttentionXGradient()):
        for_one, for_zero = (explainer(model, batch, torch.full((4,), label)) for label in (1, 0))
        torch.testing.assert_close(for_one, -for_zero)
        assert (for_one > 0).any() and (for_one < 0).any()


def test_the_value_of_a_token_is_what_it_adds_to_centred_logits(read):
    model, batch, states, weights = read
    found = AttentionXValue()(model, batch, TARGET)
    for row in range(3):
        for place in range(batch.lengths[row]):
            logits = weights[row, place] * (model.decoder.weight.detach() @ states[row, place])
            expected = ((logits - logits.mean()) ** 2).sum().sqrt()
            torch.testing.assert_close(found[row, place].double(), expected, **CLOSE)


@EVERY_ENCODER
def test_what_moves_all_logits_alike_has_no_value(encoder):
    model, batch = builders.model(encoder=encoder), builders.batch()
    before = AttentionXValue()(model, batch, batch.labels)
    with torch.no_grad():
        model.decoder.weight += torch.randn_like(model.decoder.weight[:1])
        model.decoder.bias += torch.randn_like(model.decoder.bias)
    torch.testing.assert_close(AttentionXValue()(model, batch, batch.labels), before, **CLOSE)


@pytest.mark.parametrize(
    ("explainer", "backward"),
    [(StateGradient(), 4), (AttentionGradient(), 4), (AttentionXGradient(), 4), (AttentionXValue(), 0)],
)
def test_passes_are_counted(explainer, backward):
    model, batch = builders.model(), builders.batch()
    with costs.measured() as cost:
        explainer(model, batch, batch.labels)
    assert (cost.forward, cost.backward) == (4, backward)


class Plain:
    """A model that does not show how it pools."""

    def embed(self, batch):
        return torch.zeros(*batch.ids.shape, 2)

    def __call__(self, x, batch, edit=None):
        return Output(x.sum(1), ())


@pytest.mark.parametrize("explainer", [StateGradient(), AttentionGradient(), AttentionXGradient(), AttentionXValue()])
def test_a_model_without_pooling_is_refused(explainer):
    batch = builders.batch()
    with pytest.raises(AssayError, match="linear decoder over one attention"):
        explainer(Plain(), batch, batch.labels)
    assert explainer.unfit(Plain()) is not None and explainer.unfit(builders.model()) is None


def test_a_model_that_shows_no_attention_is_refused():
    batch = builders.batch()
    with pytest.raises(AssayError, match="the model shows no attention"):
        Attention()(Plain(), batch, batch.labels)
