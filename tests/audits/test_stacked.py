"""Audits of a stack of self-attention: each number against explicit edits, text by text."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from assay.audits import AUDITS, CHEAP
from assay.audits.cases import FOREIGN, Case, Resources, trust
from assay.audits.equal_predictions import Adversary
from assay.audits.permutation import Permutation
from assay.audits.stack import LayerByLayer, answers
from assay.intervene.edits import Within, uniform
from assay.intervene.stack_attention import Shuffled, Stack
from assay.metrics.information import tvd
from assay.models.store import Opened
from tests import builders, pretrained
from tests.audits.small_resources import Foreign

KINDS = ("bert", "gpt2", "modernbert")
EVERY = pytest.mark.parametrize("architecture", KINDS)
ADVERSARY = Adversary(steps=6)


@cache
def model(architecture):
    return pretrained.pretrained(architecture, initializer_range=0.1)


def case(architecture, texts=pretrained.TEXTS, seed=3):
    return Case(model(architecture), pretrained.batch(texts), {}, seed)


def shuffled_by_hand(weights, allowed, seed):
    """The weights of each place in another order over what it may attend to, place by place."""
    draw, result = np.random.default_rng(seed), weights.clone()
    for text, head, place in np.ndindex(*weights.shape[:3]):
        there = allowed[text, place].nonzero().flatten()
        result[text, head, place, there] = weights[text, head, place, there[draw.permutation(len(there))]]
    return result


def moved_by_hand(architecture, change, layers, draws=1):
    """The output changes when some layers' weights are changed in the forward pass itself."""
    network, batch = model(architecture), pretrained.batch()
    found = []
    with torch.no_grad():
        stack = Stack.of(network, batch)
        for draw in range(draws):
            layer = iter(range(network.layers))

            def edit(weights, mask, layer=layer, draw=draw):
                now = next(layer)
                apart = weights.ndim == 3  # each place is a row of its own
                places = weights.shape[-1]
                whole = weights.reshape(-1, places, 4, places).transpose(1, 2) if apart else weights
                if now in layers:
                    whole = change(whole, stack.allowed[now], 100 * draw + now)
                return whole.transpose(1, 2).reshape(weights.shape) if apart else whole

            found.append(network(network.embed(batch), batch, edit).probabilities)
    return torch.stack(found, 1), stack.probabilities


def even_by_hand(weights, allowed, seed):
    there = allowed[:, None].to(weights)
    return (there / there.sum(-1, keepdim=True).clamp(min=1)).expand_as(weights)


@EVERY
def test_equal_weights_layer_by_layer_are_those_set_by_hand(architecture):
    measures = LayerByLayer(shuffles=1)(case(architecture)).measures
    for subject, layers in {"layer 0": (0,), "layer 1": (1,), "all layers": (0, 1)}.items():
        changed, plain = moved_by_hand(architecture, even_by_hand, layers)
        np.testing.assert_allclose(measures[f"uniform:{subject}"], tvd(changed[:, 0], plain), atol=1e-10)
        flips = (changed[:, 0].argmax(-1) != plain.argmax(-1)).double()
        np.testing.assert_array_equal(measures[f"uniform_flips:{subject}"], flips)


@EVERY
def test_shuffles_move_the_output_as_far_as_shuffles_by_hand_do(architecture):
    """Other draws, so that only their distribution can be the same."""
    one = case(architecture)
    for layers in (None, (0,)):
        edits = (Within(Shuffled(seed), layers) for seed in range(10_000))
        ours = tvd(answers(one, edits, 150), one.probabilities[:, None])
        changed, plain = moved_by_hand(architecture, shuffled_by_hand, layers or (0, 1), 20)
        theirs = tvd(changed, plain[:, None])
        error = 4 * (ours.var(1) / ours.shape[1] + theirs.var(1) / theirs.shape[1]).sqrt()
        assert ((ours.mean(1) - theirs.mean(1)).abs() <= error + 1e-9).all()


@EVERY
def test_permutation_is_the_median_over_shuffles_of_all_layers_beside_the_largest_weights(architecture):
    one = case(architecture)
    measures = Permutation(stack_shuffles=7)(one).measures
    edits = (Shuffled(seed) for seed in range(one.seed * 100_003, 10**9))
    distances = tvd(answers(one, edits, 7), one.probabilities[:, None])
    np.testing.assert_allclose(measures["median_tvd"], np.median(distances, axis=1), atol=1e-12)
    stack = Stack.of(one.model, one.batch)
    for text in range(len(one.batch)):
        peaks = [
            layer[text, :, counts[text]].amax(-1) for layer, counts in zip(stack.weights, stack.counted, strict=True)
        ]
        assert measures["max_attention"][text] == pytest.approx(
            float(torch.cat([each.flatten() for each in peaks]).mean())
        )


def test_many_rows_are_read_in_parts_with_a_draw_for_each_row():
    one = case("bert")
    found = answers(one, (Shuffled(seed) for seed in range(10_000)), 60)
    assert found.shape == (4, 60, 3)
    longest = found[3]
    assert len(torch.unique(longest, dim=0)) == 60


def test_the_adversary_is_a_lower_bound_in_a_stack_and_what_it_was_elsewhere():
    for classes in (2, 3, 4):
        assert trust(ADVERSARY, model("bert"), classes) == "lower bound"
        for network in (builders.model(), pretrained.attentive()):
            assert trust(ADVERSARY, network, classes) == ADVERSARY.kind(classes)
    assert trust(Permutation(), model("bert"), 2) == "sample"


@EVERY
def test_the_adversary_keeps_to_epsilon_and_to_the_certified_bound(architecture):
    answer = ADVERSARY(case(architecture))
    measures = answer.measures
    assert (measures["tvd"] <= ADVERSARY.epsilon).all()
    assert (measures["jsd"] > 0).all()
    assert (measures["jsd"] <= measures["jsd_upper"] + 1e-12).all()
    shown = answer.weights["adversary"]
    assert shown.shape == (4, case(architecture).batch.ids.shape[1])
    assert (shown >= 0).all()
    assert (shown.sum(-1) <= 1 + 1e-9).all()


@pytest.mark.parametrize("name", ["permutation", "adversary", "layers"])
def test_padding_changes_nothing(name):
    audit = ADVERSARY if name == "adversary" else AUDITS[name]
    narrow = case("gpt2")
    wide = Case(narrow.model, padded(narrow.batch, 5), {}, narrow.seed)
    expected, found = audit(narrow), audit(wide)
    for measure, values in expected.measures.items():
        np.testing.assert_allclose(found.measures[measure], values, atol=1e-6, err_msg=measure)
    for title, weights in expected.weights.items():
        np.testing.assert_allclose(found.weights[title][:, : weights.shape[1]], weights, atol=1e-6)
        assert (found.weights[title][:, weights.shape[1] :] == 0).all()


def padded(batch, more):
    """The batch with more padding behind every text."""
    pad = torch.nn.functional.pad
    subwords = pad(batch.subwords, (0, 0, 0, more), value=-1)
    return type(batch)(pad(batch.ids, (0, more)), pad(batch.mask, (0, more)), batch.labels, subwords=subwords)


def test_layers_are_for_stacks_and_the_reason_is_said_elsewhere():
    audit = LayerByLayer()
    assert audit.unfit(case("bert")) is None
    for network in (builders.model(), builders.model(encoder="transformer"), Foreign()):
        reason = audit.unfit(Case(network, builders.texts(), {}))
        assert "pools" in reason or "no stack" in reason
    assert "pools" in audit.unfit(Case(pretrained.attentive(), pretrained.batch(), {}))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # in DeBERTa
@pytest.mark.parametrize("architecture", pretrained.CLOSED)
def test_an_architecture_that_cannot_be_edited_is_told_so(architecture):
    closed = Case(pretrained.pretrained(architecture), pretrained.batch(), {})
    for name in ("permutation", "adversary", "layers"):
        assert "cannot be edited" in AUDITS[name].unfit(closed)


def test_what_trains_models_anew_says_that_it_cannot():
    opened = Opened(model("bert"), pretrained.tokeniser(), ("a", "b", "c"), {"pretrained": "bert"})
    resources = Resources(opened, {}, ())
    assert resources.lacks() == FOREIGN
    for name in AUDITS.keys() - CHEAP.keys() - {"sanity", "stability", "dispersion", "searched"}:
        assert AUDITS[name].prepared(resources).unfit(case("bert")) == FOREIGN


def test_uniform_edits_do_not_depend_on_what_was_attended():
    one = case("bert")
    once = answers(one, iter([uniform] * 50), 1)
    again = answers(one, iter([Within(uniform)] * 50), 1)
    torch.testing.assert_close(once, again)
