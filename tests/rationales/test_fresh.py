"""FRESH: what counts for a teacher is selected, and the predictor sees nothing else."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.models.config import Training
from assay.rationales.game import Play, saliency
from assay.rationales.learning import Options, learn
from assay.rationales.losses import Imitation
from assay.rationales.players import Rules
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.recipes import fresh, fresh_tagged
from assay.rationales.relaxations import Saliency
from assay.rationales.units import Decoding, Units
from tests import builders
from tests.rationales.small_players import players, rows

READERS = ("predictor", "teacher")
TRAINING = Training(epochs=2, patience=2, batch_size=8, learning_rate=5e-3)


def alone(cast):
    """The teacher with the predictor's table: a model as any other."""
    model = deepcopy(cast.reader("teacher"))
    model.embedding = cast.predictor.embedding
    return model


@pytest.mark.parametrize(
    "name", ["attention", "gradient", "lrp", "integrated_gradients", "occlusion_mask", "leave_one_out", "kernel_shap"]
)
def test_a_saliency_is_that_of_the_teacher_for_the_class_it_predicts(name: str) -> None:
    cast, batch = players(Rules(), READERS), builders.batch()
    model = alone(cast)
    guess = model(model.embed(batch), batch).logits.argmax(-1)
    expected = EXPLAINERS[name](model, batch, guess).double()
    torch.testing.assert_close(saliency(name, cast, cast.predictor.embed(batch), batch), expected)


@pytest.mark.parametrize("name", ["attention", "lrp", "integrated_gradients", "leave_one_out"])
def test_a_saliency_sees_the_embeddings_that_are_given_not_those_of_the_words(name: str) -> None:
    cast, batch = players(Rules(), READERS), builders.batch()
    other = replace(batch, ids=builders.batch(seed=3).ids)
    x = cast.predictor.embed(other)
    torch.testing.assert_close(saliency(name, cast, x, batch), saliency(name, cast, x, other))
    assert not torch.allclose(saliency(name, cast, x, batch), saliency(name, cast, cast.predictor.embed(batch), batch))


def test_an_explainer_that_writes_other_texts_is_refused() -> None:
    cast, batch = players(Rules(), READERS), builders.batch()
    with pytest.raises(AssayError, match="choose another saliency"):
        saliency("counterfactual", cast, cast.predictor.embed(batch), batch)


def test_labels_padding_and_neighbours_change_no_selection() -> None:
    rules, batch = fresh(Options(rate=0.3)).rules, builders.batch()
    model = Rationaliser(players(rules, READERS), rules).eval()
    kept = model.selection(model.embed(batch), batch).kept
    flipped = replace(batch, labels=1 - batch.labels)
    assert torch.equal(model.selection(model.embed(flipped), flipped).kept, kept)
    for row, length in enumerate(batch.lengths.tolist()):
        text = batch[torch.tensor([row])].narrowed(length)
        assert torch.equal(model.selection(model.embed(text), text).kept[0], kept[row, :length])


def test_words_that_are_not_selected_change_no_answer() -> None:
    rules = fresh(Options(rate=0.3), "random").rules  # a saliency that embeddings do not change
    model, batch = Rationaliser(players(rules, READERS), rules).eval(), builders.batch((9, 12, 7))
    x = model.embed(batch)
    kept = model.selection(x, batch).kept
    noise = torch.randn_like(x)
    answer = model(x, batch).logits
    assert torch.equal(model(x + noise * ~kept[..., None], batch).logits, answer)
    assert not torch.allclose(model(x + noise * kept[..., None], batch).logits, answer)


def test_scores_become_chances_in_the_same_order() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 1, 12, 1, dtype=torch.float64, generator=generator)
    mask = builders.batch().mask
    chance = Saliency().chance(scores, mask)
    for row, real in enumerate(mask):
        assert torch.equal(chance[row, 0][real].argsort(), scores[row, 0, :, 0][real].argsort())
        assert (chance[row, 0][real] > 0).all() and (chance[row, 0][real] < 1).all()
        assert (chance[row, 0][~real] == 0).all()
    equal = Saliency().chance(torch.full_like(scores, 3.0), mask)
    assert torch.isfinite(equal).all()


def test_a_window_is_the_stretch_with_the_highest_sum_of_scores() -> None:
    rules, batch = fresh(Options(rate=0.25), "lrp", "window").rules, builders.batch((9, 12, 7))
    cast = players(rules, READERS)
    kept = Rationaliser(cast, rules).selection(cast.predictor.embed(batch), batch).kept
    scores = saliency("lrp", cast, cast.predictor.embed(batch), batch)
    for row, length in enumerate((9, 12, 7)):
        width = int(np.ceil(0.25 * length))
        sums = [float(scores[row, start : start + width].sum()) for start in range(length - width + 1)]
        first = int(np.argmax(sums))
        assert kept[row].nonzero()[:, 0].tolist() == list(range(first, first + width))


def test_units_have_the_mean_score_of_their_words() -> None:
    rules, batch = fresh(Options(units=Units("span", 3))).rules, builders.batch((7, 3))
    cast = players(rules, READERS)
    play = Play(cast, batch, rules, decoded=True)
    scores = saliency("lrp", cast, play.x, batch)
    expected = torch.stack([scores[0, 0:3].mean(), scores[0, 3:6].mean(), scores[0, 6]])
    torch.testing.assert_close(play.theta[0, 0, :, 0], expected)


def test_an_extractor_pays_the_cross_entropy_with_what_the_teacher_selects() -> None:
    rules, batch = fresh_tagged(Options(rate=0.3)).rules, builders.batch()
    cast = players(rules, (*READERS, "selector"))
    play = Play(cast, batch, rules)
    wanted = Decoding("top", 0.3)(Saliency().chance(play.salient("lrp"), batch.mask), batch.mask)[:, 0].numpy()
    chance, real = play.drawn.chance[:, 0].detach().numpy(), batch.mask.numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.where(real, -(wanted * np.log(chance) + (1 - wanted) * np.log(1 - chance)), 0)
    found = Imitation("lrp", Decoding("top", 0.3))(play)
    np.testing.assert_allclose(found.detach().numpy(), costs.sum(-1) / real.sum(-1), rtol=1e-10)


def test_each_stage_moves_its_own_players_alone() -> None:
    scheme = fresh_tagged(Options(rate=0.3))
    names = {"teacher": "readers.teacher", "tag": "head.", "answer": "readers.predictor.decoder"}
    table = "readers.predictor.embedding.weight"
    for stage, (moved, part) in zip(scheme.stages, names.items(), strict=True):
        cast = players(scheme.rules, (*READERS, "selector"), dtype=torch.float32)
        before = {name: tensor.clone() for name, tensor in cast.state_dict().items()}
        learn(cast, replace(scheme, stages=(stage,)), rows(), rows(), TRAINING)
        after = cast.state_dict()
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        assert any(name.startswith(part) for name in changed)
        assert (table in changed) == (moved == "teacher")
        others = [other for other in names.values() if other != part]
        assert not any(name.startswith(other) for name in changed for other in others)


def test_an_unknown_saliency_is_named() -> None:
    with pytest.raises(AssayError, match="atention"):
        Rules(saliency="atention")
