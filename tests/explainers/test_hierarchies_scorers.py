"""What phrases count, against cutting them out one at a time, the Shapley value of all orders, and known models."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch

from assay.errors import AssayError
from assay.explainers.integrated import IntegratedGradients
from assay.explainers.occlusion import Occlusion, span_drops
from assay.explainers.phrase_trees import SCORERS
from assay.explainers.phrases import Alone, Margin, PhraseShapley, SummedGradients, Versions, Without, around, reading
from assay.explainers.shapley import Shapley
from assay.models.erasure import kept_probabilities, version_probabilities
from tests import builders
from tests.explainers import games

OWN = ("occlusion", "alone", "margin", "integrated_gradients", "shapley")


def some_sets(batch, count=5):
    """An empty set, the whole text, and others, which need not be contiguous, of the first words of each text."""
    chosen = torch.rand(len(batch), count, 40, generator=torch.Generator().manual_seed(0))[..., : batch.ids.shape[1]]
    chosen = (chosen < 0.4) & batch.mask[:, None]
    chosen[:, 0], chosen[:, 1] = False, batch.mask
    return chosen


def each_word(batch):
    return torch.eye(batch.ids.shape[1], dtype=torch.bool).expand(len(batch), -1, -1) & batch.mask[:, None]


def probabilities(model, batch, kept):
    return kept_probabilities(model, batch, kept).double()


@pytest.mark.parametrize("encoder", ["lstm", "cnn", "transformer"])
@pytest.mark.parametrize("removal", ["delete", "zero"])
def test_leaving_out_a_phrase_of_one_word_is_leaving_out_the_word(encoder, removal):
    model, batch = builders.model(encoder=encoder, classes=3), builders.batch()
    found = Without(removal)(model, batch, batch.labels, each_word(batch))
    torch.testing.assert_close(found, Occlusion(removal)(model, batch, batch.labels), atol=1e-7, rtol=1e-6)


def test_leaving_out_a_phrase_is_cutting_it_out():
    model, batch = builders.model(), builders.batch()
    spans = torch.tensor([[3, 4, 9], [0, 0, 7], [3, 11, 12], [0, 2, 3], [2, 1, 3]])
    chosen = torch.zeros(4, len(spans), 12, dtype=torch.bool)
    for number, (row, start, stop) in enumerate(spans.tolist()):
        chosen[row, number, start:stop] = True
    found = Without()(model, batch, batch.labels, chosen)[spans[:, 0], torch.arange(len(spans))]
    torch.testing.assert_close(found, span_drops(model, batch, batch.labels, spans))


def test_a_phrase_alone_is_compared_with_nothing_and_its_margin_with_the_next_class():
    model, batch = builders.model(classes=4), builders.batch()
    target, chosen = torch.tensor([3, 0, 1, 2]), some_sets(batch)
    answers = probabilities(model, batch, chosen)
    of_class = answers.gather(2, target[:, None, None].expand(-1, 5, 1))[..., 0]
    torch.testing.assert_close(Alone()(model, batch, target, chosen), of_class - of_class[:, :1])
    margins = Margin()(model, batch, target, chosen)
    for row, number in [(0, 1), (0, 4), (3, 3), (2, 2)]:
        others = [answers[row, number, label] for label in range(4) if label != target[row]]
        assert margins[row, number] == pytest.approx(of_class[row, number] - max(others))


def test_of_two_classes_the_margin_is_twice_the_probability_less_one():
    model, batch = builders.model(), builders.batch()
    chosen = some_sets(batch)
    answers = probabilities(model, batch, chosen).gather(2, batch.labels[:, None, None].expand(-1, 5, 1))[..., 0]
    expected = (2 * answers - 1) * chosen.any(-1)
    torch.testing.assert_close(Margin()(model, batch, batch.labels, chosen), expected)


@pytest.mark.parametrize("name", ["occlusion", "alone", "shapley"])
def test_of_a_linear_model_a_phrase_counts_what_its_coefficients_add_up_to(name):
    coefficients = torch.tensor([0.05, -0.1, 0.2, 0.01, -0.03, 0.15], dtype=torch.float64)
    batch, target = games.texts([[1, 2, 3, 4, 5, 6], [6, 1, 4, 3, 2, 5]])
    chosen = some_sets(batch, 8)
    expected = (coefficients[batch.ids - 1][:, None] * chosen).sum(-1)
    found = SCORERS[name](games.additive(coefficients, 0.4), batch, target, chosen)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=1e-10)


def test_gradients_of_a_phrase_are_those_of_its_words_added_up():
    model, batch = builders.model(), builders.batch()
    words = IntegratedGradients()(model, batch, batch.labels)
    chosen = some_sets(batch)
    found = SummedGradients()(model, batch, batch.labels, chosen)
    torch.testing.assert_close(found, (words[:, None] * chosen).sum(-1), check_dtype=False)
    exact = SummedGradients(tolerance=1e-6)(model, batch, batch.labels, chosen)[:, 1]
    ends = torch.stack([model.embed(batch), torch.zeros_like(model.embed(batch))])
    text, nothing = (model(x, batch).probabilities.gather(1, batch.labels[:, None])[:, 0] for x in ends)
    torch.testing.assert_close(exact, (text - nothing).detach(), atol=1e-5, rtol=1e-4)


def over_orders(game, ids, phrase, others):
    """The mean of what the phrase adds, over all orders of it and these other places."""
    worth = {}

    def value(places):
        key = tuple(sorted(places))
        if key not in worth:
            batch, target = games.texts([ids])
            kept = torch.zeros(1, 1, len(ids), dtype=torch.bool)
            kept[0, 0, list(key)] = True
            worth[key] = float(probabilities(game, batch, kept)[0, 0, target[0]])
        return worth[key]

    orders = list(permutations(["it", *others]))
    before = [set(order[: order.index("it")]) for order in orders]
    return sum(value(some | phrase) - value(some) for some in before) / len(orders)


@pytest.mark.parametrize(
    ("window", "phrase", "others"),
    [
        (6, {2, 3}, {0, 1, 4, 5}),
        (1, {2, 3}, {1, 4}),
        (2, {0, 1}, {2, 3}),
        (2, {4}, {2, 3, 5}),
        (1, {1, 3}, {0, 2}),
        (0, {1, 2, 3}, set()),
    ],
    ids=["all around", "one each", "at the beginning", "near the end", "apart: the nearest two", "nobody else"],
)
def test_a_phrase_is_one_player_among_the_words_around_it(window, phrase, others):
    game, ids = games.table(6), [4, 2, 6, 1, 3, 5]
    chosen = torch.tensor([[[place in phrase for place in range(6)]]])
    batch, target = games.texts([ids])
    found = PhraseShapley(window)(game, batch, target, chosen)
    assert float(found) == pytest.approx(over_orders(game, ids, phrase, others), abs=1e-12)


def test_single_words_with_all_others_around_have_their_shapley_values():
    model, batch = builders.model(encoder="gru"), builders.batch((5, 1, 7), width=9)
    found = PhraseShapley(6)(model, batch, batch.labels, each_word(batch))
    torch.testing.assert_close(found, Shapley()(model, batch, batch.labels), atol=1e-6, rtol=1e-5)


def test_the_nearest_words_are_found_and_padding_is_none():
    phrase = torch.tensor([[False, False, True, True, False, False, False]])
    places, there = around(phrase, torch.tensor([[True] * 5 + [False] * 2]), 2)
    assert {int(place) for place in places[there]} == {0, 1, 4}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", ["hierarchical-none", "paired-average"])
def test_scores_do_not_depend_on_padding_order_or_how_they_are_asked_for(name, kind):
    model, batch, scorer = builders.kind(kind, classes=3), builders.texts(), SCORERS[name]
    chosen, target = some_sets(batch), torch.tensor([2, 0, 1, 2])
    found = scorer(model, batch, target, chosen)
    assert (found[:, 0] == 0).all()
    assert (found[3, 1:] != 0).all()
    wide = torch.nn.functional.pad(chosen, (0, 8))
    torch.testing.assert_close(scorer(model, builders.texts(width=20), target, wide), found)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(scorer(model, batch[order], target[order], chosen[order]), found[order])
    ready = reading(scorer, model, batch, target)
    torch.testing.assert_close(torch.cat([ready(chosen[:, :2]), ready(chosen[:, 2:])], dim=1), found)


def test_what_was_read_is_not_read_again_and_is_what_a_fresh_reading_gives():
    game = games.table(6)
    batch, target = games.texts([[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1]])
    versions = Versions(game, batch, target)
    example, kept = torch.tensor([0, 1, 0, 1, 0]), torch.rand(5, 6, generator=torch.Generator().manual_seed(0)) < 0.5
    kept[4], kept[3] = kept[0], kept[2]  # the same version, and that of another text
    first = versions.probabilities(example, kept)
    assert game.reads == len(versions) == 4
    assert torch.equal(versions.probabilities(example.flip(0), kept.flip(0)), first.flip(0))
    assert game.reads == 4
    assert torch.equal(first, version_probabilities(games.table(6), batch, example, kept))
    more = versions.worth(torch.tensor([0, 1]), torch.tensor([[True] * 6, kept[2].tolist()]))
    assert game.reads == 5
    assert more[1] == first[3, 0]


@pytest.mark.parametrize("name", ["occlusion", "alone", "margin", "shapley"])
def test_a_model_without_blanks_cannot_have_words_blanked(name):
    batch, target = games.texts([[1, 2, 3]])
    blanking = type(SCORERS[name])(removal="zero")
    assert "no embedding for nothing" in blanking.unfit(games.table(3))
    with pytest.raises(AssayError, match="no embedding for nothing"):
        blanking(games.table(3), batch, target, batch.mask[:, None])


def test_options_that_mean_nothing_are_refused():
    for make, hint in [
        (lambda: Without("sponge"), "removal"),
        (lambda: PhraseShapley(7), "window"),
        (lambda: SummedGradients("nought"), "baseline"),
    ]:
        with pytest.raises(AssayError, match=hint):
            make()
