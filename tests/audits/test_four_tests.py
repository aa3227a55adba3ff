"""The four tests of attention: each number is that of a model trained apart, and computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.audits.attention_tests import FrozenUniform, Guide, SeedVariance, TrainedAdversary
from assay.audits.cases import Resources
from assay.audits.deception import Deception
from assay.audits.findings import classes_told, summarise
from assay.audits.rivals import Rival, averaged, compared, viewed
from assay.data.batches import tokenise
from assay.errors import AssayError
from assay.models import recipes
from assay.models.objectives import Guided, Imitated
from assay.models.recipes import Recipe, train
from tests import builders
from tests.audits import small_resources
from tests.audits.test_pairs_and_sentences import corpus as small

AUDITS = (FrozenUniform(), SeedVariance(seeds=2), Guide(strength=0.5), TrainedAdversary((0.0, 1.0), seeds=2))


@pytest.fixture(scope="module")
def resources(tmp_path_factory):
    return small_resources.resources({}, tmp_path_factory.mktemp("resources"))


@pytest.fixture(scope="module")
def case(resources):
    return small_resources.case(resources)


@pytest.fixture(scope="module")
def ready(resources):
    """All four, prepared with the same resources as in a run."""
    return {type(audit): audit.prepared(resources) for audit in AUDITS}


def seeded(seed):
    return replace(small_resources.RECIPE, training=replace(small_resources.RECIPE.training, seed=seed))


def built(**options):
    return replace(small_resources.RECIPE, architecture=replace(small_resources.RECIPE.architecture, **options))


def by_hand(case, network, edit=None):
    """JSD, TVD, whether the decision is the same and whether it is right, by loops over weights and classes."""
    with torch.no_grad():
        base = case.model(case.model.embed(case.batch), case.batch)
        other = network(network.embed(case.batch), case.batch, edit)
    found = []
    for row in range(len(case.batch)):
        p, q = (each.attention[-1][row].double().tolist() for each in (base, other))
        half = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        jsd = sum((x * math.log(x / m) if x > 0 else 0.0) for y in (p, q) for x, m in zip(y, half, strict=True)) / 2
        one, two = (each.probabilities[row].double().tolist() for each in (base, other))
        tvd = sum(abs(a - b) for a, b in zip(one, two, strict=True)) / 2
        choice = two.index(max(two))
        found.append((jsd, tvd, choice == one.index(max(one)), choice == int(case.batch.labels[row])))
    return np.array(found, dtype=float).T


def check(case, measures, subject, network):
    for name, values in zip(("jsd", "tvd", "same", "right"), by_hand(case, network), strict=True):
        np.testing.assert_allclose(measures[f"{name}:{subject}"], values, atol=1e-6)


def test_frozen_attention_is_exactly_even_and_its_model_is_trained_apart(ready, case):
    audit = ready[FrozenUniform]
    network = train(small_resources.corpus(), built(projection="uniform")).network
    assert torch.equal(audit.rivals["uniform"].network.decoder.weight, network.decoder.weight)
    even = case.batch.mask / case.batch.mask.sum(-1, keepdim=True)
    assert np.array_equal(viewed(audit.rivals["uniform"], case.batch).weights, even.double().numpy())
    measures = audit(case).measures
    _, tvd, same, right = by_hand(case, network)
    learnt = (case.predicted == case.batch.labels).numpy().astype(float)
    assert measures["tvd:uniform"] == pytest.approx(tvd, abs=1e-6)
    assert np.array_equal(measures["same:uniform"], same) and np.array_equal(measures["right:uniform"], right)
    assert np.array_equal(measures["right:learnt"], learnt)
    assert np.array_equal(measures["right_gain:learnt"], learnt - right)


def test_seeds_are_those_after_the_models_own_and_are_compared_by_hand(ready, case):
    measures = ready[SeedVariance](case).measures
    for seed in (1, 2):
        check(case, measures, f"seed {seed}", train(small_resources.corpus(), seeded(seed)).network)
    for name in ("jsd", "tvd", "same", "right"):
        mean = (measures[f"{name}:seed 1"] + measures[f"{name}:seed 2"]) / 2
        np.testing.assert_allclose(measures[f"{name}:seeds"], mean)
    assert len(measures) == 4 * 3


def test_a_guide_is_read_under_the_attention_that_it_learnt_with(ready, case):
    audit, corpus = ready[Guide], small_resources.corpus()
    alone = built(encoder="average")
    measures = audit(case).measures
    imported = Guided(case.model)
    network = train(corpus, alone, objective=imported).network
    *_, right = by_hand(case, network, imported.teacher_edit(case.batch))
    assert np.array_equal(measures["right:imported"], right)
    assert np.array_equal(viewed(audit.rivals["imported"], case.batch).weights, case.weights.numpy())
    *_, learnt = by_hand(case, train(corpus, alone).network)
    assert np.array_equal(measures["right:learnt"], learnt)
    assert np.array_equal(measures["right_gain:imported"], right - learnt)
    *_, even = by_hand(case, train(corpus, built(encoder="average", projection="uniform")).network)
    assert np.array_equal(measures["right:uniform"], even)


def test_the_adversarial_guide_gives_the_attention_of_the_adversary(ready, case):
    unlike = replace(small_resources.RECIPE, training=replace(small_resources.RECIPE.training, balanced=False))
    adversary = train(small_resources.corpus(), unlike, objective=Imitated(case.model, 0.5)).network
    with torch.no_grad():
        shown = adversary(adversary.embed(case.batch), case.batch).attention[-1]
    found = viewed(ready[Guide].rivals["adversarial"], case.batch).weights
    assert np.array_equal(found, shown.double().numpy())
    assert np.abs(found - case.weights.numpy()).max() > 0.01


def test_a_strong_adversary_looks_further_away_than_a_weak_one(ready, case):
    audit = ready[TrainedAdversary]
    measures = audit(case).measures
    assert measures["jsd:λ=1"].mean() > 2 * measures["jsd:λ=0"].mean()
    assert measures["jsd:λ=1"].mean() > 0.2
    for name in ("λ=0", "λ=1"):
        check(case, measures, name, audit.rivals[name].network)
    both = ready[SeedVariance](case).measures
    assert np.array_equal(measures["jsd:seed 2"], both["jsd:seed 2"])


def test_models_are_trained_once_for_all_audits(resources, ready, monkeypatch):
    monkeypatch.setattr(recipes, "fit", lambda *_: pytest.fail("trained again"))
    for audit in AUDITS:
        again = audit.prepared(resources)
        assert again.unfit(small_resources.case(resources)) is None
    names = {path.name for path in (resources.folder / "retrained").iterdir()}
    assert {"uniform", "seed-1", "seed-2", "adversary-0", "adversary-0.5", "adversary-1"} <= names


@pytest.mark.parametrize("shape", ["paired", "hierarchical"])
def test_models_are_made_in_the_shape_of_the_audited_one(shape):
    recipe = Recipe(
        replace(small_resources.RECIPE.architecture, shape=shape, encoder="gru", projection="sparsemax"),
        small_resources.RECIPE.text,
        replace(small_resources.RECIPE.training, epochs=2),
    )
    corpus = small(shape == "paired")
    model = train(corpus, recipe)
    rows, _ = tokenise(corpus.test, model.tokeniser, 99)
    resources = Resources(model, {}, rows, corpus)
    for audit in (*AUDITS, Deception(words="red", strengths=(1.0,))):
        measures = audit.prepared(resources)(small_resources.case(resources)).measures
        assert all(values.shape == (9,) and not np.isinf(values).any() for values in measures.values())
        assert np.isfinite(np.stack(list(measures.values()))).any(-1).all()


def test_what_another_model_does_is_not_told_by_class(ready, case):
    measures = ready[SeedVariance](case).measures
    found = summarise(
        "seed_variance",
        "sample",
        measures,
        case.predicted.numpy(),
        classes_told(SeedVariance(), ("kitchen", "workshop")),
    )
    assert {each.group for each in found} == {"all"}
    assert {each.subject for each in found} == {"seed 1", "seed 2", "seeds"}
    assert all(each.mean == pytest.approx(measures[f"{each.measure}:{each.subject}"].mean()) for each in found)


@pytest.mark.parametrize("kind", ["hierarchical-gru", "paired-lstm", "lstm-sparse", "structured", "spans", "aspect"])
def test_any_shape_is_compared_item_by_item(kind):
    batch = builders.texts()
    case = small_resources.Case(builders.kind(kind), batch, {})
    network = builders.model(seed=3, **builders.KINDS[kind])
    measures = compared(case, Rival(network), "other")
    check(case, measures, "other", network)
    itself = compared(case, Rival(case.model), "itself")
    assert (itself["jsd:itself"] < 1e-12).all() and (itself["tvd:itself"] == 0).all()
    assert np.array_equal(averaged(measures | itself, "both")["tvd:both"], measures["tvd:other"] / 2)


@pytest.mark.parametrize("audit", AUDITS, ids=lambda audit: type(audit).__name__)
def test_what_they_cannot_be_asked_of_is_said(audit, case, ready):
    assert "not at hand" in audit.unfit(case)
    assert "not at hand" in audit.prepared(replace(small_resources.resources({}), corpus=None)).unfit(case)
    unknown = replace(small_resources.model(), history=small_resources.model().history | {"recipe": None})
    assert "not known how" in audit.prepared(replace(small_resources.resources({}), model=unknown)).unfit(case)
    assert ready[type(audit)].unfit(case) is None
    assert "trained anew" in ready[type(audit)].unfit(replace(case, model=small_resources.Foreign()))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SeedVariance(seeds=1), "at least 2"),
        (lambda: TrainedAdversary(strengths=()), "one or more numbers from 0"),
        (lambda: TrainedAdversary(strengths=(0.1, float("nan"))), "numbers from 0"),
        (lambda: TrainedAdversary(strengths=(0.1, 0.1)), "once"),
        (lambda: TrainedAdversary(seeds=-1), "from 0"),
        (lambda: Guide(strength=-1.0), "numbers from 0"),
    ],
)
def test_options_that_cannot_be_are_refused_in_one_sentence(make, sentence):
    with pytest.raises(AssayError, match=sentence):
        make()
