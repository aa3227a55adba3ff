"""Value zeroing against models in which a value really is zero, one place and one layer at a time."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cosine
from torch import nn

from assay import costs
from assay.errors import AssayError
from assay.explainers import attention_layers as values
from assay.explainers.attention import AttentionXValue
from assay.explainers.attention_layers import ValueZeroing
from assay.explainers.needs import unfit
from assay.models import budget
from assay.models.encoders import positions
from assay.models.stages import changed, recorded
from assay.types import Output
from tests import builders, pretrained

TEXTS = ("Dull!", "A very unwatchable film", "Not fun, is it?")
CLOSE = {"atol": 1e-6, "rtol": 1e-5}

VALUES = {  # of a block: the map that makes values, and where these begin in what it returns
    "bert": lambda block: (block.attention.self.value, 0),
    "albert": lambda block: (block.albert_layers[0].attention.value, 0),
    "distilbert": lambda block: (block.attention.v_lin, 0),
    "modernbert": lambda block: (block.attn.Wqkv, 32),
    "gpt2": lambda block: (block.attn.c_attn, 32),
    "llama": lambda block: (block.self_attn.v_proj, 0),
}


def outputs(model, one, zeroed=None):
    """What each layer returns for one text, if in one layer the value of one place is 0."""
    seen = []

    def zero(begin):
        def hook(module, given, made):
            if zeroed is None or len(seen) != zeroed[0]:
                return None
            made = made.clone()
            made[:, zeroed[1], begin:] = 0
            return made

        return hook

    hooks = []
    for block in model.blocks:
        maker, begin = VALUES[model.inner.config.model_type](block)
        hooks += [
            maker.register_forward_hook(zero(begin)),
            block.register_forward_hook(lambda module, given, made: seen.append(made[0].numpy())),
        ]
    model(model.embed(one), one)
    for hook in hooks:
        hook.remove()
    return seen


def rolled(original, without, top):
    """Value zeroing by hand: `without` gives what each layer returns if in one layer the value of a place is 0."""
    size = len(top)
    product = np.eye(size)
    for layer, before in enumerate(original):
        mixing = np.zeros((size, size))
        for place in range(size):
            after = without(layer, place)[layer]
            mixing[:, place] = [cosine(before[other], after[other]) for other in range(size)]
        product = mixing / mixing.sum(1, keepdims=True) @ product
    return top @ product


@pytest.mark.parametrize("architecture", VALUES)
@torch.no_grad()
def test_a_value_that_is_really_zero_changes_as_much(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch(TEXTS)
    found = ValueZeroing()(model, batch, batch.labels)
    for row in range(len(TEXTS)):
        one = batch[row : row + 1]
        *_, reading = model.layered(model.embed(one), one).attention
        share = rolled(
            outputs(model, one), lambda layer, place, one=one: outputs(model, one, (layer, place)), reading[0].numpy()
        )
        assert share.sum() == pytest.approx(1)
        words = model.token_index(one)[0]
        told = [share[(words == word).numpy()].sum() for word in range(batch.ids.shape[1])]
        torch.testing.assert_close(found[row].double(), torch.tensor(told), **CLOSE)


@torch.no_grad()
def test_pooled_words_of_a_transformer_start_from_the_attention_that_pools():
    model, batch = pretrained.attentive("bert"), pretrained.batch(TEXTS)
    found = ValueZeroing()(model, batch, batch.labels)
    for row in range(len(TEXTS)):
        one = batch[row : row + 1]
        words, pooled = model.token_index(one)[0], model(model.embed(one), one).attention[-1][0]
        top = np.array([float(pooled[word] / (words == word).sum()) if word >= 0 else 0.0 for word in words])
        share = rolled(outputs(model, one), lambda layer, place, one=one: outputs(model, one, (layer, place)), top)
        told = [share[(words == word).numpy()].sum() for word in range(batch.ids.shape[1])]
        torch.testing.assert_close(found[row].double(), torch.tensor(told), **CLOSE)


def computed(model, one, zeroed=None):
    """What each block of a network of ours returns for one text, step by step."""
    encoder, x, mask = model.encoder, model.embed(one), one.mask
    if model.architecture.markers:
        x, mask = model.surrounded(x, mask)
    states, seen = encoder.project(x) + positions(x.shape[1], encoder.size).to(x), []
    for number, block in enumerate(encoder.blocks):
        query, key, value = (
            part.unflatten(-1, (block.heads, -1)).transpose(1, 2)
            for part in block.project(block.before_attention(states)).chunk(3, dim=-1)
        )
        if zeroed is not None and zeroed[0] == number:
            value = value.index_fill(2, torch.tensor([zeroed[1]]), 0)
        weights = torch.einsum("bhid,bhjd->bhij", query, key).div(query.shape[-1] ** 0.5).softmax(-1)
        states = states + block.merge((weights @ value).transpose(1, 2).flatten(2))
        states = states + block.mix(block.before_mixing(states))
        seen.append(states[0].numpy())
    return seen


@pytest.mark.parametrize("markers", [False, True])
@torch.no_grad()
def test_networks_of_our_own_are_run_layer_by_layer_too(markers):
    lengths = (5, 1, 3)
    model, batch = builders.model(encoder="transformer", markers=markers), builders.batch(lengths, width=6)
    found = ValueZeroing()(model, batch, batch.labels)
    for row, length in enumerate(lengths):
        one = batch[row : row + 1].narrowed(length)
        pooled = model(model.embed(one), one).attention[-1][0].numpy()
        top = np.concatenate([[0], pooled, [0]]) if markers else pooled
        share = rolled(computed(model, one), lambda layer, place, one=one: computed(model, one, (layer, place)), top)
        told = torch.tensor(share[1:-1] if markers else share)
        torch.testing.assert_close(found[row, :length].double(), told, **CLOSE)
        assert (found[row, length:] == 0).all()


@pytest.mark.parametrize("architecture", pretrained.EDITABLE)
@torch.no_grad()
def test_a_layer_that_is_run_alone_returns_what_it_returned(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    output, stages = recorded(model, batch)
    torch.testing.assert_close(output.logits, model(model.embed(batch), batch).logits)
    rows = torch.tensor([2, 0, 3, 3, 1])
    with changed(model, lambda each: each):
        for stage in stages:
            torch.testing.assert_close(stage.call.again(rows), stage.call.states[rows])
    assert len(stages) == 2 and unfit(ValueZeroing(), model) is None


@pytest.mark.parametrize("architecture", pretrained.CAUSAL)
@torch.no_grad()
def test_nothing_comes_from_later_places_where_a_model_reads_from_left_to_right(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch(TEXTS)
    real = model.sequence(model.embed(batch), batch).mask
    for stage in recorded(model, batch)[1]:
        mixed = values._mixed(model, stage, real)
        rows = mixed.where(real[..., None], 0)
        assert (rows.triu(1) == 0).all() and (rows.tril() > 0).any()
        assert (rows * ~real[:, None] == 0).all()  # nor from padding
        torch.testing.assert_close(rows.sum(-1), real.to(rows))


def test_the_number_of_places_read_at_once_changes_nothing(monkeypatch):
    model, batch = pretrained.pretrained("bert"), pretrained.batch()
    at_once = ValueZeroing()(model, batch, batch.labels)
    monkeypatch.setitem(budget.ROOM, "versions", (60, 60))
    torch.testing.assert_close(ValueZeroing()(model, batch, batch.labels), at_once)


def test_a_layer_counts_as_a_part_of_the_model():
    model, batch = pretrained.pretrained("bert"), pretrained.batch(TEXTS)
    places = int(model.sequence(model.embed(batch), batch).mask.sum())
    with costs.measured() as cost:
        ValueZeroing()(model, batch, batch.labels)
    assert (cost.forward, cost.backward) == (len(TEXTS) + places, 0)


class Scaled(nn.Module):
    """A linear map that is not given what heads add up, but half of it."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x / 2)


def test_heads_that_are_not_merged_by_one_linear_map_are_refused_for_their_values():
    model, batch = pretrained.pretrained("llama"), pretrained.batch(TEXTS)
    attention = model.blocks[0].self_attn
    attention.o_proj = Scaled(attention.o_proj)
    assert "does not go through one linear map" in unfit(AttentionXValue(), model)
    assert unfit(ValueZeroing(), model) is None
    with pytest.raises(AssayError, match="one linear map"):
        AttentionXValue()(model, batch, batch.labels)


def test_layers_that_remember_are_refused():
    model, batch = pretrained.pretrained("bert"), pretrained.batch(TEXTS)
    block = model.blocks[1]
    forward, calls = block.forward, []

    def remembering(*given, **named):
        calls.append(1)
        return forward(*given, **named) * len(calls)

    block.forward = remembering
    assert "does not return what it returned in the model" in unfit(ValueZeroing(), model)
    with pytest.raises(AssayError, match="run alone"):
        ValueZeroing()(model, batch, batch.labels)


def test_layers_that_cannot_be_told_apart_are_refused(monkeypatch):
    model, batch = pretrained.pretrained("bert"), pretrained.batch(TEXTS)
    monkeypatch.setattr(type(model), "blocks", nn.ModuleList([model.blocks[0]]))
    assert unfit(ValueZeroing(), model) == "the layers of the model cannot be told apart"
    with pytest.raises(AssayError, match="cannot be told apart"):
        ValueZeroing()(model, batch, batch.labels)


class Shown:
    """A stack of self-attention that shows its weights and nothing else."""

    layers = 1

    def embed(self, batch):
        return torch.zeros(*batch.ids.shape, 1)

    def __call__(self, x, batch, edit=None):
        return self.layered(x, batch)

    def layered(self, x, batch):
        return Output(torch.zeros(len(x), 2), ())

    def token_index(self, batch):
        return batch.ids


def test_models_that_do_not_show_their_layers_are_refused():
    assert unfit(ValueZeroing(), Shown()) == "the model does not show its layers one by one"
    assert unfit(ValueZeroing(), builders.model()) == "the model has no stack of self-attention layers"


@torch.no_grad()
def test_another_thread_reads_with_all_its_values():
    model, batch = builders.model(encoder="transformer"), builders.batch()
    x, told = model.embed(batch), []
    plain = model(x, batch).logits

    def read():
        with torch.no_grad():
            told.append(model(x, batch).logits)

    with changed(model, torch.zeros_like):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
        assert not torch.allclose(model(x, batch).logits, plain)
    assert torch.equal(told[0], plain) and torch.equal(model(x, batch).logits, plain)
