"""What examples changed while a model learnt: sums over steps, checkpoints, and the last layer."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch

from assay.data.batches import collate
from assay.errors import AssayError
from assay.influence.gradients import Reader
from assay.influence.last_layer import TracInFast
from assay.influence.projection import Signs, summarised
from assay.influence.replay import adam_states, divided
from assay.influence.setting import Introspective, Method, Setting
from assay.influence.similarity import GradientDot
from assay.influence.tracin import TracIn, TracInIdeal, TracInProjected, checkpoints
from assay.influence.training_run import TrainingRun, Watch
from assay.models.config import Training
from assay.models.textmodel import TextModel
from tests import builders
from tests.influence import small


@dataclass(frozen=True)
class Plain(TrainingRun):
    """A training_run by plain descent, an example a step."""

    def learn(self, shares: np.ndarray | None = None, watch: Watch | None = None) -> TextModel:
        network = deepcopy(self.network)
        optimiser = torch.optim.SGD(network.parameters(), lr=self.training.learning_rate)
        groups = list(self.groups())
        for number, group in enumerate([*groups, None]):
            if watch is not None:
                watch(number, network, optimiser)
            if group is not None:
                optimiser.zero_grad()
                batch = collate([self.rows[index] for index in group])
                logits = network(network.embed(batch), batch).logits
                torch.nn.functional.cross_entropy(logits, batch.labels).backward()
                optimiser.step()
        return network.eval()


def losses(network: TextModel, setting: Setting) -> np.ndarray:
    """The losses of the queries."""
    found = np.zeros(len(setting.queries))
    for indices, batch in setting.batches(setting.queries):
        logits = network(network.embed(batch), batch).logits.detach()
        found[indices] = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="none").numpy()
    return found


def test_over_all_steps_the_scores_add_up_to_the_fall_of_the_loss() -> None:
    rows = small.texts(9)
    gaps = []
    for rate in (2e-3, 1e-3):
        training_run = Plain(
            builders.model(encoder="none"), rows[:6], Training(batch_size=1, learning_rate=rate, balanced=False), 2
        )
        setting = Setting.of(training_run.learn(), rows[:6], rows[6:], "loss", training_run=training_run)
        fall = losses(training_run.network, setting) - losses(setting.network, setting)
        found = TracInIdeal()(setting)
        assert found.notes["steps"] == 12
        gaps.append(np.abs(found.scores.sum(1) - fall).max() / np.abs(fall).mean())
    assert gaps[1] < 0.01
    assert gaps[1] / gaps[0] == pytest.approx(0.5, abs=0.05)  # of first order


@cache
def trained(encoder: str = "average") -> Setting:
    """A model that was trained by Adam for nine steps."""
    rows = small.texts(40, seed=3, classes=3)
    training = Training(batch_size=16, learning_rate=5e-3, seed=2)
    training_run = TrainingRun(builders.model(encoder=encoder, classes=3).train(), rows[:36], training, 3)
    return Setting.of(training_run.learn(), rows[:36], rows[36:], training_run=training_run)


def test_checkpoints_stand_at_equal_distances_and_the_last_is_the_model() -> None:
    setting = trained()
    assert setting.training_run is not None
    found = checkpoints(setting.training_run, 4)
    assert [each.stands_for for each in found] == [2, 2, 3, 2] and sum(each.stands_for for each in found) == 9
    assert all(each.rate == 5e-3 for each in found)
    for name, tensor in setting.network.state_dict().items():
        assert torch.equal(found[-1].network.state_dict()[name], tensor)
    assert len(checkpoints(setting.training_run, 100)) == 9


def test_scores_are_products_of_gradients_at_each_checkpoint() -> None:
    setting = trained()
    assert setting.training_run is not None
    expected, own = np.zeros((4, 36)), np.zeros(36)
    for each in checkpoints(setting.training_run, 2):
        expected += 5e-3 * each.stands_for * GradientDot()(each.setting(setting)).scores
        own += 5e-3 * GradientDot().own(each.setting(setting))
    found = TracIn(2)(setting)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-9)
    np.testing.assert_allclose(TracIn(2, steps=False).own(setting), own, rtol=1e-9)
    assert found.covered == 1


def test_in_the_metric_of_adam_gradients_are_divided_as_in_training() -> None:
    setting = trained()
    assert setting.training_run is not None
    (last,) = checkpoints(setting.training_run, 1)
    divided = torch.cat([last.spread[name].flatten() for name in setting.parameters])
    asked, learnt = small.asked(setting), small.learnt(setting)
    scale = 5e-3 * 9 * setting.weights / 36
    method = TracIn(1, "adam")
    np.testing.assert_allclose(method(setting).scores, (asked / divided @ learnt.T).numpy() * scale, rtol=1e-7)
    np.testing.assert_allclose(method.own(setting), (learnt.square() / divided).sum(1).numpy() * scale, rtol=1e-7)


def test_without_momentum_steps_of_adam_are_gradients_over_the_spread() -> None:
    layer = torch.nn.Linear(3, 1).double()
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.1, betas=(0.0, 0.999), amsgrad=True)
    for size in (1.0, 3.0, 0.5):
        earlier = layer.weight.detach().clone()
        layer.weight.grad = size * torch.tensor([[1.0, 2.0, -3.0]], dtype=torch.float64)
        optimiser.step()
        spread = {name: divided(group, state)[1] for name, group, state in adam_states(layer, optimiser)}
        assert set(spread) == {"weight"}
        torch.testing.assert_close(earlier - 0.1 * layer.weight.grad / spread["weight"], layer.weight.detach())


def test_fast_is_the_block_of_the_last_layer() -> None:
    setting = trained("lstm")
    assert setting.training_run is not None
    expected, own = np.zeros((4, 36)), np.zeros(36)
    for each in checkpoints(setting.training_run, 2):
        one = each.setting(setting)
        for name, parameter in one.network.named_parameters():
            parameter.requires_grad_(name.startswith("decoder."))
        expected += 5e-3 * each.stands_for * GradientDot()(one).scores
        own += 5e-3 * each.stands_for * GradientDot().own(one)
    found = TracInFast(2)(setting)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(TracInFast(2).own(setting), own, rtol=1e-7)
    decoder = sum(each.numel() for name, each in setting.parameters.items() if name.startswith("decoder."))
    assert found.covered == pytest.approx(decoder / setting.network.parameter_count) and found.covered < 0.1
    assert "decoder.weight" in found.notes["parameters"]


def test_projected_scores_approach_those_of_whole_gradients() -> None:
    setting = trained()
    expected, found = TracIn(2)(setting).scores, TracInProjected(2, size=512)(setting)
    assert found.errors is not None
    assert np.abs((found.scores - expected) / found.errors).max() < 5
    more = TracInProjected(2, size=4096)(setting)
    assert more.errors is not None
    assert more.errors.mean() / found.errors.mean() == pytest.approx(8**-0.5, abs=0.05)
    assert np.corrcoef(more.scores.ravel(), expected.ravel())[0, 1] > 0.98


@pytest.mark.parametrize("kind", ["gru", "hierarchical-gru"])
def test_summaries_are_right_in_the_mean_and_as_near_as_they_say(kind: str) -> None:
    network, batch = builders.kind(kind), builders.structured(builders.batch((5, 3)))
    reading = Reader(network).read(batch)
    gradients = reading.gradients(torch.tensor([[1.0, -1.0], [0.3, 0.5]]).double())
    exact = gradients.flat() @ gradients.flat().T
    ratios = []
    for seed in range(100):
        signs = Signs.drawn(dict(network.named_parameters()), 64, seed)
        short = signs(gradients).numpy()
        mean, variance = summarised(short, short)
        ratios.append((mean - exact.numpy()) / np.sqrt(variance))
    found = np.array(ratios)[:, *np.tril_indices(2)]
    assert np.abs(found.mean(0)).max() < 0.5 and (found.std(0) > 0.75).all() and (found.std(0) < 1.35).all()
    dense = [
        torch.einsum("bij,ik,jk->bk", gradients.dense(name).view(2, len(each), -1), each, signs.columns[name])
        for name, each in signs.rows.items()
    ]
    torch.testing.assert_close(signs(gradients), torch.stack(dense).sum(0))


def test_what_cannot_be_asked_is_told() -> None:
    bare = small.setting(builders.model())
    for method in (TracIn(), TracInFast(), TracInProjected(), TracInIdeal()):
        assert isinstance(method, Method)
        assert "not known" in (method.unfit(bare) or "")
        assert method.unfit(trained()) is None
        with pytest.raises(AssayError, match="not known"):
            method(bare)
    assert isinstance(TracIn(), Introspective) and isinstance(TracInFast(), Introspective)
    with pytest.raises(AssayError, match="checkpoint"):
        TracIn(0)
    with pytest.raises(AssayError, match="adam"):
        TracIn(metric="adamw")
