"""Embeddings that are moved a little: by how much, which of them, and models that are moved in several ways at once."""

from __future__ import annotations

import pytest
import torch

from assay.explainers.gradients import input_x_gradient
from assay.explainers.integrated import IntegratedGradients
from assay.intervene.perturbation import Apart, Together, nudged, nudges
from assay.models.parallel import parallel
from tests import builders, pretrained

SHARE, SEEDS = 0.05, (3, 1, 4)


def weights(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def changed(before, model):
    return {name for name, tensor in model.state_dict().items() if not torch.equal(before[name], tensor)}


def spread(words):
    return (((words - words.mean(0)) ** 2).sum(1).mean()) ** 0.5


def test_embeddings_move_by_the_share_of_their_spread_and_nothing_else_does():
    model = builders.model()
    before = weights(model)
    other = nudged(model, SHARE, seed=2)
    table = before["embedding.weight"]
    moves = ((other.embedding.weight.detach() - table) ** 2).sum(1) ** 0.5
    assert moves[0] == 0
    torch.testing.assert_close(moves[1:], (SHARE * spread(table[4:])).expand(len(table) - 1))
    assert changed(before, other) == {"embedding.weight"}
    assert not changed(before, model)


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "distilbert", "albert", "roberta"])
def test_of_a_transformer_all_pieces_move_but_the_special_ones(architecture):
    model = pretrained.pretrained(architecture)
    before, table = weights(model), model.embedding.weight.detach().clone()
    other = nudged(model, SHARE, seed=2)
    moves = (other.embedding.weight.detach() - table).norm(dim=-1)
    special = {model.traits.pad, model.traits.mask, *model.traits.single.subwords, *model.traits.pair.subwords}
    kept = torch.tensor([row not in special for row in range(len(table))])
    assert (moves[~kept] == 0).all()
    torch.testing.assert_close(moves[kept], (SHARE * spread(table[model.ordinary :])).expand(int(kept.sum())))
    assert len(changed(before, other)) == 1 and not changed(before, model)


def test_the_seed_decides_the_direction():
    model = builders.model()
    one, again, other = (nudged(model, SHARE, seed).embedding.weight for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    "at_once", [pytest.param(0, marks=pytest.mark.slow), 1, 2, pytest.param(5, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("queries", [None, ("a film", "good", "dull film", "a dull good film")])
@pytest.mark.parametrize("kind", [*pretrained.ARCHITECTURES, "attentive"])
def test_moved_in_several_ways_at_once_it_says_what_models_apart_say(kind, queries, at_once):
    model = pretrained.attentive() if kind == "attentive" else pretrained.pretrained(kind)
    if queries is not None and not model.paired:
        pytest.skip("it reads one text")
    plain = pretrained.batch(pretrained.TEXTS[:4], queries=queries)
    together, target = nudges(model, SHARE, SEEDS), torch.tensor([0, 2, 1, 1])
    assert isinstance(together, Together)
    answers, scores = [], []
    for each in together.readings(plain, at_once):
        assert each.times <= max(1, at_once)
        with torch.no_grad():
            answers.append(each.network(each.network.embed(each.batch), each.batch).probabilities)
        scores.append(input_x_gradient(each.network, each.batch, target.repeat(each.times)))
    answers, scores = (torch.cat(each).reshape(len(SEEDS), len(plain), -1) for each in (answers, scores))
    for place, seed in enumerate(SEEDS):
        alone = nudged(model, SHARE, seed)
        with torch.no_grad():
            torch.testing.assert_close(answers[place], alone(alone.embed(plain), plain).probabilities)
        torch.testing.assert_close(scores[place], input_x_gradient(alone, plain, target))


@pytest.mark.parametrize("name", ["zero", "pad", "mask", "mean"])
def test_blanks_and_baselines_are_those_of_the_model_itself(name):
    model, plain = pretrained.pretrained("bert"), pretrained.batch()
    (reading,) = nudges(model, 0.0, (0, 1)).readings(plain, 2)
    torch.testing.assert_close(reading.network.blank(name), model.blank(name))
    target = torch.zeros(len(plain), dtype=torch.long)
    found = IntegratedGradients(name)(reading.network, reading.batch, target.repeat(2))
    torch.testing.assert_close(found, IntegratedGradients(name)(model, plain, target).repeat(2, 1))


def test_a_table_that_is_looked_through_or_has_copies_elsewhere_is_moved_in_models_apart():
    plain = pretrained.batch(words=False)
    for model in (pretrained.pretrained("bert", words=False), parallel(pretrained.pretrained("bert"), ["cpu", "cpu"])):
        moved = nudges(model, SHARE, SEEDS)
        assert isinstance(moved, Apart) and len(moved.models) == len(SEEDS)
        assert [each.times for each in moved.readings(plain, 3)] == [1, 1, 1]
