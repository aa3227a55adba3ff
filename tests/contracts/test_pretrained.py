"""What the adapter owes to every architecture: the plain model's answers, edits that are carried out, no trace left."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch.nn.functional import layer_norm, pad

from assay.errors import AssayError
from assay.intervene import Prune, Within, Without, uniform
from assay.models.hf_attention import NAME, WATCH, implemented
from assay.models.hf_body import Sequence
from assay.models.hf_models import Pretrained, traits
from tests import pretrained as made

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # in DeBERTa

QUERIES = ("Is it good?", "A dull film", "unwatchable", "Not very long, is it?")
CLOSE = dict.fromkeys(made.ARCHITECTURES, 1e-10) | dict.fromkeys(("modernbert", "llama", "qwen2"), 1e-6)
"""How far double precision may be off: the library computes some attention in single precision, whatever is given."""

EVERY = pytest.mark.parametrize("architecture", made.ARCHITECTURES)
EVERY_OPEN = pytest.mark.parametrize("architecture", made.EDITABLE)
EVERY_CLOSED = pytest.mark.parametrize("architecture", made.CLOSED)
LAYERS, HEADS, WIDTH = 2, 4, 4  # of the models made for tests; a head has as many numbers


@cache
def model(architecture, dtype=torch.float64, words=True):
    return made.pretrained(architecture, dtype=dtype, words=words)


@cache
def library(architecture, dtype=torch.float64):
    """The same classifier, as the library has it."""
    plain = made.inner(architecture, dtype=dtype)
    plain.set_attn_implementation("eager")
    return plain


@torch.no_grad()
def plain_logits(architecture, texts, queries=None, dtype=torch.float64):
    """What the library says of its own tokenizer's output."""
    return library(architecture, dtype)(**encoded(architecture, texts, queries)).logits


def encoded(architecture, texts=made.TEXTS, queries=None, side="right"):
    asked = () if queries is None else (list(queries),)
    return made.tokenizer(architecture)(list(texts), *asked, padding=True, padding_side=side, return_tensors="pt")


def agree(architecture, found, expected):
    torch.testing.assert_close(found, expected, atol=CLOSE[architecture], rtol=CLOSE[architecture])


@torch.no_grad()
def logits(network, batch, edit=None):
    return network(network.embed(batch), batch, edit).logits


@torch.no_grad()
def layered(network, batch, edit=None):
    return network.layered(network.embed(batch), batch, edit)


def same(weights, mask):
    return weights


def allowed(network, batch):
    """What each place may attend to by the rules of the architecture, [B, S, S] a layer."""
    real = network.sequence(network.embed(batch), batch).mask
    apart = torch.arange(real.shape[1])[:, None] - torch.arange(real.shape[1])
    seen = real[:, None] & torch.ones_like(apart).bool()
    if network.inner.config.model_type in made.CAUSAL:
        seen = seen & (apart >= 0)
    if network.inner.config.model_type == "modernbert":
        return real, [seen, seen & (apart.abs() <= network.inner.config.local_attention // 2)]
    return real, [seen] * LAYERS


# the plain model's answers


@EVERY
@pytest.mark.parametrize("words", [True, False], ids=["words", "pieces"])
@pytest.mark.parametrize("queries", [None, QUERIES], ids=["texts", "pairs"])
def test_logits_are_the_plain_models(architecture, words, queries):
    batch = made.batch(words=words, queries=queries)
    found = logits(model(architecture, words=words), batch)
    agree(architecture, found, plain_logits(architecture, made.TEXTS, queries))
    alone = [plain_logits(architecture, [text], queries and [queries[row]]) for row, text in enumerate(made.TEXTS)]
    agree(architecture, found, torch.cat(alone))


@pytest.mark.parametrize("architecture", made.CAUSAL)
@pytest.mark.parametrize("queries", [None, QUERIES], ids=["texts", "pairs"])
def test_logits_are_the_plain_models_with_padding_on_the_left(architecture, queries):
    """Models that read the last place: all others read the first, where the library would then have padding."""
    given = encoded(architecture, queries=queries, side="left")
    counted = (given["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        expected = library(architecture, torch.float32)(**given, position_ids=counted).logits
    found = logits(model(architecture, torch.float32), made.batch(queries=queries))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@EVERY
@pytest.mark.parametrize("words", [True, False], ids=["words", "pieces"])
def test_single_precision_agrees_to_a_hundred_thousandth_and_half_precision_roughly(architecture, words):
    batch = made.batch(words=words, queries=QUERIES)
    single = logits(model(architecture, torch.float32, words), batch)
    expected = plain_logits(architecture, made.TEXTS, QUERIES, torch.float32)
    assert single.dtype == torch.float32
    assert (single - expected).abs().max() <= 1e-5 * expected.abs().max().clamp(min=1)
    half = logits(model(architecture, torch.bfloat16, words), batch)
    rough = plain_logits(architecture, made.TEXTS, QUERIES, torch.bfloat16)
    assert half.dtype == torch.bfloat16
    assert (half - rough).abs().max() <= 0.1 * rough.abs().max().clamp(min=1)


@EVERY
def test_the_attention_shown_is_that_of_the_library(architecture):
    network, batch = model(architecture), made.batch()
    given = encoded(architecture)
    with torch.no_grad():
        expected = library(architecture)(**given, output_attentions=True).attentions
    output = layered(network, batch)
    *found, read = output.attention
    assert torch.equal(layered(network, batch).logits, output.logits)
    torch.testing.assert_close(output.logits, logits(network, batch), atol=1e-10, rtol=1e-10)
    assert len(found) == LAYERS == network.layers
    assert torch.equal(read.sum(-1), torch.ones(4, dtype=read.dtype))
    real, _ = allowed(network, batch)
    for layer, other in zip(found, expected, strict=True):
        assert layer.shape == (4, HEADS, real.shape[1], real.shape[1])
        for row in range(4):
            mine, theirs = real[row], given["attention_mask"][row].bool()
            agree(architecture, layer[row][:, mine][..., mine], other[row][:, theirs][..., theirs].double())


@EVERY
def test_padding_changes_nothing(architecture):
    network, batch = model(architecture), made.batch(queries=QUERIES)
    assert batch.subwords is not None and batch.query is not None
    wide = replace(
        batch,
        ids=pad(batch.ids, (0, 5)),
        mask=pad(batch.mask, (0, 5)),
        sentences=None,
        subwords=pad(batch.subwords, (0, 2, 0, 5), value=-1),
        query=replace(batch.query, ids=pad(batch.query.ids, (0, 3)), mask=pad(batch.query.mask, (0, 3))),
    )
    torch.testing.assert_close(logits(network, wide), logits(network, batch), atol=1e-12, rtol=1e-12)
    for one, other in zip(layered(network, wide).attention, layered(network, batch).attention, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-12)
    assert torch.equal(network.token_index(wide), network.token_index(batch))


@EVERY
def test_order_and_size_of_the_batch_change_nothing(architecture):
    network, batch = model(architecture), made.batch(queries=QUERIES)
    together, order = logits(network, batch), torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(logits(network, batch[order]), together[order], atol=1e-12, rtol=1e-12)
    alone = torch.cat([logits(network, batch[row : row + 1]) for row in range(4)])
    torch.testing.assert_close(alone, together, atol=1e-12, rtol=1e-12)


@EVERY
def test_what_stands_on_padding_is_not_read(architecture):
    network, batch = model(architecture), made.batch()
    x = network.embed(batch)
    there = (
        ((batch.subwords >= 0) & batch.mask[..., None])[..., None]
        .expand(-1, -1, -1, x.shape[-1] // batch.subwords.shape[-1])
        .flatten(2)
    )
    with torch.no_grad():
        expected = network(x, batch).logits
        torch.testing.assert_close(network(x.where(there, 7.0), batch).logits, expected, atol=1e-12, rtol=1e-12)


@EVERY
def test_a_deleted_word_is_gone_with_all_its_pieces(architecture):
    network, batch = model(architecture), made.batch()
    kept = batch.mask & (torch.arange(batch.ids.shape[1]) % 3 != 1)
    found = logits(network, replace(batch, mask=kept))
    for row in range(4):
        subwords = batch.subwords[row][kept[row]].flatten()
        ids = torch.tensor([[2, *subwords[subwords >= 0].tolist(), 3]])
        with torch.no_grad():
            expected = library(architecture)(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        agree(architecture, found[row], expected[0])


@EVERY
def test_gradients_reach_every_real_piece_and_no_padding(architecture):
    network, batch = model(architecture), made.batch(queries=QUERIES)
    x = network.embed(batch).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(network(x, batch).logits[:, 0].sum(), x)
    reached = gradient.unflatten(-1, (batch.subwords.shape[-1], -1)).abs().amax(-1) > 0
    assert torch.equal(reached, (batch.subwords >= 0) & batch.mask[..., None])
    direction = torch.randn_like(gradient)
    exact = CLOSE[architecture] < 1e-6 and architecture != "deberta"  # the library norms it in single precision
    size, close = (1e-6, 1e-5) if exact else (1e-3, 1e-2)
    with torch.no_grad():
        ahead, behind = (network(x + step * direction, batch).logits[:, 0].sum() for step in (size, -size))
    torch.testing.assert_close((ahead - behind) / (2 * size), (gradient * direction).sum(), atol=close, rtol=close)


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_of_independent_labels_one_is_a_yes_or_no(architecture):
    made_inner = made.inner(architecture, problem_type="multi_label_classification")
    network = Pretrained(made_inner, traits(made_inner, made.tokenizer(architecture), architecture), label=1)
    batch = made.batch()
    output = network(network.embed(batch), batch)
    assert network.classes == 2
    expected = plain_logits(architecture, made.TEXTS)[:, 1].sigmoid()
    torch.testing.assert_close(output.probabilities, torch.stack([1 - expected, expected], -1))


# edits


@EVERY_OPEN
def test_an_identity_edit_changes_nothing(architecture):
    network, batch = model(architecture), made.batch(queries=QUERIES)
    before, after = layered(network, batch), layered(network, batch, same)
    real, seen = allowed(network, batch)
    assert torch.equal(before.logits, after.logits)
    assert torch.equal(logits(network, batch, same), before.logits)
    for one, other, may in zip(before.attention[:-1], after.attention[:-1], seen, strict=True):
        assert torch.equal(one.where((may & real[..., None])[:, None], 0), other.where(real[:, None, :, None], 0))


@EVERY_OPEN
@pytest.mark.parametrize("layer", range(LAYERS))
def test_a_uniform_edit_of_one_layer_evens_out_that_layer_and_none_below(architecture, layer):
    network, batch = model(architecture), made.batch(queries=QUERIES)
    before = layered(network, batch).attention
    after = layered(network, batch, Within(uniform, layers=[layer])).attention
    for below in range(layer):
        assert torch.equal(after[below], before[below])
    real, seen = allowed(network, batch)
    even = seen[layer] / seen[layer].sum(-1, keepdim=True).clamp(min=1)
    for head in range(HEADS):
        torch.testing.assert_close(after[layer][:, head][real], even.to(before[layer])[real])
    above = after[layer + 1 : LAYERS]
    assert all(not torch.allclose(one, other) for one, other in zip(above, before[layer + 1 : LAYERS], strict=True))


EVENED = [(architecture, layers) for architecture in made.EDITABLE for layers in ((0,), (1,), (0, 1))]
EVENED = [pair for pair in EVENED if pair[0] != "albert" or len(pair[1]) == 2]  # its layers are one and the same


@pytest.mark.parametrize(("architecture", "layers"), EVENED)
def test_a_uniform_edit_gives_the_logits_of_a_model_whose_queries_are_zero(architecture, layers):
    network, batch = model(architecture), made.batch()
    blind = made.inner(architecture)
    blind.set_attn_implementation("eager")
    stack = max((part for part in blind.modules() if isinstance(part, torch.nn.ModuleList)), key=len)
    with torch.no_grad():
        for layer in layers:
            for name, part in stack[min(layer, len(stack) - 1)].named_modules():
                _without_queries(name.rpartition(".")[-1], part)
        expected = blind(**encoded(architecture)).logits
    found = logits(network, batch, Within(uniform, layers=layers))
    agree(architecture, found, expected)
    assert not torch.allclose(found, logits(network, batch))


def _without_queries(name, part):
    """Makes the queries 0: then all scores are 0, and attention is even over what may be attended to."""
    if name in ("query", "q_lin", "q_proj"):
        part.weight.zero_()
        if part.bias is not None:
            part.bias.zero_()
    elif name == "c_attn":
        part.weight[:, :16].zero_()
        part.bias[:16].zero_()
    elif name == "Wqkv":
        part.weight[:16].zero_()


OUTPUTS = {"bert": "attention.output.dense", "distilbert": "attention.out_lin", "modernbert": "attn.Wo"} | {
    "gpt2": "attn.c_proj",
    "llama": "self_attn.o_proj",
}


@pytest.mark.parametrize("architecture", OUTPUTS)
def test_a_pruned_head_is_one_whose_output_nobody_reads(architecture):
    network, batch = model(architecture), made.batch()
    deaf = made.inner(architecture)
    heads = ((0, 1), (1, 0), (1, 3))
    stack = max((part for part in deaf.modules() if isinstance(part, torch.nn.ModuleList)), key=len)
    with torch.no_grad():
        for layer, head in heads:
            weight = stack[layer].get_submodule(OUTPUTS[architecture]).weight
            (weight if architecture == "gpt2" else weight.T)[head * WIDTH : (head + 1) * WIDTH].zero_()
        expected = deaf(**encoded(architecture)).logits
    agree(architecture, logits(network, batch, Prune(heads)), expected)


@EVERY_OPEN
def test_words_without_attention_are_as_if_masked(architecture):
    network, batch = model(architecture), made.batch()
    chosen = batch.mask & (torch.arange(batch.ids.shape[1]) % 3 == 1)
    columns, (real, _) = network.erased(chosen, batch), allowed(network, batch)
    given = encoded(architecture)
    for row in range(4):
        gone = columns[row][real[row]]
        given["attention_mask"][row, : len(gone)] = (~gone).long()
    with torch.no_grad():
        expected = library(architecture)(**given).logits
    agree(architecture, logits(network, batch, Without(columns)), expected)


def test_erased_words_are_all_places_of_their_pieces():
    network, batch = model("bert"), made.batch(queries=QUERIES)
    chosen = batch.mask & (torch.arange(batch.ids.shape[1]) % 2 == 1)
    places, columns = network.token_index(batch), network.erased(chosen, batch)
    for row, place in [(row, place) for row in range(4) for place in range(places.shape[1])]:
        word = int(places[row, place])
        assert bool(columns[row, place]) == (word >= 0 and bool(chosen[row, word]))
    assert columns.sum() == ((batch.subwords >= 0) & chosen[..., None]).sum()


EDITS = {
    "identity": same,
    "uniform": uniform,
    "upper": Within(uniform, layers=[1]),
    "heads": Within(uniform, heads=[0, 2]),
    "both": Within(uniform, layers=[0], heads=[3]),
    "pruned": Prune([(0, 0), (1, 2)]),
}


@pytest.mark.parametrize("name", EDITS)
def test_edits_of_bert_agree_with_attention_written_by_hand(name):
    network, batch = model("bert"), made.batch(queries=QUERIES)
    with torch.no_grad():
        expected = _bert_by_hand(library("bert"), encoded("bert", queries=QUERIES), name)
    agree("bert", logits(network, batch, EDITS[name]), expected)


def _bert_by_hand(classifier, given, name):
    """The logits of BERT from its own weights, row by row and head by head."""
    lengths = given["attention_mask"].sum(-1).tolist()
    parts = [
        [given[name][row : row + 1, : lengths[row]] for name in ("input_ids", "token_type_ids")] for row in range(4)
    ]
    states = [classifier.bert.embeddings(*each)[0] for each in parts]
    for number, layer in enumerate(classifier.bert.encoder.layer):
        states = [_layer_by_hand(layer, state, number, name) for state in states]
    first = torch.stack([state[0] for state in states])
    pooled = torch.tanh(first @ classifier.bert.pooler.dense.weight.T + classifier.bert.pooler.dense.bias)
    return pooled @ classifier.classifier.weight.T + classifier.classifier.bias


def _layer_by_hand(layer, states, number, name):
    own, heads = layer.attention.self, []
    for head in range(HEADS):
        rows = slice(head * WIDTH, (head + 1) * WIDTH)
        query, key, value = (states @ part.weight[rows].T + part.bias[rows] for part in (own.query, own.key, own.value))
        weights = (query @ key.T / WIDTH**0.5).softmax(-1)
        flat = torch.full_like(weights, 1 / len(weights))
        heads.append(_edited_by_hand(name, number, head, weights, flat) @ value)
    after = layer.attention.output
    mixed = torch.cat(heads, -1) @ after.dense.weight.T + after.dense.bias
    states = layer_norm(mixed + states, (16,), after.LayerNorm.weight, after.LayerNorm.bias, after.LayerNorm.eps)
    inside = torch.nn.functional.gelu(states @ layer.intermediate.dense.weight.T + layer.intermediate.dense.bias)
    outside = inside @ layer.output.dense.weight.T + layer.output.dense.bias
    norm = layer.output.LayerNorm
    return layer_norm(outside + states, (16,), norm.weight, norm.bias, norm.eps)


def _edited_by_hand(name, layer, head, weights, flat):
    evened = {
        "identity": False,
        "uniform": True,
        "upper": layer == 1,
        "heads": head in (0, 2),
        "both": layer == 0 and head == 3,
        "pruned": False,
    }[name]
    if name == "pruned" and (layer, head) in ((0, 0), (1, 2)):
        return torch.zeros_like(weights)
    return flat if evened else weights


@EVERY_OPEN
def test_a_layer_or_head_that_is_not_there_is_refused_in_one_sentence(architecture):
    network, batch = model(architecture), made.batch()
    with pytest.raises(AssayError, match="layers 0 to 1"):
        logits(network, batch, Within(uniform, layers=[0, 2]))
    with pytest.raises(AssayError, match="layers 0 to 1"):
        logits(network, batch, Prune([(2, 0)]))
    with pytest.raises(AssayError, match="names head 4"):
        logits(network, batch, Within(uniform, heads=[4]))
    with pytest.raises(AssayError, match="names head 7"):
        logits(network, batch, Prune([(0, 7)]))


@EVERY_CLOSED
def test_what_cannot_be_edited_says_so_in_one_sentence_and_shows_its_weights(architecture):
    network, batch = model(architecture), made.batch()
    for edit in (same, uniform, Within(uniform, layers=[]), Prune([])):
        with pytest.raises(AssayError) as refusal:
            logits(network, batch, edit)
        said = str(refusal.value)
        assert f"The attention of {architecture} " in said and "cannot be edited" in said
        assert said.endswith(".") and said.count(". ") == 0 and "\n" not in said
    *found, _ = layered(network, batch).attention
    real, _ = allowed(network, batch)
    for layer in found:
        torch.testing.assert_close(layer.sum(-1).movedim(1, -1)[real], torch.ones(int(real.sum()), HEADS).double())


# the model is left as it was


def trace(network):
    inner = network.inner
    hooks = [
        (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
        for module in network.modules()
    ]
    return (
        inner.config._attn_implementation,
        [module.training for module in network.modules()],
        [[len(each) for each in module] for module in hooks],
        [(parameter.requires_grad, parameter.grad is None) for parameter in network.parameters()],
        inner.config.to_dict(),
        WATCH.get(),
    )


def broken(weights, mask):
    raise ZeroDivisionError


@EVERY
@pytest.mark.parametrize("training", [False, True])
def test_the_model_is_left_as_it_was(architecture, training):
    network, batch = made.pretrained(architecture).train(training), made.batch()
    parameters = list(network.parameters())
    parameters[0].requires_grad_(False)
    weights = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    if architecture in made.CLOSED:
        layered(network, batch)  # where the library shows its weights, it keeps hooks of its own for that
    else:
        assert not any(any(counts) for counts in trace(network)[2])
    before = trace(network)
    logits(network, batch)
    layered(network, batch)
    network.maps(batch)
    if architecture in made.EDITABLE:
        logits(network, batch, uniform)
    for edit, fault in ((broken, (ZeroDivisionError, AssayError)), (Within(uniform, layers=[9]), AssayError)):
        with pytest.raises(fault):
            layered(network, batch, edit)
    assert trace(network) == before
    assert all(torch.equal(weights[key], tensor) for key, tensor in network.state_dict().items())
    assert all(one is other for one, other in zip(parameters, network.parameters(), strict=True))


@EVERY
def test_what_the_classifier_reads_is_found_out(architecture):
    found = model(architecture).traits
    assert found.reads == ("last" if architecture in made.CAUSAL else "first")
    assert found.left == (architecture in made.CAUSAL)
    assert (found.unedited is None) == (architecture in made.EDITABLE)
    assert found.typed == (architecture in made.TYPED)


def test_what_is_read_is_found_out_where_the_classes_mirror_each_other():
    mirrored = made.inner("bert", classes=2)
    with torch.no_grad():
        mirrored.classifier.weight[1] = -mirrored.classifier.weight[0]
    assert traits(mirrored, made.tokenizer("bert"), "bert").reads == "first"


def test_a_classifier_may_read_the_mean_of_all_states():
    network, batch = made.pretrained("modernbert", classifier_pooling="mean"), made.batch()
    assert network.traits.reads == "mean"
    plain = made.inner("modernbert", classifier_pooling="mean")
    plain.set_attn_implementation("eager")
    with torch.no_grad():
        expected = torch.cat([plain(**encoded("modernbert", [text])).logits for text in made.TEXTS])
    agree("modernbert", logits(network, batch), expected)
    read = layered(network, batch).attention[-1]
    mask = network.sequence(network.embed(batch), batch).mask
    torch.testing.assert_close(read, mask / mask.sum(-1, keepdim=True).double())


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_a_configuration_without_a_padding_token_is_refused_in_one_sentence(architecture):
    with pytest.raises(AssayError, match=r"^The configuration of \w+ has no padding token, .* and save it\.$"):
        made.pretrained(architecture, pad_token_id=None)


def test_a_model_that_answers_otherwise_through_us_is_refused():
    stubborn = made.inner("bert")
    given = stubborn.forward
    stubborn.forward = lambda input_ids=None, **others: given(
        **(others if input_ids is None else {**others, "input_ids": input_ids + 1})
    )
    with pytest.raises(AssayError, match="answers otherwise"):
        traits(stubborn, made.tokenizer("bert"), "bert")


def test_a_model_drawn_anew_attends_by_itself():
    network = made.pretrained("bert")
    fresh = network.redrawn(1)
    with implemented(fresh.inner, NAME):
        assert network.inner.config._attn_implementation == "sdpa"
    assert fresh.inner.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_threads_with_different_edits_do_not_disturb_each_other(architecture):
    network, batch = made.pretrained(architecture), made.batch()
    edits = [None, uniform, Within(uniform, layers=[1]), Prune([(0, 0)])]
    expected = [logits(network, batch, edit) for edit in edits]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda edit: logits(network, batch, edit), edits * 25))
    for place, each in enumerate(found):
        assert torch.equal(each, expected[place % 4])
    assert network.inner.config._attn_implementation == "sdpa"


def test_an_architecture_that_cannot_be_asked_is_refused_in_one_sentence():
    theirs = made.inner("bert", dtype=torch.float32)

    def closed(*given, **named):
        raise TypeError("inputs_embeds are unknown here")

    theirs.forward = closed
    with pytest.raises(AssayError, match=r"cannot be read with embeddings in place of words \(inputs_embeds are"):
        traits(theirs, made.tokenizer(), "theirs")


def test_the_last_place_is_read_in_half_precision_too():
    model = made.pretrained("gpt2", dtype=torch.bfloat16)
    mask = torch.ones(1, 700, dtype=torch.bool)
    given = Sequence(torch.zeros(1, 700, 16, dtype=torch.bfloat16), mask, mask.long(), mask.long())
    assert model.reading(given).nonzero().tolist() == [[0, 699]]
