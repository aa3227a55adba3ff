"""Encoders against plain re-computations, and what padding may not do."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from assay.errors import AssayError
from assay.models.encoders import ALIGNMENTS, ENCODERS, positions
from assay.models.projections import softmax
from assay.types import token_logits
from tests import builders


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("markers", [False, True])
def test_what_stands_on_padding_never_reaches_a_state(encoder, markers):
    model, batch = builders.model(encoder=encoder, markers=markers), builders.batch(width=15)
    x = model.embed(batch)
    loud = torch.where(batch.mask[..., None], x, torch.full_like(x, 1e3))
    torch.testing.assert_close(model.states(loud, batch), model.states(x, batch), rtol=0, atol=0)
    assert (model.states(x, batch)[~batch.mask] == 0).all()


def lstm_by_hand(network, x, reverse):
    """One direction, one step at a time, from the textbook."""
    w, u, b, c = (getattr(network, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    hidden = cell = torch.zeros(network.hidden_size, dtype=x.dtype)
    states = []
    for token in x.flip(0) if reverse else x:
        i, f, g, o = (w @ token + b + u @ hidden + c).chunk(4)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        states.append(hidden)
    stacked = torch.stack(states)
    return stacked.flip(0) if reverse else stacked


def test_the_lstm_reads_each_text_from_its_own_two_ends():
    model, batch = builders.model(encoder="lstm"), builders.batch()
    x = model.embed(batch)
    states = model.states(x, batch)
    for row, length in enumerate(batch.lengths):
        ahead = lstm_by_hand(model.encoder.ahead, x[row, :length], reverse=False)
        behind = lstm_by_hand(model.encoder.behind, x[row, :length], reverse=True)
        by_hand = torch.cat([ahead, behind], -1)
        torch.testing.assert_close(states[row, :length], by_hand)


def test_the_convolution_is_a_dot_product_over_each_window():
    model, batch = builders.model(encoder="cnn"), builders.batch()
    x = model.embed(batch)
    states = model.states(x, batch)
    row, place = 0, 2
    padded = F.pad(x[row, :7], (0, 0, 3, 3))
    expected = []
    for layer in model.encoder.layers:
        width = layer.kernel_size[0]
        window = padded[place + 3 - width // 2 : place + 4 + width // 2]
        expected.append(((layer.weight * window.T).sum((1, 2)) + layer.bias).relu())
    torch.testing.assert_close(states[row, place], torch.cat(expected))


def test_sinusoids_have_the_published_form():
    table = positions(7, 10)
    for place in range(7):
        for pair in range(5):
            angle = place / 10_000 ** (2 * pair / 10)
            expected = torch.tensor([angle]).sin().item(), torch.tensor([angle]).cos().item()
            assert table[place, 2 * pair : 2 * pair + 2].tolist() == pytest.approx(expected, abs=1e-6)


def test_the_transformer_knows_the_order_and_the_average_does_not():
    batch = builders.batch((9,))
    turned = builders.batch((9,))
    object.__setattr__(turned, "ids", batch.ids.flip(1))
    for encoder, ordered in (("transformer", True), ("average", False), ("lstm", True), ("cnn", True)):
        model = builders.model(encoder=encoder)
        one, other = (model(model.embed(b), b).logits for b in (batch, turned))
        assert torch.allclose(one, other) is not ordered


def test_markers_are_encoded_but_never_attended():
    batch = builders.batch()
    model = builders.model(markers=True)
    output = model(model.embed(batch), batch)
    assert output.attention[0].shape == batch.ids.shape
    torch.testing.assert_close(output.attention[0].sum(-1), torch.ones(4, dtype=torch.float64))
    with torch.no_grad():
        model.embedding.weight[3] += 1
    assert not torch.allclose(model(model.embed(batch), batch).logits, output.logits)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_logits_are_the_weighted_mean_of_token_logits(encoder):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch()
    x = model.embed(batch)
    values = token_logits(model, model.states(x, batch))
    output = model(x, batch)
    torch.testing.assert_close((output.attention[0][..., None] * values).sum(1), output.logits)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_alignments_have_their_published_form(alignment):
    model, batch = builders.model(alignment=alignment), builders.batch()
    states = model.states(model.embed(batch), batch)
    part = model.alignment
    row = states[3, 5]
    if alignment == "additive":
        expected = part.score.weight[0] @ torch.tanh(part.project.weight @ row + part.project.bias)
    else:
        expected = part.project.weight[0] @ row / len(row) ** 0.5
    torch.testing.assert_close(part(states)[3, 5], expected)


def test_a_row_without_tokens_has_no_weights():
    weights = softmax(torch.randn(2, 3), torch.tensor([[True, True, False], [False, False, False]]))
    assert weights[1].tolist() == [0, 0, 0]
    assert weights[0].sum().item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("encoder", "least"), [("lstm", 1), ("conv", 1), ("average", 1), ("cnn", 2), ("transformer", 4)]
)
def test_states_are_twice_the_hidden_size_and_one_that_cannot_be_shared_out_is_refused(encoder, least):
    model, batch = builders.model(encoder=encoder, hidden=least), builders.batch()
    assert model.states(model.embed(batch), batch).shape[-1] == 2 * least
    if least > 1:
        with pytest.raises(AssayError, match=f"must be divisible by {least}, got {least + 1}"):
            builders.model(encoder=encoder, hidden=least + 1)
