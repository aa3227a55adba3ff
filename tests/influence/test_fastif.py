"""Influence of the nearest examples alone, against the same of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.errors import AssayError
from assay.influence.functions import FastIF, InfluenceFunctions, recall
from assay.influence.gradients import Reader
from assay.influence.neighbours import Vectors
from assay.influence.representations import representations
from assay.influence.setting import Method, Setting
from assay.influence.similarity import query_gradients
from assay.influence.solvers import ConjugateGradients, Lissa
from tests.influence import signs

EXACT = InfluenceFunctions("explicit", damping=0.1).inverse


@pytest.fixture(scope="module")
def setting() -> Setting:
    training_run = signs.training_run(signs.rows(120), 3)
    network = training_run.learn().double()
    return replace(Setting.of(network, training_run.rows, signs.rows(6, 1)), weights=np.linspace(0.5, 1.5, 120))


def whole(setting: Setting) -> np.ndarray:
    """∇f (G + λ)⁻¹ g w / N for all examples, from whole matrices."""
    reader, count = Reader(setting.network), len(setting.train)
    size = sum(each.numel() for each in setting.parameters.values())
    matrix = 0.1 * torch.eye(size, dtype=torch.float64)
    losses = torch.zeros(count, size, dtype=torch.float64)
    for indices, batch in setting.batches(setting.train):
        reading = reader.read(batch)
        shares = torch.from_numpy(setting.weights[indices]) / count
        losses[indices] = reading.gradients(setting.train_logit_gradients(batch, reading)).flat()
        for own in range(2):
            gradients = torch.zeros_like(reading.logits)
            gradients[:, own] = 1
            other = reading.gradients(gradients).flat()
            p = reading.logits.detach().softmax(-1)
            matrix += other.T @ (other * (shares * p[:, own])[:, None])
        mean = reading.gradients(reading.logits.detach().softmax(-1)).flat()
        matrix -= mean.T @ (mean * shares[:, None])
    asked = torch.cat([each.flatten(1) for each in query_gradients(setting).values()], 1)
    found: np.ndarray = (asked @ torch.linalg.solve(matrix, losses.T)).detach().numpy()
    return found * setting.weights / count


def test_candidates_have_the_scores_of_the_full_answer_and_others_none(setting: Setting) -> None:
    method = FastIF(0.2, "states", inverse=EXACT, compared=True)
    assert isinstance(method, Method) and method.unfit(setting) is None
    found, expected, near = method(setting), whole(setting), method.near(setting)
    chosen = np.zeros(expected.shape, bool)
    np.put_along_axis(chosen, near, True, 1)
    assert near.shape[1] == 24 and found.notes["candidates"] == 24
    np.testing.assert_allclose(found.scores[chosen], expected[chosen], rtol=1e-8)
    assert not found.scores[~chosen].any()
    stored, asked = (
        representations(setting.network, rows, ["states"])["states"] for rows in (setting.train, setting.queries)
    )
    assert np.array_equal(near, Vectors(stored, "euclidean").nearest(asked, 24).indices)
    largest = np.argsort(-np.abs(expected), axis=1)[:, :10]
    there = [len(set(one) & set(other)) / 10 for one, other in zip(largest, near, strict=True)]
    assert found.notes["recall"] == pytest.approx(np.mean(there)) and found.notes["speed-up"] > 0


def test_all_candidates_lose_nothing(setting: Setting) -> None:
    found = FastIF(len(setting.train), inverse=EXACT, compared=True)(setting)
    np.testing.assert_allclose(found.scores, whole(setting), rtol=1e-8)
    assert found.notes["recall"] == 1 and found.notes["read"] == len(setting.train)


@pytest.mark.slow
def test_other_solvers_come_near(setting: Setting) -> None:
    exact = EXACT(setting, vectors := query_gradients(setting))
    solvers = {1e-3: ConjugateGradients(), 0.35: Lissa(batch=16, repeats=1, terms=60)}
    for bound, solver in solvers.items():
        found = InfluenceFunctions(solver, damping=0.1).inverse(setting, vectors)
        off = [torch.stack([(found[name] - each).square().sum(), each.square().sum()]) for name, each in exact.items()]
        missed, size = torch.stack(off).sum(0).sqrt()
        assert missed <= bound * size, solver


def test_parts_on_several_devices_are_put_together(setting: Setting) -> None:
    one, three = (FastIF(0.3, inverse=EXACT, devices=devices)(setting) for devices in ((), ("cpu",) * 3))
    np.testing.assert_allclose(three.scores, one.scores, rtol=1e-10)


def test_other_queries_change_nothing(setting: Setting) -> None:
    alone = replace(setting, queries=setting.queries[2:3], classes=setting.classes[2:3])
    method = FastIF(0.1, inverse=EXACT)
    np.testing.assert_allclose(method(alone).scores[0], method(setting).scores[2], rtol=1e-8)


def test_recall_counts_the_largest_whatever_their_sign() -> None:
    scores = np.array([[5.0, -9.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    assert recall(scores, np.array([[1], [3]]), top=1) == 1
    assert recall(scores, np.array([[0], [0]]), top=1) == 0
    assert recall(scores, np.array([[0, 2], [2, 3]]), top=2) == 0.75


def test_what_cannot_be_is_refused(setting: Setting) -> None:
    with pytest.raises(AssayError, match="1 to 120"):
        FastIF(500)(setting)
    assert "no layer" in str(FastIF(layer="layer 3").unfit(setting))
