"""Adversarial attention in a stack: what is found is checked by other means, and by brute force."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import entropy

from assay.intervene.edits import uniform
from assay.intervene.stack_attention import Found, Given, Shuffled, Stack, StackSearch, limit
from assay.types import LayerwiseEdit
from tests import pretrained

KINDS = ("bert", "gpt2", "albert", "modernbert")
SEARCH = StackSearch(steps=15)


@cache
def model(architecture, classes=3):
    """A random model whose attention is peaked."""
    return pretrained.pretrained(architecture, classes, initializer_range=0.1)


@cache
def found(architecture) -> tuple[Stack, Found]:
    network, batch = model(architecture), pretrained.batch()
    stack = Stack.of(network, batch)
    return stack, SEARCH(network, batch, stack)


def rerun(network, batch, weights):
    """What the model answers with these weights, set layer by layer without any of our edits."""
    left = list(weights)

    def edit(observed, mask):
        given = left.pop(0)
        return given if observed.ndim == 4 else given.transpose(1, 2).reshape(observed.shape)

    return network(network.embed(batch), batch, edit)


def divergence(p, q):
    """The Jensen-Shannon divergence, with scipy."""
    middle = (p + q) / 2
    return (entropy(p, middle, axis=-1) + entropy(q, middle, axis=-1)) / 2


def distances(stack, weights):
    """The mean divergence of each text over layers, heads and the places that count."""
    result = []
    for row in range(len(stack.reading)):
        each = [
            divergence(old[row, :, counts[row]].numpy(), new[row, :, counts[row]].numpy()).flatten()
            for old, new, counts in zip(stack.weights, weights, stack.counted, strict=True)
        ]
        result.append(np.concatenate(each).mean())
    return np.array(result)


@pytest.mark.parametrize("architecture", KINDS)
def test_what_is_found_leaves_the_answer_within_epsilon_and_is_as_far_as_it_says(architecture):
    stack, adversary = found(architecture)
    batch = pretrained.batch()
    with torch.no_grad():
        plain = model(architecture)(model(architecture).embed(batch), batch).probabilities
        output = rerun(model(architecture), batch, adversary.weights)
    moved = (output.probabilities - plain).abs().sum(-1) / 2
    assert (moved <= SEARCH.epsilon + 1e-12).all()
    torch.testing.assert_close(moved, adversary.tvd, rtol=0, atol=1e-12)
    np.testing.assert_allclose(distances(stack, adversary.weights), adversary.jsd.numpy(), atol=1e-9)


@pytest.mark.parametrize("architecture", KINDS)
def test_it_is_a_distribution_over_what_may_be_attended_to(architecture):
    stack, adversary = found(architecture)
    for weights, allowed in zip(adversary.weights, stack.allowed, strict=True):
        assert (weights >= 0).all()
        assert (weights.masked_fill(allowed[:, None], 0) == 0).all()
        some = allowed.any(-1)
        torch.testing.assert_close(weights.sum(-1).movedim(1, 2)[some], torch.ones(int(some.sum()), 4).double())


@pytest.mark.parametrize("architecture", KINDS)
def test_it_lies_further_than_shuffles_do_that_the_answer_allows_and_below_the_limit(architecture):
    stack, adversary = found(architecture)
    network, batch = model(architecture), pretrained.batch()
    best = np.zeros(len(batch))
    for seed in range(30):
        with torch.no_grad():
            output = network(network.embed(batch), batch, Shuffled(seed))
        feasible = (output.probabilities - stack.probabilities).abs().sum(-1) / 2 <= SEARCH.epsilon
        best = np.where(feasible, np.maximum(best, distances(stack, output.attention)), best)
    assert (adversary.jsd.numpy() >= best).all()
    assert adversary.jsd.numpy().mean() > best.mean() + 0.2
    assert (adversary.jsd <= limit(stack) + 1e-12).all()


def test_the_limit_is_reached_by_all_weight_where_the_least_was_and_by_nothing_else():
    stack, _ = found("bert")
    row = stack.weights[0][0, 0, 0]
    corners = divergence(row.numpy(), np.eye(len(row)))
    others = np.random.default_rng(0).dirichlet(np.full(len(row), 0.2), 500)
    assert divergence(row.numpy(), others).max() < corners.max()
    least = [
        layer.masked_fill(~allowed[:, None], 2.0) for layer, allowed in zip(stack.weights, stack.allowed, strict=True)
    ]
    single = [torch.nn.functional.one_hot(layer.argmin(-1), layer.shape[-1]).double() for layer in least]
    np.testing.assert_allclose(distances(stack, single), limit(stack).numpy(), atol=1e-9)


def compared(sharpness, word, epsilon):
    """What the search finds beside the furthest point of a grid: one layer, one head, and three places."""
    options = {"num_hidden_layers": 1, "num_attention_heads": 1, "initializer_range": sharpness}
    network, batch, steps = pretrained.pretrained("bert", 2, **options), pretrained.batch((word,)), 80
    stack = Stack.of(network, batch)
    assert stack.weights[0].shape == (1, 1, 3, 3)
    assert stack.counted[0].tolist() == [[True, False, False]]  # one place is read
    grid = torch.tensor([(a, b, steps - a - b) for a in range(steps + 1) for b in range(steps + 1 - a)]).double()
    rows = stack.weights[0].repeat(len(grid), 1, 1, 1)
    rows[:, 0, 0] = grid / steps
    many = batch[torch.zeros(len(grid), dtype=torch.long)]
    with torch.no_grad():
        answers = network(network.embed(many), many, Given([rows])).probabilities
    feasible = (answers - stack.probabilities).abs().sum(-1) / 2 <= epsilon
    searched = StackSearch(epsilon, steps=60)(network, batch, stack)
    return float(searched.jsd), divergence(stack.weights[0][0, 0, 0].numpy(), rows[feasible, 0, 0].numpy()).max()


@pytest.mark.parametrize("word", ["Dull", "good", "film"])
@pytest.mark.parametrize("sharpness", [0.05, 0.2])
def test_it_comes_close_to_the_furthest_there_is_by_brute_force(sharpness, word):
    found, furthest = compared(sharpness, word, 0.05)
    assert 0.96 * furthest <= found <= furthest + 0.01  # a grid falls a little short too


@pytest.mark.parametrize("word", ["Dull", "good", "film"])
def test_where_the_search_is_stuck_it_is_still_a_lower_bound(word):
    found, furthest = compared(0.1, word, 0.01)
    assert 0.3 * furthest <= found <= furthest + 0.01


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_other_texts_and_padding_change_what_is_found_by_nothing(architecture):
    network = model(architecture)
    together = found(architecture)[1]
    for place, text in enumerate(pretrained.TEXTS[:2]):
        batch = pretrained.batch((text,))
        alone = StackSearch(steps=0)(network, batch, Stack.of(network, batch))
        whole = StackSearch(steps=0)(network, pretrained.batch(), found(architecture)[0])
        torch.testing.assert_close(alone.jsd[0], whole.jsd[place], rtol=0, atol=1e-10)
        searched = SEARCH(network, batch, Stack.of(network, batch))
        assert abs(float(searched.jsd[0] - together.jsd[place])) < 0.05 or together.jsd[place] < 0.3


def test_no_change_of_the_answer_at_all_can_be_asked_for():
    network, batch = model("bert"), pretrained.batch()
    searched = StackSearch(0.0, steps=3)(network, batch, Stack.of(network, batch))
    assert (searched.tvd == 0).all()
    assert searched.jsd.isfinite().all()


def test_half_precision_and_questions_are_searched_too():
    network = pretrained.pretrained("bert", dtype=torch.bfloat16, initializer_range=0.1)
    batch = pretrained.batch(queries=("Is it fun?",) * 4)
    searched = StackSearch(0.05, steps=4)(network, batch, Stack.of(network, batch))
    assert (searched.tvd <= 0.05).all()
    assert searched.jsd.dtype == torch.float32


def test_the_model_is_left_as_it_was():
    network, batch = model("gpt2"), pretrained.batch()
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    SEARCH(network, batch, Stack.of(network, batch))
    assert all(torch.equal(before[name], weight) for name, weight in network.state_dict().items())
    assert all(parameter.grad is None for parameter in network.parameters())


def test_what_is_read_is_the_row_of_the_place_that_is_read_gathered_to_words():
    network, batch = model("bert"), pretrained.batch()
    stack = Stack.of(network, batch)
    row = stack.weights[-1].mean(1)[:, 0]  # of the first place
    expected = torch.zeros(batch.ids.shape).double()
    for text, words in enumerate(network.token_index(batch).tolist()):
        for place, word in enumerate(words):
            if word >= 0:
                expected[text, word] += row[text, place]
    torch.testing.assert_close(stack.read(stack.weights, batch.ids.shape[1]), expected)


def test_every_layer_is_shuffled_in_an_order_of_its_own_and_keeps_its_weights():
    network, batch = model("bert"), pretrained.batch()
    assert isinstance(Shuffled(), LayerwiseEdit)
    with torch.no_grad():
        output = network(network.embed(batch), batch, Shuffled(1))
        plain = network(network.embed(batch), batch, lambda weights, mask: weights)
    torch.testing.assert_close(output.attention[0].sort(-1).values, plain.attention[0].sort(-1).values)
    layer = torch.arange(6.0).double().expand(1, 1, 6, 6)
    mask = torch.ones(1, 6, dtype=torch.bool)
    assert not torch.equal(Shuffled(1).at(0)(layer, mask), Shuffled(1).at(1)(layer, mask))


def test_equal_weights_given_layer_by_layer_are_the_uniform_edit():
    network, batch = model("modernbert"), pretrained.batch()
    stack = Stack.of(network, batch)
    there = [allowed[:, None].double() for allowed in stack.allowed]
    even = [allowed / allowed.sum(-1, keepdim=True).clamp(min=1) for allowed in there]
    with torch.no_grad():
        x = network.embed(batch)
        whole = [layer.expand(-1, 4, -1, -1) for layer in even]
        torch.testing.assert_close(network(x, batch, Given(whole)).logits, network(x, batch, uniform).logits)
