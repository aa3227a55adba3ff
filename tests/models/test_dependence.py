"""How much states depend on words, against one backward pass for each state and against finite differences."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.models import budget
from assay.models.dependence import shares, state_gradient_norms
from assay.models.encoders import ENCODERS
from assay.types import attended
from tests import builders

LENGTHS = (7, 1, 4, 12, 9)
RECURRENT = pytest.mark.parametrize("encoder", ["lstm", "gru"])
CLOSE = {"atol": 1e-10, "rtol": 1e-10}


def texts(shape="flat", lengths=LENGTHS, width=14):
    """Texts with sentences, questions and, of pairs, a class that cannot be right."""
    batch = builders.structured(builders.batch(lengths, width=width))
    allowed = torch.arange(2) != torch.arange(len(lengths))[:, None] % 3
    return replace(batch, candidates=allowed) if shape == "paired" else batch


@torch.no_grad()
def uneven(model):
    """The model with layer norms that have learnt: else each state of a transformer has the same length."""
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter += torch.linspace(-1, 1, len(parameter))
    return model


def one_by_one(model, batch):
    """A backward pass for each state of each text, read without padding."""
    real = attended(model, batch)
    found = torch.zeros(*real.shape, batch.ids.shape[1], dtype=torch.float64)
    for row, length in enumerate(batch.lengths.tolist()):
        one = replace(batch[row : row + 1], candidates=None)
        sentences = None if one.sentences is None else one.sentences[:, :length]
        one = replace(one, ids=one.ids[:, :length], mask=one.mask[:, :length], sentences=sentences)
        x = model.embed(one).detach().requires_grad_()
        for place, state in enumerate(model.states(x, one)[0]):
            (gradient,) = torch.autograd.grad((state**2).sum().sqrt(), x, retain_graph=True)
            found[row, place, :length] = (gradient[0] ** 2).sum(-1).sqrt()
    return found


def gradients(model, batch):
    found = state_gradient_norms(model, model.embed(batch), batch)
    assert found.isfinite().all() and not found.requires_grad
    return found


@pytest.mark.parametrize("shape", ["flat", "paired", "hierarchical"])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("concat", [False, True])
def test_it_is_what_a_backward_pass_for_each_state_gives(shape, encoder, concat):
    model, batch = uneven(builders.model(shape=shape, encoder=encoder, concat=concat)), texts(shape)
    torch.testing.assert_close(gradients(model, batch), one_by_one(model, batch), **CLOSE)


@pytest.mark.parametrize("shape", ["flat", "paired"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_markers_are_read_and_have_no_slope_of_their_own(shape, encoder):
    model, batch = uneven(builders.model(shape=shape, encoder=encoder, markers=True)), texts(shape)
    torch.testing.assert_close(gradients(model, batch), one_by_one(model, batch), **CLOSE)


@RECURRENT
@pytest.mark.parametrize("embedding", [3, 8, 21])
def test_any_size_of_embedding_beside_that_of_the_state_will_do(encoder, embedding):
    model, batch = builders.model(encoder=encoder, embedding=embedding, concat=True, markers=True), texts()
    torch.testing.assert_close(gradients(model, batch), one_by_one(model, batch), **CLOSE)


@RECURRENT
def test_single_precision_is_close(encoder):
    model, batch = builders.model(encoder=encoder, embedding=21, dtype=torch.float32), texts()
    expected = one_by_one(builders.model(encoder=encoder, embedding=21), batch)
    found = gradients(model, batch)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "transformer"])
def test_finite_differences_agree(encoder):
    model, batch, step = uneven(builders.model(encoder=encoder)), builders.batch((5,)), 1e-6
    x = model.embed(batch).detach()
    expected = torch.zeros(5, 5, x.shape[-1], dtype=torch.float64)
    for token in range(5):
        for coordinate in range(x.shape[-1]):
            moved = torch.zeros_like(x)
            moved[0, token, coordinate] = step
            sizes = [model.states(x + way * moved, batch)[0].norm(dim=-1) for way in (1, -1)]
            expected[:, token, coordinate] = ((sizes[0] - sizes[1]) / (2 * step)).detach()
    torch.testing.assert_close(gradients(model, batch)[0], expected.norm(dim=-1), atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("kind", builders.KINDS)
def test_padding_and_the_other_texts_change_nothing(kind):
    model = builders.kind(kind)
    narrow, wide = texts("flat", LENGTHS, 12), texts("flat", LENGTHS, 20)
    expected, found = gradients(model, narrow), gradients(model, wide)
    states = expected.shape[1]
    torch.testing.assert_close(found[:, :states, :12], expected, **CLOSE)
    assert (found[:, :, 12:] == 0).all() and (found[:, states:] == 0).all()
    alone = gradients(model, narrow[2:3])[0]
    torch.testing.assert_close(alone[: expected.shape[1]], expected[2, : len(alone)], **CLOSE)


@pytest.mark.parametrize("kind", builders.KINDS)
def test_small_pieces_give_the_same(kind, monkeypatch):
    model, batch = builders.kind(kind), texts()
    expected = gradients(model, batch)
    monkeypatch.setitem(budget.ROOM, "lanes", (1, 1))
    monkeypatch.setitem(budget.ROOM, "versions", (25, 25))
    torch.testing.assert_close(gradients(model, batch), expected, **CLOSE)


def test_without_context_a_state_depends_on_its_own_word_alone():
    found = gradients(builders.model(encoder="none"), texts())
    expected = torch.diag_embed(texts().mask.double())  # ∂‖e‖/∂e is a direction
    torch.testing.assert_close(found, expected)


@RECURRENT
def test_words_that_have_faded_away_are_let_go(encoder):
    """A recurrence that forgets nearly all at each step: what is let go is not to be seen."""
    model, batch = builders.model(encoder=encoder), builders.batch((30, 20))
    with torch.no_grad():
        for way in (model.encoder.ahead, model.encoder.behind):
            forget = way.bias_hh_l0[8:16]  # the forget gate of the one, the update gate of the other
            forget -= 3.0
            way.weight_hh_l0 *= 0.1
    found, expected = gradients(model, batch), one_by_one(model, batch)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)
    assert ((found == 0) & (expected > 0)).any()


def test_a_state_of_length_0_depends_on_nothing():
    model, batch = builders.model(encoder="average"), texts()
    with torch.no_grad():
        model.encoder.projection.bias.fill_(-1e3)
    assert (gradients(model, batch) == 0).all()
    model = builders.model(encoder="lstm")
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.zero_()
    assert (gradients(model, batch) == 0).all()


@pytest.mark.parametrize("kind", [name for name in builders.KINDS if name != "transformer-sparse"])
def test_half_precision_gives_about_the_same(kind):
    """But where rounding decides which weights within the encoder are 0, and with them the gradients."""
    exact, batch = builders.kind(kind), texts()
    uneven(exact)
    model = builders.kind(kind, dtype=torch.bfloat16)
    model.load_state_dict(exact.state_dict())
    found, expected = gradients(model, batch), gradients(exact, batch)
    assert found.dtype == torch.float32
    assert (found - expected).norm() < 0.1 * expected.norm()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", builders.KINDS)
def test_a_gpu_gives_the_same(kind):
    model, batch = builders.kind(kind, dtype=torch.float32), texts()
    expected = gradients(model, batch)
    found = gradients(model.to("cuda"), batch.to("cuda")).cpu()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_shares_add_up_to_one_where_there_is_anything_to_share():
    found = shares(torch.tensor([[[1.0, 3.0, 0.0], [0.0, 0.0, 0.0]]]))
    assert found.dtype == torch.float64
    assert found.tolist() == [[[0.25, 0.75, 0.0], [0.0, 0.0, 0.0]]]
