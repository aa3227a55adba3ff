"""Input reduction against a walk through all sets of tokens."""

from __future__ import annotations

import pytest
import torch

from assay.errors import AssayError
from assay.explainers.searches import InputReduction, _halved
from assay.models.encoders import ENCODERS
from assay.types import Batch
from tests import builders


def decides(model, ids):
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    return int(model(model.embed(batch), batch).logits.argmax())


def reachable(model, ids):
    """The smallest sets that single deletions reach, each of which keeps the decision."""
    decision = decides(model, ids)
    level = {tuple(range(len(ids)))}
    while True:
        shorter = {kept[:cut] + kept[cut + 1 :] for kept in level if len(kept) > 1 for cut in range(len(kept))}
        shorter = {kept for kept in shorter if decides(model, ids[list(kept)]) == decision}
        if not shorter:
            return level
        level = shorter


def sets(found, row):
    return [tuple(kept.nonzero()[:, 0].tolist()) for kept in found.kept[row, : found.count[row]]]


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("seed", [0, 1])
@torch.no_grad()
def test_a_wide_beam_finds_exactly_the_smallest_sets(encoder, seed):
    model = builders.model(seed, classes=3, encoder=encoder, markers=True)
    batch = builders.batch((6, 1, 4, 6, 5), seed)
    found = InputReduction(beam=40).reduce(model, batch)
    for row in range(len(batch)):
        expected = reachable(model, batch.ids[row, batch.mask[row]])
        assert len(sets(found, row)) == len(expected)
        assert set(sets(found, row)) == expected
        assert not found.kept[row, found.count[row] :].any()
        assert found.size[row] == len(next(iter(expected)))


@torch.no_grad()
def test_what_a_wide_beam_leaves_loses_the_decision_without_any_one_of_its_words():
    left_over = 0
    for seed in range(6):
        model, batch = builders.model(seed, classes=6, encoder="transformer"), builders.batch((7, 5, 6), seed)
        found = InputReduction(beam=200).reduce(model, batch)
        for row in range(len(batch)):
            ids = batch.ids[row, batch.mask[row]]
            for kept in sets(found, row):
                shorter = [kept[:cut] + kept[cut + 1 :] for cut in range(len(kept)) if len(kept) > 1]
                assert all(decides(model, ids[list(each)]) != decides(model, ids) for each in shorter)
                left_over += len(shorter)
    assert left_over > 0


@pytest.mark.parametrize("beam", [1, 3])
@torch.no_grad()
def test_a_narrow_beam_keeps_the_decision_and_never_beats_a_wide_one(beam):
    model, batch = builders.model(2, classes=4), builders.batch((9, 8, 7, 8, 9, 3), 3)
    narrow, wide = InputReduction(beam).reduce(model, batch), InputReduction(200).reduce(model, batch)
    assert (narrow.size >= wide.size).all()
    for row in range(len(batch)):
        ids = batch.ids[row, batch.mask[row]]
        found = sets(narrow, row)
        assert 1 <= len(found) == len(set(found))
        assert all(decides(model, ids[list(kept)]) == decides(model, ids) for kept in found)


@torch.no_grad()
def test_one_text_at_a_time_deletes_what_keeps_the_class_most_probable():
    model, batch = builders.model(5), builders.batch((8, 6), 5)
    found = InputReduction(beam=1).reduce(model, batch)
    for row in range(len(batch)):
        ids = batch.ids[row, batch.mask[row]]
        decision, kept = decides(model, ids), list(range(len(ids)))
        while len(kept) > 1:
            shorter = [kept[:cut] + kept[cut + 1 :] for cut in range(len(kept))]
            best = max(shorter, key=lambda places: chance(model, ids[places], decision))
            if decides(model, ids[best]) != decision:
                break
            last, kept = kept, best
        ends = [last[:cut] + last[cut + 1 :] for cut in range(len(last))]
        ends = [tuple(places) for places in ends if decides(model, ids[places]) == decision]
        assert tuple(kept) in ends
        assert sorted(sets(found, row)) == sorted(ends)


def chance(model, ids, label):
    batch = Batch(ids[None], torch.ones(1, len(ids), dtype=torch.bool), torch.zeros(1).long())
    return float(model(model.embed(batch), batch).probabilities[0, label])


@torch.no_grad()
def test_scores_are_shares_of_the_shortest_texts():
    model, batch = builders.model(1, classes=3), builders.batch((6, 1, 4, 6))
    attribution = InputReduction(beam=40).attribute(model, batch, batch.labels)
    for row in range(len(batch)):
        expected = reachable(model, batch.ids[row, batch.mask[row]])
        shares = [sum(place in kept for kept in expected) / len(expected) for place in range(6)]
        torch.testing.assert_close(attribution.scores[row], torch.tensor(shares))
        assert attribution.numbers["results"][row] == len(expected)
        left = len(next(iter(expected))) / int(batch.lengths[row])
        torch.testing.assert_close(attribution.numbers["remaining"][row], torch.tensor(left))


def test_a_text_that_one_word_decides_comes_down_to_that_word():
    model, batch = builders.model(encoder="average"), builders.batch((7, 12), 1)
    with torch.no_grad():  # only the word 4 says anything, and it speaks for class 1
        model.embedding.weight.zero_()
        model.embedding.weight[4] = 1.0
        model.encoder.projection.weight.fill_(1.0)
        model.encoder.projection.bias.zero_()
        model.alignment.score.weight.zero_()
        model.decoder.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        model.decoder.bias.copy_(torch.tensor([0.1, 0.0]))
    ids = batch.ids.masked_fill(batch.ids == 4, 5)
    ids[0, 3], ids[1, 2] = 4, 4
    scores = InputReduction()(model, Batch(ids, batch.mask, batch.labels), batch.labels)
    assert scores.nonzero().tolist() == [[0, 3], [1, 2]]
    assert (scores[scores > 0] == 1).all()


@pytest.mark.parametrize("long", [1, 3, 8])
@torch.no_grad()
def test_long_texts_lose_the_largest_part_that_keeps_the_decision(long):
    model, batch = builders.model(9, classes=3, encoder="transformer"), builders.batch((23, 5, 17, 2, 12, 1, 20), 3)
    # Not the classes that the texts have: those stay, whatever is cut, and the search would have nothing to choose.
    decisions = model(model.embed(batch), batch).logits.argsort(dim=-1)[:, 1]
    found, parts = _halved(model, batch, decisions, long), set()
    for row in range(len(batch)):
        ids, kept, decision = batch.ids[row], list(range(int(batch.lengths[row]))), int(decisions[row])
        shorter = kept
        while len(kept) > long and shorter is not None:
            without = {place: ids[[other for other in kept if other != place]] for place in kept}
            value = {place: chance(model, rest, decision) for place, rest in without.items()}
            value |= {place: -1 for place, rest in without.items() if decides(model, rest) != decision}
            order = sorted(kept, key=lambda place: (value[place], place))
            sizes = [max(long, len(kept) - max(1, len(kept) // 2**half)) for half in (1, 2, 3, 4, 5)]
            options = [sorted(order[:size]) for size in sizes]
            shorter = next((option for option in options if decides(model, ids[option]) == decision), None)
            parts.add(None if shorter is None else options.index(shorter))
            kept = shorter or kept
        assert found[row].nonzero()[:, 0].tolist() == kept
    assert parts == {None, 0, 1, 2}  # a half was cut, a quarter, an eighth, or nothing could be


@torch.no_grad()
def test_what_is_left_of_long_texts_is_reduced_further_and_keeps_the_decision():
    model, batch = builders.model(2, classes=3), builders.batch((23, 5, 17, 2, 12, 1, 20), 3)
    found = InputReduction(long=6).reduce(model, batch)
    for row in range(len(batch)):
        ids = batch.ids[row, batch.mask[row]]
        assert found.size[row] <= 6
        assert all(decides(model, ids[list(kept)]) == decides(model, ids) for kept in sets(found, row))


@pytest.mark.parametrize("options", [{"beam": 0}, {"long": 0}])
def test_searches_of_nothing_are_refused(options):
    model, batch = builders.model(), builders.batch()
    with pytest.raises(AssayError, match="must be at least 1"):
        InputReduction(**options)(model, batch, batch.labels)
