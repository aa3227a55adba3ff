"""Damping that is found from the training, against trainings without half of the examples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from assay.data.batches import tokenise
from assay.data.corpora import corpus
from assay.data.examples import thinned
from assay.influence.damping import chosen_damping, damping_of_each, learnt_share, reach
from assay.influence.setting import Setting
from assay.influence.targets import margin
from assay.influence.training_run import TrainingRun
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.models.textmodel import TextModel
from tests import builders
from tests.influence import small


def learnt(encoder: str, name: str, count: int, queries: int = 40, epochs: int = 20, rate: float = 5e-3) -> Setting:
    """A small model that has learnt a planted corpus, of which one label in twenty is wrong."""
    whole = corpus(name)
    texts, rng = thinned(whole, count, 0), np.random.default_rng(0)
    wrong = [replace(each, label=1 - each.label) if rng.random() < 0.05 else each for each in texts.train]
    texts = replace(texts, train=tuple(wrong))
    recipe = Recipe(
        Architecture(encoder=encoder, embedding=8, hidden=6, alignment_size=4),
        training=Training(epochs=epochs, patience=5, batch_size=16, learning_rate=rate),
    )
    model = train(texts, recipe)
    training_run = TrainingRun.of(model, texts)
    asked, _ = tokenise(whole.test[:queries], model.tokeniser, 100)
    return Setting.of(model.network, training_run.rows, asked, training_run=training_run)


@pytest.fixture(scope="module")
def small_one() -> Setting:
    return learnt("average", "planted:keyword", 120, 25, epochs=6, rate=1e-2)


def test_the_reach_follows_from_the_gradients_of_all_steps(small_one: Setting) -> None:
    training_run = small_one.training_run
    assert training_run is not None
    seen: list[torch.Tensor] = []

    def watch(number: int, network: TextModel, optimiser: torch.optim.Optimizer) -> None:
        if number:
            seen.append(network.get_parameter("embedding.weight").grad.double().clone())  # type: ignore[union-attr]

    training_run.learn(watch=watch)
    moments = [torch.zeros_like(seen[0])]
    for each in seen:
        moments.append(0.999 * moments[-1] + 0.001 * each**2)
    corrected = torch.stack(moments).amax(0) / (1 - 0.999 ** len(seen))
    expected = len(seen) * 1e-2 / (corrected.sqrt() + 1e-8)
    met = corrected > 0
    assert len(seen) == training_run.steps and met.sum() > 100
    found = reach(training_run)["embedding.weight"]
    torch.testing.assert_close(found[met].double(), expected[met], rtol=1e-4, atol=0.0)
    assert bool(found.isfinite().all())


def test_one_damping_leaves_as_many_directions_as_that_of_each(small_one: Setting) -> None:
    found, rows = chosen_damping(small_one), small.directions(small_one).double()
    each = torch.cat([one.flatten() for one in damping_of_each(small_one).values()]).double()
    plain, learnt = (torch.linalg.eigvalsh(rows @ (rows / by).T).clamp(min=0) for by in (found, each))
    assert float((plain / (1 + plain)).sum()) == pytest.approx(float((learnt / (1 + learnt)).sum()), rel=1e-3)


def test_what_was_learnt_is_a_share_of_the_loss() -> None:
    setting = small.setting(builders.model(encoder="average"))
    with torch.no_grad():
        for each in setting.parameters.values():
            each.zero_()
    labels = np.array([row.label for row in setting.train])
    shares = np.bincount(labels, setting.weights) / setting.weights.sum()
    expected = 1 - math.log(2) / -(shares * np.log(shares)).sum()
    assert learnt_share(setting) == pytest.approx(max(1e-3, expected))


def test_without_a_course_the_damping_is_the_mean_curvature() -> None:
    setting = small.setting(builders.model(encoder="average", classes=3), count=6)
    expected = float(small.directions(setting).square().sum(0).mean())
    assert chosen_damping(setting) == pytest.approx(expected)
    assert all(bool((each == chosen_damping(setting)).all()) for each in damping_of_each(setting).values())


class Halves:
    """Trainings without half of the examples, and the rank correlation of what is predicted of them with them."""

    def __init__(self, setting: Setting, count: int) -> None:
        assert setting.training_run is not None
        rng, rows = np.random.default_rng(1), len(setting.train)
        self.setting = setting
        self.removed = np.array([rng.permutation(rows) < rows // 2 for _ in range(count)], dtype=float)
        self.margins = np.array([self._margins(setting.training_run.learn(1 - each)) for each in self.removed])
        self.gradients, self.asked = small.learnt(setting).double(), small.asked(setting).double()
        self.rows = small.directions(setting).double()

    def _margins(self, network: TextModel) -> np.ndarray:
        found = np.zeros(len(self.setting.queries))
        with torch.no_grad():
            for indices, batch in self.setting.batches(self.setting.queries):
                logits = network(network.embed(batch), batch).logits
                found[indices] = margin(logits, torch.from_numpy(self.setting.classes[indices])).numpy()
        return found

    def score(self, damping: torch.Tensor | float) -> float:
        """The linear datamodelling score of Gauss–Newton with this damping, in double precision."""
        decay = [
            torch.full((each.numel(),), self.setting.decay[name]) for name, each in self.setting.parameters.items()
        ]
        base = torch.cat(decay).double() + damping
        scaled = self.rows / base  # by the formula of Woodbury
        inner = torch.eye(len(self.rows), dtype=torch.float64) + scaled @ self.rows.T
        solved = self.asked / base
        solved = solved - solved @ self.rows.T @ torch.linalg.solve(inner, scaled)
        scores = (solved @ self.gradients.T).numpy() * self.setting.weights
        predicted = self.removed @ scores.T
        pairs = zip(predicted.T, self.margins.T, strict=True)
        return float(np.mean([spearmanr(each, true).statistic for each, true in pairs]))

    def judged(self) -> tuple[float, float, float, float]:
        """With one damping, the best of a sweep of it; with the damping of each, the best of its multiples."""
        one = chosen_damping(self.setting)
        each = torch.cat([part.flatten() for part in damping_of_each(self.setting).values()]).double()
        powers = 10.0 ** np.arange(-6, 2.1, 0.5)
        multiples = 10.0 ** np.arange(-2, 2.1, 0.5)
        best = (max(self.score(float(power)) for power in powers), max(self.score(each * by) for by in multiples))
        return self.score(one), best[0], self.score(each), best[1]


def test_a_model_stopped_early_is_damped_well(small_one: Setting) -> None:
    halves = Halves(small_one, 10)
    each = torch.cat([part.flatten() for part in damping_of_each(small_one).values()]).double()
    found = [halves.score(each * by) for by in (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)]
    assert min(found) < 0.3 and max(found) > 0.5
    assert found[4] > max(found) - 0.1
    assert halves.score(chosen_damping(small_one)) > max(found) - 0.15


@pytest.mark.slow
@pytest.mark.parametrize("name", ["planted:keyword", "planted:majority"])
@pytest.mark.parametrize("encoder", ["average", "lstm"])
def test_damping_is_within_two_hundredths_of_the_best_of_a_sweep(encoder: str, name: str) -> None:
    one, best_one, each, best_each = figures = Halves(learnt(encoder, name, 300), 96).judged()
    print(encoder, name, figures)
    assert each >= max(best_each, best_one) - 0.02
    assert one >= best_one - 0.03  # one number for all is coarser: .003 to .025 were measured
