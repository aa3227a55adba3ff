"""Influence functions of a logistic regression, against trainings without the examples."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from assay.data.batches import Tokenised
from assay.influence.functions import InfluenceFunctions
from assay.influence.setting import Setting
from assay.models.textmodel import TextModel
from assay.types import Batch, Edit, Output

WORDS, TEXTS, QUERIES = 200, 500, 20


class Bag(TextModel):
    """Weighs the frequencies of words."""

    cascade = ("decoder",)

    def __init__(self, weights: np.ndarray) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(torch.eye(WORDS, dtype=torch.float64), freeze=True)
        self.decoder = nn.Linear(WORDS, 1, bias=False, dtype=torch.float64)
        self.decoder.weight.data = torch.from_numpy(weights)[None]

    classes = 2  # type: ignore[assignment]
    paired = False  # type: ignore[assignment]
    ordinary = 0  # type: ignore[assignment]
    facts = None  # type: ignore[assignment]

    def embed(self, batch: Batch) -> Tensor:
        found: Tensor = self.embedding(batch.ids)
        return found

    def forward(self, x: Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        score = self.decoder((x * batch.mask[..., None]).sum(1) / batch.lengths[:, None])
        return Output(torch.cat([torch.zeros_like(score), score], dim=1), ())

    def part(self, name: str) -> nn.Module:
        return self.decoder


@cache
def texts() -> tuple[list[Tokenised], np.ndarray, np.ndarray]:
    """Texts of words some of which are frequent, their frequencies, and labels that depend on them."""
    rng = np.random.default_rng(0)
    frequency = 1 / np.arange(1, WORDS + 1) ** 0.7
    meaning = 8 * rng.standard_normal(WORDS)
    rows, shares, labels = [], [], []
    for index in range(TEXTS + QUERIES):
        ids = rng.choice(WORDS, rng.integers(5, 25), p=frequency / frequency.sum())
        shares.append(np.bincount(ids, minlength=WORDS) / len(ids))
        labels.append(int(rng.random() < 1 / (1 + np.exp(-shares[-1] @ meaning))))
        empty = torch.zeros(len(ids), dtype=torch.long)
        rows.append(Tokenised(index, torch.from_numpy(ids), empty.int()[:, None].expand(-1, 2), empty, labels[-1]))
    return rows, np.array(shares, dtype=float), np.array(labels, dtype=float)


def trained(weights: np.ndarray, decay: float, start: np.ndarray | None = None) -> np.ndarray:
    """The minimum, by Newton's method."""
    shares, labels = texts()[1][:TEXTS], texts()[2][:TEXTS]
    found = np.zeros(WORDS) if start is None else start
    for _ in range(50):
        chance = 1 / (1 + np.exp(-shares @ found))
        gradient = shares.T @ (weights * (chance - labels)) / TEXTS + decay * found
        if np.linalg.norm(gradient) < 1e-13:
            break
        bend = (shares.T * (weights * chance * (1 - chance) / TEXTS)) @ shares + decay * np.eye(WORDS)
        found = found - np.linalg.solve(bend, gradient)
    return found


@cache
def best(decay: float) -> np.ndarray:
    return trained(np.ones(TEXTS), decay)


def setting(decay: float, **options: str) -> Setting:
    rows = texts()[0]
    network = Bag(best(decay))
    classes = np.ones(QUERIES, dtype=int)
    made = Setting.of(network, rows[:TEXTS], rows[TEXTS:], classes=classes, **options)  # type: ignore[arg-type]
    return Setting(network, made.train, made.queries, classes, made.target, decay={"decoder.weight": decay})


@pytest.mark.parametrize("decay", [1e-3, 0.1])
def test_scores_are_derivatives_of_training(decay: float) -> None:
    scores = InfluenceFunctions("explicit", damping=0.0)(setting(decay)).scores
    asked = texts()[1][TEXTS:]
    for index in (3, 77, 410):
        margins = []
        for change in (1e-3, -1e-3):
            weights = np.ones(TEXTS)
            weights[index] += change
            margins.append(asked @ trained(weights, decay, best(decay)))
        expected = -(margins[0] - margins[1]) / 2e-3  # towards a weight of 0
        assert np.abs(scores[:, index] - expected).max() <= 5e-4 * np.abs(expected).max()


def left_out(decay: float, indices: np.ndarray) -> np.ndarray:
    """The change of each query's margin without each of the examples."""
    asked, before = texts()[1][TEXTS:], best(decay)
    found = []
    for index in indices:
        weights = np.ones(TEXTS)
        weights[index] = 0
        found.append(asked @ (trained(weights, decay, before) - before))
    return np.array(found).T


@pytest.mark.parametrize(
    ("decay", "agreement", "plain", "corrected"), [(1e-3, 0.999, 0.1, 1e-3), (0.1, 0.9999, 1e-3, 1e-6)]
)
def test_scores_predict_training_without_an_example(
    decay: float, agreement: float, plain: float, corrected: float
) -> None:
    indices = np.arange(0, TEXTS, 25)
    expected = left_out(decay, indices)
    scores = InfluenceFunctions("explicit", damping=0.0)(setting(decay)).scores[:, indices]
    with_leverage = InfluenceFunctions("explicit", damping=0.0, leverage=True)(setting(decay)).scores[:, indices]
    assert np.corrcoef(scores.ravel(), expected.ravel())[0, 1] >= agreement
    errors = [np.linalg.norm(each - expected) / np.linalg.norm(expected) for each in (scores, with_leverage)]
    assert errors[0] <= plain
    assert errors[1] <= corrected
    assert errors[1] < errors[0] / 20


def test_both_curvatures_are_the_same_where_logits_are_linear() -> None:
    found = [InfluenceFunctions("explicit", each, 1e-3)(setting(1e-3)).scores for each in ("hessian", "gauss_newton")]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-12)
