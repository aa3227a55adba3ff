"""Relevance of transformers: against numpy, networks made linear, and the sum of what is explained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from assay import costs
from assay.errors import AssayError
from assay.explainers.relevance import AttnLrp, DeepLift, Lrp, contrast
from assay.explainers.relevance_rules import attention_aware, epsilon
from assay.explainers.relevance_walk import Factors, Relevance, Tables, unruled
from assay.models.hf_models import Pretrained
from assay.models.projections import softmax
from tests import pretrained
from tests.explainers.encoder_by_hand import Encoder

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # DeBERTa's

EVERY = pytest.mark.parametrize("architecture", pretrained.ARCHITECTURES)
EITHER = pytest.mark.parametrize("explainer", [Lrp(), AttnLrp()], ids=["lrp", "attnlrp"])
TARGET = torch.tensor([0, 2, 1, 1])
CLOSE = {"atol": 1e-12, "rtol": 1e-9}


def made(architecture, **options):
    """A random classifier whose biases and norms are random too."""
    return shaken(pretrained.pretrained(architecture, **options))


def shaken(model):
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim == 1:
                each.add_(torch.randn(each.shape, generator=generator, dtype=torch.float64).to(each) * 0.2)
    return model


def parts(shares):
    return shares.tokens.sum(-1) + shares.biases + shares.positions + shares.types + shares.markers + shares.query


@EVERY
def test_all_that_is_explained_is_shared_out(architecture):
    model, batch = made(architecture), pretrained.batch()
    shares = Lrp().shares(model, batch, TARGET)
    with torch.no_grad():
        own = contrast(model(model.embed(batch), batch).logits, TARGET)
    torch.testing.assert_close(shares.explained, own, atol=1e-5, rtol=1e-5)  # some round to float32 on their way
    torch.testing.assert_close(parts(shares), shares.explained, atol=0, rtol=1e-9)
    assert (shares.tokens[batch.mask] != 0).all()
    assert (shares.markers != 0).all()


@pytest.mark.parametrize("architecture", ["bert", "roberta", "gpt2", "llama", "deberta"])
def test_a_question_gets_its_part(architecture):
    model, batch = made(architecture), pretrained.batch(queries=("is it good?", "a", "bad film", "un"))
    shares = Lrp().shares(model, batch, TARGET)
    torch.testing.assert_close(parts(shares), shares.explained, atol=0, rtol=1e-9)
    assert (shares.query != 0).all()
    assert (shares.types != 0).any() == (architecture in ("bert", "roberta", "deberta"))
    assert (shares.positions != 0).any() == (architecture != "llama")


def test_one_label_of_several_is_shared_out():
    several, batch = made("bert"), pretrained.batch()
    model, target = Pretrained(several.inner, several.traits, label=2), torch.tensor([0, 1, 0, 1])
    shares = Lrp().shares(model, batch, target)
    own = several(several.embed(batch), batch).logits[:, 2].detach()
    torch.testing.assert_close(shares.explained, own * torch.tensor([-1, 1, -1, 1]), **CLOSE)
    torch.testing.assert_close(parts(shares), shares.explained, atol=0, rtol=1e-9)


def test_words_alone_would_not_sum_to_what_is_explained():
    shares = Lrp().shares(made("bert"), pretrained.batch(), TARGET)
    assert (shares.tokens.sum(-1) - shares.explained).abs().min() > 0.01
    assert min(part.abs().min() for part in (shares.biases, shares.positions, shares.types)) > 1e-6


@pytest.mark.parametrize("stabiliser", [0.0, 0.01])
@EITHER
def test_one_layer_is_the_redistribution_by_hand(explainer, stabiliser):
    model = made("bert", num_hidden_layers=1, hidden_size=8, num_attention_heads=2)
    batch, target = pretrained.batch(pretrained.TEXTS[2:3]), torch.tensor([2])
    given, base = model.sequence(model.embed(batch), batch), model.inner.bert.embeddings
    kinds = base.token_type_embeddings.weight.detach().numpy()[given.types[0]]
    positions = base.position_embeddings.weight.detach().numpy()[: given.mask.shape[1]]
    network = Encoder(model.inner, stabiliser, explainer == AttnLrp())
    values = network.forward(given.embeddings[0].detach().numpy(), kinds, positions)
    words, kinds, positions = network.back(values, np.array([[-0.5, -0.5, 1.0]]))
    shares = replace(explainer, epsilon=stabiliser).shares(model, batch, target)
    places = given.token_index[0].numpy()
    by_word = [words[places == word].sum() for word in range(batch.ids.shape[1])]
    np.testing.assert_allclose(shares.tokens[0], by_word, rtol=1e-9, atol=1e-12)
    found = [shares.biases, shares.positions, shares.types, shares.markers]
    by_hand = [network.biases, positions.sum(), kinds.sum(), words[places < 0].sum()]
    np.testing.assert_allclose(torch.cat(found), by_hand, rtol=1e-8, atol=1e-12)


def frozen(module, given, output):
    """The same value as a constant times what is given: a function of each number made linear."""
    return given[0] * (output / given[0]).detach().nan_to_num()  # padding is 0


def frozen_norm(module, given, output):
    centred = given[0] - given[0].mean(-1, keepdim=True)
    scale = (centred.detach().square().mean(-1, keepdim=True) + module.eps).rsqrt()
    return centred * scale * module.weight + (0 if module.bias is None else module.bias)


def closed(network, given, output):
    """A gated layer whose gate is a constant."""
    if hasattr(network, "Wi"):
        gate, signal = network.Wi(given[0]).chunk(2, dim=-1)
        return network.Wo(network.act(gate).detach() * signal)
    return network.down_proj(network.act_fn(network.gate_proj(given[0])).detach() * network.up_proj(given[0]))


@pytest.mark.parametrize("architecture", ["bert", "albert", "modernbert", "gpt2", "llama", "qwen2"])
def test_with_attention_held_and_all_else_made_linear_relevance_is_input_times_gradient(architecture):
    model, batch = made(architecture), pretrained.batch()
    found = Lrp().shares(model, batch, TARGET)
    x = model.embed(batch).detach().requires_grad_()
    weights = iter([each.detach() for each in model.layered(x, batch).attention[:-1]])
    for each in model.modules():
        kind = type(each).__name__
        if isinstance(each, nn.LayerNorm):
            each.register_forward_hook(frozen_norm)
        elif kind.endswith("RMSNorm") or "GELU" in kind or isinstance(each, nn.Tanh):
            each.register_forward_hook(frozen)
        elif kind in ("LlamaMLP", "Qwen2MLP", "ModernBertMLP"):
            each.register_forward_hook(closed)

    def held(given, mask):
        return next(weights).to(given).reshape(given.shape) if given.dim() == 4 else _rows(next(weights), given)

    logits = model(x, batch, held).logits
    (gradient,) = torch.autograd.grad(contrast(logits, TARGET).sum(), x)
    single = architecture in ("modernbert", "llama", "qwen2")  # some of their steps are in float32, whatever the rest
    apart = (found.tokens - (x * gradient).sum(-1).detach()).abs().max()
    assert apart < (1e-5 if single else 1e-10) * found.tokens.abs().max()


def _rows(weights, given):
    """The weights as rows of their own, as models that read from left to right give them to an edit."""
    return weights.transpose(1, 2).reshape(given.shape)


def steps(rules, factors):
    """The rules, outside of any transformer."""
    return Relevance(rules, Factors.of(factors), Tables(nn.Parameter(torch.zeros(2, 5))))


@EITHER
@pytest.mark.parametrize("architecture", ["llama", "modernbert"])
def test_a_gate_is_held_or_gets_one_half(architecture, explainer):
    model = made(architecture)
    network = next(each for each in model.modules() if type(each).__name__ in ("LlamaMLP", "ModernBertMLP"))
    torch.manual_seed(0)
    x = torch.randn(4, 3, 16, dtype=torch.float64, requires_grad=True)
    with steps(explainer.rules, torch.ones(4, 5, dtype=torch.float64)).over(network):
        answer = network(x)
    (found,) = torch.autograd.grad(answer.sum(), x)
    if architecture == "llama":
        widen, narrow = torch.cat([network.gate_proj.weight, network.up_proj.weight]), network.down_proj.weight
        bend = nn.functional.silu
    else:
        widen, narrow, bend = network.Wi.weight, network.Wo.weight, nn.functional.gelu
    with torch.no_grad():
        gate, signal = (x @ widen.T).chunk(2, dim=-1)
        above = narrow.sum(0)
        to_gate, to_signal = (0.5, 0.5) if explainer == AttnLrp() else (0, 1)
        gradients = [to_gate * above * signal * bend(gate) / gate, to_signal * above * bend(gate)]
        torch.testing.assert_close(found, torch.cat(gradients, dim=-1) @ widen, **CLOSE)


@EITHER
def test_a_linear_network_gives_input_times_gradient(explainer):
    torch.manual_seed(0)
    network, x = nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3)).double(), torch.randn(4, 6, 5, dtype=torch.float64)
    x, factors = x.requires_grad_(), torch.ones(4, 5, dtype=torch.float64, requires_grad=True)
    with steps(explainer.rules, factors).over(network):
        answer = network(x).sum((1, 2))
    found = torch.autograd.grad(answer.sum(), [x, factors], materialize_grads=True)
    own = torch.autograd.grad(network(x).sum(), x)[0]
    torch.testing.assert_close(found[0], own, **CLOSE)
    torch.testing.assert_close((x * own).sum((1, 2)) + found[1][:, 0], network(x).sum((1, 2)), **CLOSE)


@pytest.mark.parametrize(
    "name", ["gelu_new", "gelu_fast", "quick_gelu", "gelu_python", "silu", "relu", "relu2", "mish"]
)
def test_activations_of_the_library_pass_on_what_they_get(name):
    model, batch = made("bert", hidden_act=name), pretrained.batch()
    assert Lrp().unfit(model) is None
    shares = Lrp().shares(model, batch, TARGET)
    torch.testing.assert_close(parts(shares), shares.explained, atol=0, rtol=1e-9)


@EITHER
@pytest.mark.parametrize(("name", "step"), [("sigmoid", "Sigmoid"), ("laplace", "Erf")])
def test_a_step_without_a_rule_is_named_and_refused(explainer, name, step):
    model, batch = made("bert", hidden_act=name), pretrained.batch()
    reason = explainer.unfit(model)
    assert reason == f"relevance has no rule for a step of BertForSequenceClassification ({step})"
    with pytest.raises(AssayError, match=step):
        explainer(model, batch, TARGET)


def test_products_and_quotients_are_linear_in_one_factor_only():
    x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(3, 3)
    for answer in (x @ weight, x * 2, x / weight[0, 0], torch.cat([x, x]).view(-1)[:2] + 1, x * x.detach()):
        assert unruled(answer, weighs=False) is None
    wrong = {"Mul": x * x, "Mm": x @ x.T, "Div": weight[:2] / x, "Reciprocal": x.reciprocal(), "Exp": x.exp() + x}
    for step, answer in wrong.items():
        assert unruled(answer, weighs=True) == step
    assert unruled(x.softmax(-1), weighs=True) is None
    assert unruled(x.softmax(-1), weighs=False) == "Softmax"


@EVERY
@EITHER
def test_every_architecture_is_served_and_padding_changes_nothing(architecture, explainer):
    model, batch = made(architecture), pretrained.batch()
    assert explainer.unfit(model) is None
    together = explainer.shares(model, batch, TARGET)
    assert (together.tokens[~batch.mask] == 0).all()
    alone = explainer.shares(model, pretrained.batch(pretrained.TEXTS[1:2]), TARGET[1:2])
    torch.testing.assert_close(together.tokens[1, : alone.tokens.shape[1]], alone.tokens[0], **CLOSE)
    torch.testing.assert_close(together.biases[1], alone.biases[0], atol=1e-9, rtol=1e-7)


@EITHER
@pytest.mark.parametrize("architecture", ["bert", "gpt2", "deberta"])
def test_the_model_is_left_as_it_was_even_after_an_error(architecture, explainer, monkeypatch):
    model, batch = made(architecture), pretrained.batch()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    settings = [(id(each), each.training, dict(vars(each)["_forward_hooks"])) for each in model.modules()]
    way = model.inner.config._attn_implementation
    own = model(model.embed(batch), batch).logits
    explainer(model, batch, TARGET)
    with monkeypatch.context() as patch:
        patch.setattr(Pretrained, "counted", lambda self, output: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            explainer(model, batch, TARGET)
    assert [(id(each), each.training, dict(vars(each)["_forward_hooks"])) for each in model.modules()] == settings
    assert model.inner.config._attn_implementation == way
    assert all(each.grad is None and each.requires_grad for each in model.parameters())
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert torch.equal(model(model.embed(batch), batch).logits, own)


@EITHER
def test_one_pass_forward_and_one_back(explainer):
    model, batch = made("bert"), pretrained.batch()
    with costs.measured() as spent:
        explainer(model, batch, TARGET)
    assert (spent.forward, spent.backward) == (len(batch), len(batch))


@EITHER
@pytest.mark.parametrize("architecture", ["bert", "modernbert", "llama"])
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-3), (torch.bfloat16, 0.2)])
def test_coarse_numbers_give_nearly_the_same(architecture, explainer, dtype, near):
    fine, batch = made(architecture), pretrained.batch()
    expected = explainer(fine, batch, TARGET)
    model = made(architecture, dtype=dtype)
    assert explainer.unfit(model) is None
    found = explainer(model, batch, TARGET)
    assert (found - expected).abs().max() < near * expected.abs().max()


def test_the_stabiliser_loses_relevance():
    model, batch = made("gpt2"), pretrained.batch()
    little, much = (Lrp(each).shares(model, batch, TARGET).gap for each in (1e-9, 1e-2))
    assert (little < 1e-5).all()
    assert (much > 1e-4).all()


@pytest.mark.parametrize("rules", [epsilon(0.0), epsilon(0.01), attention_aware(0.0)])
def test_the_attention_that_pools_is_read_as_in_our_own_networks(rules):
    model, batch = shaken(pretrained.attentive()), pretrained.batch()
    factors = torch.ones(len(batch), 5, dtype=torch.float64, requires_grad=True)
    states, within = model.states(model.embed(batch), batch).detach().requires_grad_(), steps(rules, factors)
    with within:
        logits = model.decode(states, model.attend(states, batch))
    pooled = within.pooled(softmax, model.alignment, states, batch.mask)
    known = within.total(within.mapped(model.decoder, pooled))
    torch.testing.assert_close(logits, known, **CLOSE)
    found, expected = (
        torch.autograd.grad(contrast(each, TARGET).sum(), [states, factors], retain_graph=True)
        for each in (logits, known)
    )
    torch.testing.assert_close(found, expected, **CLOSE)


@EITHER
def test_attention_over_the_words_of_an_encoder_is_served(explainer):
    model, batch = shaken(pretrained.attentive()), pretrained.batch()
    assert explainer.unfit(model) is None
    shares = explainer.shares(model, batch, TARGET)
    assert (shares.tokens[~batch.mask] == 0).all()
    if explainer == Lrp():
        torch.testing.assert_close(parts(shares), shares.explained, atol=0, rtol=1e-9)


@pytest.mark.parametrize("architecture", ["nystromformer", "convbert"])
def test_architectures_with_steps_of_their_own_are_refused(architecture):
    model = made(architecture)
    assert "relevance has no rule for a step of" in Lrp().unfit(model)


def test_deeplift_says_why_not():
    model, batch = made("bert"), pretrained.batch()
    assert "assay's own networks only" in DeepLift().unfit(model)
    with pytest.raises(AssayError, match="baseline"):
        DeepLift()(model, batch, TARGET)
