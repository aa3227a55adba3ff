"""What every method of influence owes its caller, checked over all of them and several kinds of models."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from functools import cache

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence import METHODS
from assay.influence.functions import FastIF, InfluenceFunctions
from assay.influence.neighbours import Neighbours, NeighbourShapley
from assay.influence.projected import ProjectedGaussNewton
from assay.influence.setting import Influence, Introspective, Method, Setting
from assay.influence.solvers import Arnoldi, ConjugateGradients, Lissa
from tests import builders
from tests.contracts.covering import covering, fitting
from tests.influence import small, training_runs

TRAINED = ("trained-lstm", "trained-average", "trained-cnn")
"""Kinds whose training is at hand."""

EXPLICIT = InfluenceFunctions("explicit", damping=0.1)
QUICK: dict[str, Method] = METHODS | {
    "arnoldi": InfluenceFunctions(Arnoldi(steps=30, rank=10), damping=0.1),
    "conjugate": InfluenceFunctions(ConjugateGradients(tolerance=1e-12), damping=0.1),
    "fastif": FastIF(candidates=0.5, inverse=EXPLICIT.inverse),
    "lissa": InfluenceFunctions(Lissa(batch=None, repeats=1, terms=20), damping=5.0),
    "neighbours": Neighbours(k=5),
    "neighbour_shapley": NeighbourShapley(k=5),
    "projected": ProjectedGaussNewton(size=256, side=32, damping=0.1),
}
"""All methods; those that compute most compute less here."""

KINDS = ("lstm", "cnn", "average", "hierarchical-none", "paired-average", *TRAINED)


@cache
def setting(kind: str) -> Setting:
    """Some texts that were learnt from, and four that are asked about."""
    if kind not in TRAINED:
        network = builders.model(embedding=3, hidden=4, alignment_size=3, **builders.KINDS[kind])
        return small.setting(network, count=10)
    return training_runs.setting(*training_runs.training_run(kind.removeprefix("trained-")))


@cache
def reason(name: str, kind: str) -> str | None:
    return QUICK[name].unfit(setting(kind))


@cache
def answered(name: str, kind: str) -> Influence:
    return QUICK[name](setting(kind))


FIT, UNFIT = fitting(METHODS, KINDS, lambda name, kind: reason(name, kind) is None)
EVERY = pytest.mark.parametrize("name", METHODS)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for rounding."""
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


@EVERY
def test_every_method_serves_some_kind_of_model(name):
    assert any(name == fit for fit, _ in FIT)


@covering(UNFIT, each=1)
def test_an_unfit_model_is_refused_with_the_reason(name, kind):
    with pytest.raises(AssayError) as refusal:
        QUICK[name](setting(kind))
    assert reason(name, kind) in str(refusal.value) and "\n" not in str(refusal.value)


@covering(FIT)
def test_one_finite_number_for_each_query_and_training_example(name, kind):
    given, found = setting(kind), answered(name, kind)
    assert found.scores.shape == (len(given.queries), len(given.train))
    assert np.isfinite(found.scores).all() and (found.scores != 0).any()
    assert 0 < found.covered <= 1
    assert found.errors is None or (found.errors.shape == found.scores.shape and (found.errors >= 0).all())
    json.dumps(found.notes, allow_nan=False)


@covering(FIT, each=1, turn=1)
def test_order_and_number_of_queries_change_nothing(name, kind):
    given, found = setting(kind), answered(name, kind).scores
    order = np.array([2, 0, 3, 1])
    shuffled = replace(given, queries=[given.queries[place] for place in order], classes=given.classes[order])
    close(QUICK[name](shuffled).scores, found[order])
    single = replace(given, queries=given.queries[1:2], classes=given.classes[1:2])
    close(QUICK[name](single).scores, found[1:2])


@covering(FIT, each=1, turn=2)
def test_the_same_call_gives_the_same_scores_and_leaves_the_model_as_it_was(name, kind):
    given = setting(kind)
    network = given.network
    before = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    gradients = [(parameter.grad, parameter.requires_grad) for parameter in network.parameters()]
    random_state = torch.get_rng_state()
    found = QUICK[name](given).scores
    assert torch.equal(torch.get_rng_state(), random_state)
    assert np.array_equal(QUICK[name](given).scores, found)
    assert not network.training
    assert all(torch.equal(before[key], tensor) for key, tensor in network.state_dict().items())
    for parameter, (gradient, required) in zip(network.parameters(), gradients, strict=True):
        assert parameter.grad is gradient and parameter.requires_grad is required
    assert not any(module._forward_hooks or module._backward_hooks for module in network.modules())


@covering(FIT, each=1, turn=3)
def test_labels_of_queries_are_not_looked_at_where_their_class_is_asked_about(name, kind):
    given, found = setting(kind), answered(name, kind).scores
    blind = [replace(row, label=1 - row.label) for row in given.queries]
    assert np.array_equal(QUICK[name](replace(given, queries=blind)).scores, found)


@covering([(name, kind) for name, kind in FIT if kind not in TRAINED], each=1, turn=4)
def test_order_of_the_training_examples_changes_nothing(name, kind):
    given, found = setting(kind), answered(name, kind).scores
    order = np.random.default_rng(3).permutation(len(given.train))
    train = [given.train[place] for place in order]
    close(QUICK[name](replace(given, train=train, weights=given.weights[order])).scores, found[:, order])


@covering([(name, kind) for name, kind in FIT if isinstance(QUICK[name], Introspective)], each=1, turn=5)
def test_what_a_method_says_of_the_training_examples_themselves_is_finite(name, kind):
    given = setting(kind)
    own = QUICK[name].own(given)
    assert own.shape == (len(given.train),) and np.isfinite(own).all()


@EVERY
def test_options_can_be_stored_as_json(name):
    stored = json.loads(json.dumps(asdict(METHODS[name]), allow_nan=False))
    assert stored.keys() == {each.name for each in fields(METHODS[name])}
