"""LIME and KernelSHAP against closed forms, enumeration and captum; how sets of tokens are drawn."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import KernelShap as CaptumKernelShap
from captum.attr import LimeBase

from assay import costs
from assay.errors import AssayError
from assay.explainers import shapley as coalitions
from assay.explainers.shapley import Shapley
from assay.explainers.surrogates import KernelShap, Lime, planned
from tests import builders
from tests.explainers import games

COEFFICIENTS = torch.tensor(
    [0.2, -0.1, 0.0, 0.15, -0.05, 0.1, 0.02, 0.08, -0.03, 0.04, 0.06, -0.02], dtype=torch.float64
)


@pytest.mark.parametrize("players", [5, 12])
def test_an_additive_model_gives_its_coefficients(players):
    game = games.additive(COEFFICIENTS[:players], start=0.3)
    batch, target = games.texts([list(range(1, players + 1))])
    expected = COEFFICIENTS[None, :players]
    torch.testing.assert_close(KernelShap()(game, batch, target), expected, atol=1e-6, rtol=1e-5)
    found = Lime(ridge=1e-12).attribute(game, batch, target)
    torch.testing.assert_close(found.scores, expected, atol=1e-6, rtol=1e-5)
    assert found.numbers["fit"].item() == pytest.approx(1)
    torch.testing.assert_close(Lime()(game, batch, target), expected, atol=0.01, rtol=0.05)  # the penalty's share


def lime_by_hand(worth, players, versions=256, width=25.0, penalty=256 / 5000):
    """Weighted ridge regression over all parts, written as ordinary least squares with more rows."""
    rows, answers = [], []
    for part in product([0.0, 1.0], repeat=players):
        removed = players - sum(part)
        count = (versions - 1) / players / math.comb(players, int(removed)) if removed else 1
        cosine = sum(part) / math.sqrt(sum(part) * players) if sum(part) else 0.0
        weight = count * math.sqrt(math.exp(-((100 * (1 - cosine)) ** 2) / width**2))
        rows.append(np.sqrt(weight) * np.array([*part, 1.0]))
        answers.append(np.sqrt(weight) * float(worth(torch.tensor(part, dtype=torch.float64)[None])))
    for place in range(players):
        rows.append(np.sqrt(penalty) * np.eye(players + 1)[place])
        answers.append(0.0)
    return np.linalg.lstsq(np.array(rows), np.array(answers), rcond=None)[0][:players]


@pytest.mark.parametrize("players", [1, 4, 7])
def test_lime_over_all_parts_is_the_weighted_ridge_regression(players):
    game = games.table(players)
    batch, target = games.texts([list(range(1, players + 1))])
    found = Lime()(game, batch, target)[0].numpy()
    np.testing.assert_allclose(found, lime_by_hand(game.worth, players), atol=1e-6)
    assert game.reads == 2**players


def test_sampled_lime_approaches_the_regression_over_all_parts():
    rows = games.shuffled(9, 40)
    batch, target = games.texts(rows)
    game = games.table(9)
    found = games.by_player(Lime(samples=400)(game, batch, target), rows).double()
    expected = torch.from_numpy(lime_by_hand(game.worth, 9, versions=400, penalty=400 / 5000))
    assert (found.mean(0) - expected).abs().max() < 4 * found.std(0).max() / math.sqrt(40)
    assert found.std(0).max() < 0.06


def test_lime_removes_any_number_of_tokens_alike_often():
    batch, target = games.texts(games.shuffled(12, 20))
    game = games.additive(COEFFICIENTS, start=0.3)
    Lime(samples=601)(game, batch, target)
    counts = np.bincount(game.sizes, minlength=13)
    assert counts[12] == 20  # the whole text once each
    assert np.abs(counts[:12] - 1000).max() < 4 * math.sqrt(1000)


def test_captum_fits_the_same_lime():
    """All parts of a text of four tokens, blank where removed, with lime's weights."""
    pytest.importorskip("sklearn")
    model, batch = builders.model(encoder="cnn"), builders.batch((4,))
    probability, x, _ = games.peer(model, batch, 0, 1)
    parts = iter([torch.tensor([part], dtype=torch.float64) for part in product([0.0, 1.0], repeat=4)])

    def weight(original, perturbed, part, **_):
        removed = 4 - int(part.sum())
        distance = 100 * (1 - math.sqrt(part.mean()))
        return (255 / 4 / math.comb(4, removed) if removed else 1) * math.exp(-(distance**2) / 2 / 25**2)

    theirs = LimeBase(
        probability,
        SkLearnRidge(alpha=256 / 5000),
        weight,
        lambda original, **_: next(parts),
        perturb_interpretable_space=True,
        from_interp_rep_transform=lambda part, original, **_: original * part[..., None],
        to_interp_rep_transform=None,
    )
    expected = theirs.attribute(x, n_samples=16, perturbations_per_eval=1)
    found = Lime(removal="zero")(model, batch, torch.tensor([1]))
    torch.testing.assert_close(found, expected.to(found), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("encoder", ["lstm", "transformer"])
def test_kernel_shap_over_all_sets_gives_shapley_values(encoder):
    model, batch = builders.model(encoder=encoder), builders.batch((8, 1, 2, 3, 5))
    found = KernelShap().attribute(model, batch, batch.labels)
    torch.testing.assert_close(found.scores, Shapley()(model, batch, batch.labels), atol=1e-6, rtol=1e-5)
    assert (found.numbers["exact"] == 1).all()


@pytest.mark.parametrize("length", [9, 12, 40])
def test_sampled_kernel_shap_sums_to_what_the_whole_text_adds(length):
    model, batch = builders.model(), builders.batch((length, length))
    with torch.no_grad():
        whole = model(model.embed(batch), batch).probabilities.gather(1, batch.labels[:, None])[:, 0]
    none = model.decoder.bias.softmax(-1).detach()[batch.labels]
    found = KernelShap().attribute(model, batch, batch.labels)
    torch.testing.assert_close(found.scores.sum(-1).double(), whole - none, atol=1e-6, rtol=1e-5)
    assert (found.numbers["exact"] == 0).all()


def test_sampled_kernel_shap_lies_around_the_exact_values():
    rows = games.shuffled(9, 100)
    batch, target = games.texts(rows)
    game = games.table(9)
    truth = games.by_player(Shapley()(game, batch[:1], target[:1]), rows[:1])
    found = games.by_player(KernelShap(samples=200)(game, batch, target), rows)
    spread = found.std(0)
    assert ((found.mean(0) - truth[0]).abs() < 4 * spread / 10).all()
    assert spread.max() < 0.03


@pytest.mark.parametrize(("versions", "tokens"), [(64, 6), (40, 6), (256, 20), (1800, 300), (100, 11)])
def test_each_size_counts_the_mass_of_the_shapley_kernel(versions, tokens):
    plan = planned(versions, tokens)
    masses = torch.zeros(tokens + 1, dtype=torch.float64)
    masses.index_add_(0, plan.read.sum(-1), plan.weights)
    masses.index_add_(0, plan.sizes, plan.drawn)
    masses.index_add_(0, tokens - plan.sizes, plan.drawn)
    sizes = torch.arange(1, tokens)
    expected = (tokens - 1) / (sizes * (tokens - sizes)).double()
    met = masses[1:-1] > 0
    torch.testing.assert_close(masses[1:-1][met], expected[met])
    assert expected[~met].sum() < 0.05 * expected.sum()
    assert versions - 1 <= len(plan.read) + 2 * len(plan.sizes) <= versions
    assert len(plan.read.unique(dim=0)) == len(plan.read)


def test_captums_kernel_shap_agrees_within_its_sampling_error():
    pytest.importorskip("sklearn")
    model, batch = builders.model(encoder="cnn"), builders.batch((7, 5))
    found = KernelShap(removal="zero")(model, batch, batch.labels)
    for row, label in enumerate(batch.labels.tolist()):
        probability, x, mask = games.peer(model, batch, row, label)
        torch.manual_seed(0)
        theirs = CaptumKernelShap(probability).attribute(
            x, feature_mask=mask, n_samples=1500, perturbations_per_eval=500
        )[0, :, 0]
        assert (found[row, : len(theirs)] - theirs).abs().max() < 0.05 * theirs.abs().max()


@pytest.mark.parametrize("explainer", [Lime(), KernelShap(), Shapley()])
def test_small_pieces_change_nothing(explainer, monkeypatch):
    model, batch = builders.model(), builders.batch((12, 5, 12, 12))
    at_once = explainer(model, batch, batch.labels)
    monkeypatch.setattr(coalitions, "TOKENS", 1)
    torch.testing.assert_close(explainer(model, batch, batch.labels), at_once)


@pytest.mark.parametrize("explainer", [Lime, KernelShap, Shapley])
def test_another_seed_draws_other_sets(explainer):
    model, batch = builders.model(), builders.batch((12,))
    one, other = (explainer(seed=seed)(model, batch, batch.labels) for seed in (0, 1))
    assert not torch.equal(one, other)
    assert torch.corrcoef(torch.cat([one, other]))[0, 1] > 0.9


@pytest.mark.parametrize("explainer", [Lime(), KernelShap()])
def test_a_text_is_read_as_often_as_was_asked_for(explainer):
    for length, expected in ((4, 16), (8, 256), (20, 256), (50, 300)):
        with costs.measured() as cost:
            explainer(builders.model(), builders.batch((length, length)), torch.zeros(2, dtype=torch.long))
        assert cost.forward == 2 * expected


def test_random_numbers_are_even_and_belong_to_the_text():
    keys = coalitions.keys(builders.batch((7, 7, 7)), 0)
    drawn = coalitions.uniform(keys, 5000)
    assert drawn.min() >= 0 and drawn.max() < 1
    assert (drawn.mean(-1) - 0.5).abs().max() < 4 * math.sqrt(1 / 12 / 5000)
    assert torch.corrcoef(drawn).triu(1).abs().max() < 0.06
    assert torch.equal(coalitions.uniform(keys[1:], 10, 3).flatten(1), drawn[1:, :30])


def test_an_empty_text_gets_nothing():
    model, batch = builders.model(), builders.batch((4, 2))
    batch.mask[1] = False
    assert (Lime()(model, batch, batch.labels)[1] == 0).all()


def test_what_cannot_be_done_is_said_in_a_sentence():
    batch, target = games.texts([[1, 2]])
    with pytest.raises(AssayError, match="no embedding for nothing"):
        Lime(removal="zero")(games.table(2), batch, target)
    with pytest.raises(AssayError, match="samples must be at least 2"):
        KernelShap(samples=1)(games.table(2), batch, target)
