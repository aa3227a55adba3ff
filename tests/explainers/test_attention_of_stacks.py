"""What is read off stacks of self-attention, against the library's own matrices, finite differences and loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.attention import Attention, AttentionGradient, AttentionXGradient, AttentionXValue, check_number
from assay.explainers.attention_layers import Chefer, Flow, Rollout
from assay.explainers.choice import chosen
from assay.explainers.needs import unfit
from assay.models.hf_attention import implemented
from assay.models.stages import recorded
from tests import builders, pretrained
from tests.explainers.graphs import largest_flow

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # in DeBERTa

ALL = pytest.mark.parametrize("architecture", pretrained.ARCHITECTURES)
EDITABLE = pytest.mark.parametrize("architecture", pretrained.EDITABLE)
SOME = pytest.mark.parametrize("architecture", ["bert", "modernbert", "gpt2", "llama", "deberta-v2"])
OF_STACKS = (
    *("attention", "attention_gradient", "attention_x_gradient", "attention_x_value"),
    *("rollout", "flow", "chefer", "value_zeroing"),
)
TARGET = torch.tensor([2, 0, 1, 2])
CLOSE = {"atol": 1e-6, "rtol": 1e-5}


@torch.no_grad()
def shown(model, batch):
    """For each text alone: the library's own attention [L, H, S, S], the place that is read, and the word of each."""
    for row in range(len(batch)):
        one = batch[row : row + 1]
        given = model.sequence(model.embed(one), one)
        arguments = {"inputs_embeds": given.embeddings, "attention_mask": given.mask.long()}
        if model.traits.typed:
            arguments["token_type_ids"] = given.types
        with implemented(model.inner, "eager"):
            layers = model.inner(**arguments, output_attentions=True).attentions
        causal = model.inner.config.model_type in pretrained.CAUSAL
        read = given.mask.shape[1] - 1 if causal else 0
        yield np.stack([layer[0].numpy() for layer in layers]), read, given.token_index[0].tolist()


def of_words(values, places, width):
    """The sum over the subwords of each word."""
    scores = np.zeros(width)
    for value, word in zip(values, places, strict=True):
        if word >= 0:
            scores[word] += value
    return scores


def expected(model, batch, rule):
    """The scores that a rule for one text, from its layers and the place that is read to its places, gives words."""
    width = batch.ids.shape[1]
    rows = [of_words(rule(layers, read), places, width) for layers, read, places in shown(model, batch)]
    return torch.tensor(np.stack(rows))


@ALL
def test_attention_is_what_the_classifier_reads_of_the_last_layer(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    found = Attention()(model, batch, TARGET).double()
    torch.testing.assert_close(found, expected(model, batch, lambda layers, read: layers[-1].mean(0)[read]), **CLOSE)
    assert (found.sum(-1) > 0.3).all() and (found.sum(-1) < 1).all()  # the markers have the rest


@SOME
def test_a_layer_and_a_head_can_be_named(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    for text, rule in (
        ("attention(layer=0)", lambda layers, read: layers[0].mean(0)[read]),
        ("attention(head=2)", lambda layers, read: layers[-1][2, read]),
        ("attention(layer=0, head=3)", lambda layers, read: layers[0][3, read]),
    ):
        found = chosen(text, EXPLAINERS)(model, batch, TARGET).double()
        torch.testing.assert_close(found, expected(model, batch, rule), **CLOSE)


def test_layers_below_attention_that_pools_are_read_by_it():
    model, batch = builders.model(encoder="transformer"), builders.batch((5, 1, 3))
    first, _, pooled = model.layered(model.embed(batch), batch).attention
    told = torch.einsum("bi,bij->bj", pooled, first[:, 1]).detach()
    torch.testing.assert_close(Attention(0, 1)(model, batch, batch.labels), told)


@pytest.mark.parametrize("queries", [("Is it good?", "A film", "Not fun!", "Why?")])
def test_what_goes_to_a_question_is_not_shown(queries):
    model, batch = pretrained.pretrained("bert"), pretrained.batch(queries=queries)
    found = Attention()(model, batch, TARGET).double()
    torch.testing.assert_close(found, expected(model, batch, lambda layers, read: layers[-1].mean(0)[read]), **CLOSE)
    assert (found.sum(-1) < Attention()(model, pretrained.batch(), TARGET).sum(-1)).all()


@ALL
def test_rollout_is_a_row_of_the_product_of_all_layers(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()

    def rule(layers, read):
        product = np.eye(layers.shape[-1])
        for layer in layers:
            product = (layer.mean(0) + np.eye(len(product))) / 2 @ product
        return product[read]

    torch.testing.assert_close(Rollout()(model, batch, TARGET).double(), expected(model, batch, rule), **CLOSE)


@SOME
def test_flow_solves_the_linear_programme_for_all_pieces_of_a_word(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch(("Dull!", "A watchable film"))
    found = Flow()(model, batch, TARGET[:2]).double()
    for row, (layers, read, places) in enumerate(shown(model, batch)):
        pipes = [(layer.mean(0) + np.eye(layer.shape[-1])) / 2 for layer in layers]
        top = np.eye(layers.shape[-1])[read]
        for word in range(batch.lengths[row]):
            subwords = [place for place, owner in enumerate(places) if owner == word]
            assert found[row, word].item() == pytest.approx(largest_flow(pipes, top, *subwords), abs=1e-6)
    assert (batch.subwords >= 0).sum(-1).max() == 2 and (found <= 1).all()


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_flow_to_a_word_is_more_than_to_a_piece_of_it_and_no_more_than_to_all_of_them(architecture):
    texts = ("A very unwatchable film",)
    whole = Flow()(pretrained.pretrained(architecture), pretrained.batch(texts), TARGET[:1])[0, 2]
    parts = Flow()(pretrained.pretrained(architecture, words=False), pretrained.batch(texts, words=False), TARGET[:1])
    subwords = parts[0, 2 : 2 + int((pretrained.batch(texts).subwords[0, 2] >= 0).sum())]
    assert len(subwords) > 1 and subwords.max() - 1e-6 <= whole <= min(1.0, float(subwords.sum()))


class Moved:
    """One weight of one layer moved, another one in each text of a batch."""

    def __init__(self, layer, cells, step):
        self.layer, self.cells, self.step = layer, cells, step

    def at(self, layer):
        return self if layer == self.layer else None

    def __call__(self, weights, mask):
        moved = weights.clone()
        if weights.dim() == 3:  # each place that attends is a row
            moved = moved.reshape(len(self.cells), -1, *weights.shape[1:]).transpose(1, 2)
        for row, cell in enumerate(self.cells):
            moved[(row, *cell)] += self.step
        return moved.transpose(1, 2).reshape(weights.shape) if weights.dim() == 3 else moved


@torch.no_grad()
def differences(model, one, measure, step):
    """The derivative of a measure of the logits at each weight of each layer, by central differences [L, H, S, S]."""
    weights = model.layered(model.embed(one), one).attention[:-1]
    gradients = []
    for number, layer in enumerate(weights):
        cells = list(np.ndindex(*layer.shape[1:]))
        many = one[torch.zeros(len(cells), dtype=torch.long)]
        up, down = (
            measure(model(model.embed(many), many, Moved(number, cells, sign * step)).logits) for sign in (1, -1)
        )
        gradients.append(((up - down) / (2 * step)).reshape(layer.shape[1:]).numpy())
    return np.stack(gradients)


# Some compute parts in single precision whatever their own is: there small steps drown in rounding.
@pytest.mark.parametrize(
    ("architecture", "step"), [("bert", 1e-6), ("albert", 1e-6), ("gpt2", 1e-6), ("modernbert", 1e-2), ("qwen2", 1e-2)]
)
def test_slopes_at_weights_are_those_of_finite_differences(architecture, step):
    model, one = pretrained.pretrained(architecture), pretrained.batch(("A dull watch!",))
    ((layers, read, places),) = shown(model, one)
    gradients = differences(model, one, lambda logits: logits.softmax(-1)[:, 1], step)
    relevance = np.eye(layers.shape[-1])
    for layer in np.maximum(layers * differences(model, one, lambda logits: logits[:, 1], step), 0):
        relevance = relevance + layer.mean(0) @ relevance
    for explainer, scores in (
        (AttentionGradient(), gradients.sum((0, 1, 2))),
        (AttentionXGradient(), (gradients * layers).sum((0, 1, 2))),
        (Chefer(), relevance[read]),
    ):
        told = torch.tensor(of_words(scores, places, one.ids.shape[1]))
        found = explainer(model, one, torch.tensor([1]))[0].double()
        torch.testing.assert_close(found, told, atol=1e-4 * float(told.abs().max()), rtol=0)


@ALL
def test_slopes_of_all_classes_cancel_and_tell_for_from_against(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    for explainer in (AttentionGradient(), AttentionXGradient()):
        scores = torch.stack([explainer(model, batch, torch.full((4,), label)) for label in range(3)])
        assert (scores > 0).any() and (scores < 0).any()
        torch.testing.assert_close(scores.sum(0), torch.zeros_like(scores[0]), atol=1e-6, rtol=0)


def split(model, states, layer):
    """The values [H, S, K] of a layer for its input, and the part [H, K, M] of each head in what merges them."""
    kind, heads = model.inner.config.model_type, 4
    if kind == "bert":
        part = model.inner.bert.encoder.layer[layer].attention
        values, merge = part.self.value(states), part.output.dense.weight.T
    elif kind == "gpt2":
        part = model.inner.transformer.h[layer]
        values, merge = part.attn.c_attn(part.ln_1(states))[:, 32:], part.attn.c_proj.weight
    else:
        part = model.inner.model.layers[layer]
        values, merge = part.self_attn.v_proj(part.input_layernorm(states)), part.self_attn.o_proj.weight.T
        values = values.reshape(-1, 2, 4).repeat_interleave(2, dim=1).flatten(1)  # two heads share each value
    return values.reshape(len(values), heads, -1).transpose(0, 1), merge.reshape(heads, -1, merge.shape[-1])


@pytest.mark.parametrize("layer", [None, 0, 1])
@pytest.mark.parametrize("architecture", ["bert", "gpt2", "llama"])
@torch.no_grad()
def test_weighted_values_are_the_norms_of_what_is_added_up(architecture, layer):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    found = AttentionXValue(layer)(model, batch, TARGET).double()
    number = 1 if layer is None else layer
    for row, (layers, read, places) in enumerate(shown(model, batch)):
        one = batch[row : row + 1]
        answer, _ = model.read(model.sequence(model.embed(one), one), output_hidden_states=True)
        values, merge = split(model, answer.hidden_states[number][0], number)
        norms = [
            sum(layers[number, head, read, place] * values[head, place] @ merge[head] for head in range(4)).norm()
            for place in range(len(places))
        ]
        told = torch.tensor(of_words(norms, places, batch.ids.shape[1]))
        torch.testing.assert_close(found[row], told, **CLOSE)


@EDITABLE
@torch.no_grad()
def test_what_heads_make_of_values_adds_up_to_what_the_layer_merges(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    for stage in recorded(model, batch)[1]:
        sums = torch.einsum("bhij,bhjm->bim", stage.weights, stage.merged())
        given = next(given for part, given in stage.call.inputs if part is stage.merge)
        torch.testing.assert_close(sums + stage.merge(torch.zeros_like(given)), stage.merge(given))


@pytest.mark.parametrize("name", [name for name in OF_STACKS if name != "flow"])
@pytest.mark.parametrize("architecture", ["bert", "gpt2", "modernbert"])
def test_the_score_of_a_word_is_the_sum_over_its_pieces(architecture, name):
    texts = ("Dull!", "A very unwatchable film", "This is not a good film")
    words, subwords = pretrained.batch(texts), pretrained.batch(texts, words=False)
    target = torch.tensor([1, 2, 0])
    whole = EXPLAINERS[name](pretrained.pretrained(architecture), words, target)
    parts = EXPLAINERS[name](pretrained.pretrained(architecture, words=False), subwords, target)
    counts = (words.subwords >= 0).sum(-1)
    for row in range(3):
        owner = torch.arange(words.ids.shape[1]).repeat_interleave(counts[row])
        told = torch.zeros_like(whole[row]).index_add(0, owner, parts[row, : len(owner)])
        torch.testing.assert_close(whole[row], told)
    assert counts.max() > 1


@pytest.mark.parametrize("name", OF_STACKS)
@pytest.mark.parametrize("architecture", ["bert", "modernbert", "gpt2", "llama"])
def test_texts_are_explained_together_as_alone(architecture, name):
    model, batch = pretrained.pretrained(architecture), pretrained.batch()
    together = EXPLAINERS[name](model, batch, TARGET)
    assert (together[~batch.mask] == 0).all() and together.isfinite().all()
    for row in range(len(batch)):
        one = batch[row : row + 1].narrowed(int(batch.lengths[row]))
        alone = EXPLAINERS[name](model, one, TARGET[row : row + 1])[0]
        torch.testing.assert_close(together[row, : len(alone)], alone)


@pytest.mark.parametrize("name", OF_STACKS)
def test_other_precisions_work_and_the_model_is_left_as_it_was(name):
    batch = pretrained.batch(("Dull!", "A very good film"))
    exact, single, half = (
        pretrained.pretrained("bert", dtype=dtype) for dtype in (torch.float64, torch.float32, torch.bfloat16)
    )
    before = {key: tensor.clone() for key, tensor in half.state_dict().items()}
    hooks = [(len(part._forward_hooks), len(part._forward_pre_hooks), part.training) for part in half.modules()]
    found = [EXPLAINERS[name](model, batch, TARGET[:2]) for model in (exact, single, half)]
    assert [scores.dtype for scores in found] == [torch.float64, torch.float32, torch.float32]
    assert all(scores.isfinite().all() for scores in found)
    torch.testing.assert_close(found[0].float(), found[1], atol=1e-5, rtol=1e-3)
    assert all(torch.equal(before[key], tensor) for key, tensor in half.state_dict().items())
    assert hooks == [(len(part._forward_hooks), len(part._forward_pre_hooks), part.training) for part in half.modules()]
    assert half.inner.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("architecture", pretrained.CLOSED)
def test_attention_that_cannot_be_edited_is_still_read(architecture):
    model, batch = pretrained.pretrained(architecture), pretrained.batch(("Dull!",))
    for name in OF_STACKS:
        reason = unfit(EXPLAINERS[name], model)
        if name not in ("attention_x_value", "value_zeroing"):
            assert reason is None and (EXPLAINERS[name](model, batch, TARGET[:1]) != 0).any()
            continue
        assert reason.endswith("out of reach: the architecture does not use the library's attention interface")
        with pytest.raises(AssayError, match="out of reach"):
            EXPLAINERS[name](model, batch, TARGET[:1])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("attention(layer=2)", "the model has layers 0 to 1, and no layer 2"),
        ("attention(head=4)", "a layer of the model has heads 0 to 3, and no head 4"),
        ("attention_x_value(layer=7)", "the model has layers 0 to 1, and no layer 7"),
        ("state_gradient", "the model does not end in a linear decoder over one attention"),
    ],
)
def test_what_a_stack_does_not_have_is_refused(text, sentence):
    model, batch = pretrained.pretrained("bert"), pretrained.batch(("Dull!",))
    with pytest.raises(AssayError, match=sentence):
        chosen(text, EXPLAINERS)(model, batch, TARGET[:1])


@pytest.mark.parametrize(
    ("text", "encoder", "reason"),
    [
        ("attention(layer=0)", "lstm", "the model has no stack of self-attention layers"),
        ("attention(head=0)", "transformer", "the attention that pools has no heads; name a layer"),
        ("attention(layer=0)", "transformer", None),
        ("attention_x_value(layer=0)", "gru", "the model has no stack of self-attention layers"),
        ("attention_x_value(layer=0)", "transformer", None),
        ("attention", "cnn", None),
    ],
)
def test_layers_are_asked_of_stacks_alone(text, encoder, reason):
    assert unfit(chosen(text, EXPLAINERS), builders.model(encoder=encoder)) == reason


@pytest.mark.parametrize("number", [-1, "top", 1.5, True])
def test_layers_and_heads_have_numbers(number):
    with pytest.raises(AssayError, match=f"head must be a whole number of at least 0, got {number!r}."):
        check_number("head", number)


def test_numbers_below_0_are_refused():
    for text in ("attention(layer=-1)", "attention(head=-1)", "attention_x_value(layer=-2)"):
        with pytest.raises(AssayError, match="at least 0"):
            chosen(text, EXPLAINERS)
