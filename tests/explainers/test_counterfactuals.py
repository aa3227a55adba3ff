"""Counterfactuals against trying all swaps."""

from __future__ import annotations

from itertools import combinations, product

import pytest
import torch

from assay.errors import AssayError
from assay.explainers import searches as counterfactuals
from assay.explainers.searches import Counterfactual
from assay.models import budget
from assay.models.encoders import ENCODERS
from assay.types import Batch
from tests import builders

EVERYTHING = 12 * builders.WORDS


def logits(model, texts):
    batch = Batch(texts, torch.ones_like(texts, dtype=torch.bool), torch.zeros(len(texts)).long())
    return model(model.embed(batch), batch).logits


def swapped(ids, count):
    """All texts with so many other ordinary words."""
    texts = []
    for places in combinations(range(len(ids)), count):
        others = [[word for word in range(4, builders.WORDS) if word != ids[place]] for place in places]
        for words in product(*others):
            text = ids.clone()
            text[list(places)] = torch.tensor(words)
            texts.append(text)
    return torch.stack(texts)


def decisions(model, batch):
    return model(model.embed(batch), batch).logits.argmax(-1)


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("classes", [2, 3])
@torch.no_grad()
def test_with_all_candidates_the_flips_by_one_swap_are_all_found(encoder, classes):
    model, batch = builders.model(3, classes, encoder=encoder, markers=True), builders.batch((7, 1, 4, 5, 3), 2)
    target = decisions(model, batch)
    found = Counterfactual(swaps=1, candidates=EVERYTHING).find(model, batch, target)
    for row in range(len(batch)):
        texts = swapped(batch.ids[row, batch.mask[row]], 1)
        flips = {tuple(text) for text in texts[logits(model, texts).argmax(-1) != target[row]].tolist()}
        ours = found.ids[row, : found.count[row], batch.mask[row]]
        assert {tuple(text) for text in ours.tolist()} == flips
        assert len(ours) == len(flips)
        assert bool(found.swaps[row].isnan()) == (not flips)


def test_neighbours_have_exactly_one_more_swap():
    model, batch = builders.model(), builders.batch((4, 3), width=6)
    texts = batch.ids.clone()
    texts[1, 2] = 9 if texts[1, 2] != 9 else 10
    search = Counterfactual(candidates=EVERYTHING)
    example, found = search._neighbours(model, batch, batch.labels, torch.tensor([0, 1]), texts)
    once = [(0, *text) for text in swapped(batch.ids[0, :4], 1).tolist()]
    twice = [(1, *text, int(texts[1, 2])) for text in swapped(batch.ids[1, :2], 1).tolist()]
    ours = [(row, *text[: 4 - row]) for row, text in zip(example.tolist(), found.tolist(), strict=True)]
    assert sorted(ours) == sorted(once + twice)
    assert (found[:, 4:] == 0).all()


@torch.no_grad()
def test_with_all_candidates_and_beams_the_smallest_number_of_swaps_is_found():
    model, batch = builders.model(6, encoder="lstm"), builders.batch((3, 2, 3, 1, 2, 3, 3, 2), 4)
    model.decoder.bias += torch.tensor([0.6, 0.0])  # so that one swap is not always enough
    target = torch.zeros(len(batch), dtype=torch.long)
    found = Counterfactual(swaps=2, beam=EVERYTHING, candidates=EVERYTHING).find(model, batch, target)
    needed = []
    for row, ids in enumerate(batch.ids[row, batch.mask[row]] for row in range(len(batch))):
        if logits(model, ids[None]).argmax() != 0:
            needed.append(0.0)
            continue
        counts = [count for count in (1, 2) if count <= len(ids) and flips(model, ids, count)]
        needed.append(float(counts[0]) if counts else torch.nan)
        assert int(found.count[row]) == (flips(model, ids, counts[0]) if counts else 0)
    torch.testing.assert_close(found.swaps, torch.tensor(needed), equal_nan=True)
    assert {0.0, 1.0, 2.0} <= set(needed)
    assert any(value != value for value in needed)


def flips(model, ids, count):
    return int((logits(model, swapped(ids, count)).argmax(-1) != 0).sum())


@pytest.mark.parametrize("encoder", ENCODERS)
@torch.no_grad()
def test_every_flip_is_one_that_the_model_makes(encoder):
    model, batch = builders.model(1, 3, encoder=encoder), builders.batch((7, 1, 4, 12, 9), 5)
    target = decisions(model, batch)
    found = Counterfactual().find(model, batch, target)
    assert (found.count > 0).any()
    for row, number in (torch.arange(found.ids.shape[1]) < found.count[:, None]).nonzero().tolist():
        text, real = found.ids[row, number], batch.mask[row]
        answer = logits(model, text[None, real])[0]
        assert answer.argmax() != target[row]
        assert torch.equal(text[~real], batch.ids[row, ~real])
        assert torch.equal(found.swapped[row, number], text != batch.ids[row])
        assert found.swapped[row, number].sum() == found.swaps[row]
        assert (text[found.swapped[row, number]] >= model.ordinary).all()
        torch.testing.assert_close(found.probability[row, number], answer.softmax(-1)[target[row]])
    for row in range(len(batch)):  # those that the model is surest of first
        answers = logits(model, found.ids[row, : max(1, found.count[row]), : batch.lengths[row]])
        others = answers.clone()
        others[:, target[row]] = -torch.inf
        assert (answers[:, target[row]] - others.amax(-1)).diff().ge(0).all()


@torch.no_grad()
def test_the_gradient_finds_the_best_swap_of_a_linear_model_at_once():
    model, batch = builders.model(4, encoder="average"), builders.batch((7, 5, 4))
    model.encoder.projection.bias.fill_(50.0)  # no unit is ever shut: states are linear in embeddings
    model.alignment.score.weight.zero_()  # and attention is flat
    lead = logits_of(model, batch)[:, 0] - logits_of(model, batch)[:, 1]
    best = []
    for row in range(len(batch)):
        answers = logits(model, swapped(batch.ids[row, batch.mask[row]], 1))
        best.append((answers[:, 0] - answers[:, 1]).min())
    model.decoder.bias[0] -= lead.min() - 1e-9  # the decision is class 0, by a hair or more
    shift = lead.min() - 1e-9
    found = Counterfactual(swaps=1, beam=1, candidates=1).find(model, batch, torch.zeros(3, dtype=torch.long))
    expected = torch.stack(best) - shift
    assert torch.equal(found.count > 0, expected < 0)
    assert (expected < 0).any()
    odds = torch.logit(found.probability[:, 0])[expected < 0]
    torch.testing.assert_close(odds, expected[expected < 0], atol=1e-8, rtol=1e-6)


def logits_of(model, batch):
    return model(model.embed(batch), batch).logits


def test_promising_swaps_are_the_best_of_all_and_the_best_at_different_places():
    gains = torch.tensor([[[1.0, 9.0, 8.0], [0.0, 2.0, 3.0], [-1.0, -torch.inf, 4.0]]])
    best, place, word = counterfactuals._promising(gains, 2)
    assert list(zip(best[0].tolist(), place[0].tolist(), word[0].tolist(), strict=True)) == [
        (9.0, 0, 1),
        (8.0, 0, 2),
        (9.0, 0, 1),
        (4.0, 2, 2),
    ]


@torch.no_grad()
def test_scores_are_shares_of_the_smallest_flips():
    model, batch = builders.model(3), builders.batch((7, 1, 4, 5, 3), 2)
    target = decisions(model, batch)
    explain = Counterfactual(swaps=1, candidates=EVERYTHING)
    attribution = explain.attribute(model, batch, target)
    for row in range(len(batch)):
        ids = batch.ids[row, batch.mask[row]]
        texts = swapped(ids, 1)
        turned = texts[logits(model, texts).argmax(-1) != target[row]]
        shares = (turned != ids).double().mean(0) if len(turned) else torch.zeros(len(ids)).double()
        torch.testing.assert_close(attribution.scores[row, : len(ids)].double(), shares, atol=1e-6, rtol=1e-6)
        assert attribution.numbers["flipped"][row] == bool(len(turned))
        assert attribution.numbers["swaps"][row] == 1 or not len(turned)
    other = explain.attribute(model, batch, 1 - target)  # the decision is another from the start
    assert (other.scores == 0).all()
    assert (other.numbers["swaps"] == 0).all() and (other.numbers["flipped"] == 1).all()


def test_small_pieces_change_nothing(monkeypatch):
    model, batch = builders.model(1, 3), builders.batch((7, 1, 4, 12, 9), 5)
    target = decisions(model, batch)
    at_once = Counterfactual().find(model, batch, target)
    monkeypatch.setitem(budget.ROOM, "activations", (30, 30))
    monkeypatch.setattr(counterfactuals, "GAINS", 12 * builders.WORDS)
    pieces = Counterfactual().find(model, batch, target)
    assert torch.equal(at_once.ids, pieces.ids)
    torch.testing.assert_close(at_once.probability, pieces.probability, equal_nan=True)


def test_a_model_without_a_table_and_empty_searches_are_refused():
    model, batch = builders.model(), builders.batch()

    class Tableless:
        def embed(self, batch):
            return model.embed(batch)

        def __call__(self, x, batch, edit=None):
            return model(x, batch)

    with pytest.raises(AssayError, match="no table with an embedding for each word"):
        Counterfactual()(Tableless(), batch, batch.labels)
    with pytest.raises(AssayError, match="must be at least 1"):
        Counterfactual(swaps=0)(model, batch, batch.labels)
