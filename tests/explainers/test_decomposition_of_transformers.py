"""Contextual decomposition of the library's transformers, and the steps that it knows."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from assay.errors import AssayError
from assay.explainers.decomposition import WordDecomposition, decomposed, outermost, undivided
from assay.explainers.decomposition_rules import Blocks, Dividing, plain
from assay.explainers.relevance import Lrp
from tests import builders, pretrained

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # DeBERTa's

ROUNDED = {"modernbert", "llama", "qwen2", "deberta"}
"""They round to float32 on their way."""


def shaken(model):
    """The model with random biases and norms."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim == 1:
                each.add_(torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each) * 0.2)
    return model


def sets(batch, count=4):
    generator = torch.Generator().manual_seed(3)
    chosen = torch.rand(len(batch), count, batch.ids.shape[1], generator=generator) < 0.4
    chosen[:, 0], chosen[:, 1] = False, True
    return chosen


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert", "modernbert", "gpt2", "llama", "deberta"])
def test_beta_and_gamma_are_the_logits_without_their_bias(architecture):
    model, batch = shaken(pretrained.pretrained(architecture)), pretrained.batch()
    found = decomposed(model, batch, sets(batch))
    biases = [each for each in model.parameters() if id(each) in outermost(model)]
    with torch.no_grad():
        expected = model(model.embed(batch), batch).logits - sum(biases)
    tolerance = 1e-6 if architecture in ROUNDED else 1e-10
    whole = expected[:, None].expand_as(found.relevant)
    torch.testing.assert_close(found.relevant + found.rest, whole, atol=tolerance, rtol=0)
    assert (found.relevant[:, 0] == 0).all()
    assert (found.relevant[:, 1].abs().amax(-1) > 1e-4).all()
    assert len(biases) == (architecture not in ("gpt2", "llama", "qwen2"))


def test_of_a_transformer_without_bends_and_biases_it_is_relevance_propagation():
    """With weights and deviations held, what is left is linear; both methods then follow it, each in its own way."""
    model = pretrained.attentive()
    for layer in model.inner.encoder.layer:
        layer.intermediate.intermediate_act_fn = nn.Identity()
    with torch.no_grad():
        for name, each in model.named_parameters():
            if "position" in name or "token_type" in name or (name.endswith("bias") and name != "decoder.bias"):
                each.zero_()
    batch = pretrained.batch()
    target = torch.tensor([0, 2, 1, 1])
    expected = Lrp().shares(model, batch, target).tokens
    torch.testing.assert_close(WordDecomposition()(model, batch, target), expected, atol=1e-7, rtol=1e-5)


def test_pieces_of_a_word_are_chosen_together():
    model, batch = pretrained.pretrained("bert"), pretrained.batch(("unwatchable film",))
    assert (batch.subwords >= 0).sum(-1).max() > 1
    found = decomposed(model, batch, torch.tensor([[[True, False], [False, True]]]))
    assert (found.relevant.abs().amax(-1) > 1e-5).all()


class Cubed(nn.Module):
    def forward(self, x):
        return x**3


def test_a_step_without_a_rule_is_refused_by_name():
    model = pretrained.pretrained("distilbert")
    model.inner.classifier = nn.Sequential(model.inner.classifier, Cubed())
    assert undivided(model) == (
        "contextual decomposition has no rule for a step of DistilBertForSequenceClassification (pow)"
    )
    with pytest.raises(AssayError, match="no rule for a step"):
        WordDecomposition()(model, pretrained.batch(), torch.tensor([0, 1, 2, 0]))


def parts(walk, rows):
    whole, part, _ = walk.blocks.cut(plain(rows))
    return whole, part


def test_what_only_weighs_is_undivided():
    walk = Dividing(Blocks(sets=2))
    with walk:
        x = walk.stacked(torch.randn(3 * 4, 5, dtype=torch.float64))
        weights = (x * x).softmax(-1)
        assert weights.lost == "mul"
        product = weights * x
        assert product.lost is None
        whole, part = parts(walk, product)
        expected = plain(weights)[:4] * plain(x)[4:8]
        torch.testing.assert_close(part[0], expected)
        torch.testing.assert_close(whole, plain(weights)[:4] * plain(x)[:4])


def test_what_is_compared_chooses_for_the_parts_as_for_the_text():
    walk = Dividing(Blocks(sets=1))
    with walk:
        x = walk.stacked(torch.tensor([[2.0, -1.0], [-3.0, 4.0]]))
        chosen = torch.where(x > 0, x, 0.0)
    whole, part = parts(walk, chosen)
    assert whole.tolist() == [[2.0, 0.0]]
    assert part.tolist() == [[[-3.0, 0.0]]]


def test_constants_beside_words_are_no_part_of_them():
    walk = Dividing(Blocks(sets=1))
    with walk:
        x = walk.stacked(torch.ones(2 * 3, 2))
        joined = torch.cat([x, torch.ones(6, 1)], dim=-1)
        assert parts(walk, joined)[1][..., 2].eq(0).all()
        picked = torch.where(torch.tensor([True, False]), x, 5.0)
        assert torch.equal(parts(walk, picked)[0], torch.tensor([[1.0, 5.0]]).expand(3, 2))
        assert torch.equal(parts(walk, picked)[1][0], torch.tensor([[1.0, 0.0]]).expand(3, 2))


@pytest.mark.parametrize(
    "step",
    [
        lambda x: x + 2.0,
        lambda x: x - 2.0,
        lambda x: 2.0 - x,
        lambda x: x.clone().add_(2.0),
        lambda x: x + torch.ones(3),
    ],
    ids=["add", "subtract", "reverse", "in place", "tensor"],
)
def test_a_constant_is_shared_in_proportion(step):
    walk = Dividing(Blocks(sets=1))
    whole, part = torch.tensor([[4.0, -1.0, 0.0]]), torch.tensor([[1.0, 2.0, 0.0]])
    with walk:
        x = walk.stacked(torch.cat([whole, part]))
        total, found = parts(walk, step(x))
    constant = step(torch.zeros(3))
    sign = step(torch.ones(3)) - constant
    owned = torch.tensor([[1 / (1 + 3), 2 / (2 + 3), 0.0]])
    torch.testing.assert_close(total, step(whole))
    torch.testing.assert_close(found[0], sign * part + owned * constant)


def test_what_is_written_into_a_constant_is_refused():
    with Dividing(Blocks(sets=1)) as walk:
        x, room = walk.stacked(torch.ones(2, 2)), torch.zeros(2, 2)
        with pytest.raises(AssayError, match="writes into a constant"):
            room[:, 0] = x[:, 0]


def test_rows_that_are_not_those_of_texts_are_refused():
    with Dividing(Blocks(sets=2)) as walk:
        x = walk.stacked(torch.ones(3, 4))
        with pytest.raises(AssayError, match="whose the rows"):
            torch.relu(x.T) + 1.0


def test_another_precision_is_no_other_answer():
    batch, target = builders.texts(), torch.tensor([0, 1, 1, 0])
    half = WordDecomposition()(builders.kind("gru", dtype=torch.bfloat16), batch, target)
    single = WordDecomposition()(builders.kind("gru", dtype=torch.bfloat16).float(), batch, target)
    assert torch.equal(half, single)
