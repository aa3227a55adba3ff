"""The derivative through training, against trainings with slightly other weights of examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from assay.data.batches import tokenise
from assay.data.examples import Example
from assay.errors import AssayError
from assay.influence.replay import Moments, Rule, clipping_backward, shrinkage
from assay.influence.retraining import measured
from assay.influence.setting import Setting
from assay.influence.training_run import TrainingRun
from assay.influence.unrolled import Unrolled
from assay.models import budget
from assay.models.hf_finetuning import Answers
from tests import pretrained
from tests.influence.training_runs import HARD, setting, training_run

STEP = 1e-6


def differences(made: TrainingRun, asked: Setting, row: int, step: float = STEP) -> np.ndarray:
    """−d target / d weight of one row, by central differences."""
    found = []
    for change in (step, -step):
        shares = np.ones(len(made.rows))
        shares[row] += change
        found.append(measured(made.learn(shares), asked))
    return (found[1] - found[0]) / (2 * step)


def check(made: TrainingRun, asked: Setting, rows: tuple[int, ...] = (0, 7)) -> None:
    scores = Unrolled()(asked).scores[:, rows]
    expected = np.stack([differences(made, asked, row) for row in rows], axis=1)
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(scores, expected, atol=1e-6 * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("encoder", ["average", "lstm", "transformer"])
def test_every_step_is_gone_back_through(encoder: str) -> None:
    made, asked = training_run(encoder, dropout_decoder=0.2, dropout_words=0.1)
    assert len(set(made.weights())) == 2  # classes have other weights
    check(made, setting(made, asked[:2]))


def test_a_fine_tuned_transformer_is_unrolled_as_far_as_the_rounding_of_its_losses_lets_one_see() -> None:
    texts = [Example(text, index % 2) for index, text in enumerate(("a good film", "bad", "not very dull", "fun"))]
    network = pretrained.pretrained("bert")
    rows, _ = tokenise(texts, pretrained.tokeniser(), 50)
    made = TrainingRun(network, rows, replace(HARD, epochs=3, batch_size=2, learning_rate=1e-3), 3, Answers())
    asked = setting(made, rows[:2])
    expected = differences(made, asked, 1, 3e-4)  # losses are in single precision
    np.testing.assert_allclose(Unrolled()(asked).scores[:, 1], expected, atol=3e-3 * np.abs(expected).max(), rtol=0)


def test_gradients_that_are_not_clipped_are_gone_back_through() -> None:
    made, asked = training_run("average", training=replace(HARD, clip=None, balanced=False))
    check(made, setting(made, asked[:2], "loss"))


def test_a_step_that_reads_its_rows_in_portions_is_gone_back_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(budget.ROOM, "training", (60, 60))
    made, asked = training_run("average", dropout_decoder=0.2)
    check(made, setting(made, asked[:2]))


def test_what_learns_along_and_regularisers_are_gone_back_through() -> None:
    training = replace(HARD, epochs=1, mlm=0.5, tying=0.1, conicity=0.1, diversity=0.1)
    made, asked = training_run("average", training=training, hidden=3)
    check(made, setting(made, asked[:1]), (0, 7))


def test_one_step_of_a_linear_model_has_a_closed_form() -> None:
    made, asked = training_run(
        "none", rows=8, training=replace(HARD, epochs=1, batch_size=8, decay=0.0, clip=None, balanced=False)
    )
    for name, each in made.network.named_parameters():
        each.requires_grad_(name == "decoder.weight")
    asked_of = setting(made, asked[:2], "logit")

    def pooled(rows: list) -> torch.Tensor:
        found = []
        for row in rows:
            ((_, batch),) = asked_of.batches([row])
            states = made.network.states(made.network.embed(batch), batch)
            found.append(made.network.pooled(states, made.network.attend(states, batch))[0].detach())
        return torch.stack(found)

    texts, queries = pooled(list(made.rows)), pooled(asked[:2])
    labels = torch.tensor([row.label for row in made.rows])
    gradients = (texts @ made.network.decoder.weight.T + made.network.decoder.bias).softmax(-1)
    gradients = (gradients - nn.functional.one_hot(labels, 2)).detach()
    own = gradients[:, :, None] * texts[:, None] / len(texts)  # the gradient of each example
    total = own.sum(0)
    # the first step of Adam is rate · g / (|g| + ε)
    steep = HARD.learning_rate * 1e-8 / (total.abs() + 1e-8) ** 2
    by_class = torch.einsum("cp,qp,ncp->qnc", steep, queries, own)
    classes = torch.from_numpy(asked_of.classes)
    expected = by_class[torch.arange(2), :, classes].numpy()
    np.testing.assert_allclose(Unrolled()(asked_of).scores, expected, rtol=1e-6)


def test_queries_at_once_and_states_that_are_kept_change_nothing() -> None:
    made, asked = training_run("average", dropout_decoder=0.2)
    asked_of = setting(made, asked)
    found = Unrolled()(asked_of)
    assert found.covered == 1 and found.notes["steps"] == made.steps
    for other in (Unrolled(queries_at_once=3, keep=1), Unrolled(keep=100)):
        np.testing.assert_allclose(other(asked_of).scores, found.scores, rtol=1e-9, atol=1e-14)


def test_a_step_is_that_of_pytorch_and_its_way_back_that_of_autograd() -> None:
    rule = Rule(0.01, (0.9, 0.999), 1e-3, 0.1)
    value = torch.randn(5, dtype=torch.float64)
    parameter = nn.Parameter(value.clone())
    optimiser = torch.optim.Adam([parameter], lr=0.01, eps=1e-3, weight_decay=0.1, amsgrad=True)
    now = Moments(value, *(torch.zeros_like(value) for _ in range(3)))
    for size in (1.0, 3.0, 0.1):
        gradient = (size * torch.randn(5, dtype=torch.float64)).requires_grad_()
        parameter.grad = gradient.detach().clone()
        optimiser.step()
        before = [each.detach().requires_grad_() for each in (now.value, now.mean, now.square, now.highest)]
        start = Moments(*before, steps=now.steps)
        now = rule.step(start, gradient)
        torch.testing.assert_close(now.value.detach(), parameter.detach())
        adjoints = [torch.randn(2, 5, dtype=torch.float64) for _ in before]
        ends = [now.value, now.mean, now.square, now.highest]
        expected = torch.autograd.grad(ends, [*before, gradient], adjoints, is_grads_batched=True, allow_unused=True)
        with torch.no_grad():
            found, by_gradient = rule.backward(start, now, gradient, Moments(*adjoints))
        # what goes through the gradient to the parameter is for those who know the gradient
        parts = (found.value, found.mean, found.square, found.highest, by_gradient)
        for one, other in zip(parts, expected, strict=True):
            torch.testing.assert_close(one, torch.zeros_like(one) if other is None else other)


@pytest.mark.parametrize("limit", [0.5, 100.0])
def test_the_way_back_through_clipping_is_that_of_autograd(limit: float) -> None:
    gradients = {name: torch.randn(3, 2, dtype=torch.float64, requires_grad=True) for name in "ab"}
    copies = {name: nn.Parameter(torch.zeros_like(each)) for name, each in gradients.items()}
    for name, each in copies.items():
        each.grad = gradients[name].detach().clone()
    nn.utils.clip_grad_norm_(copies.values(), limit)
    share = shrinkage({name: each[None] for name, each in gradients.items()}, limit)
    clipped = {name: each * share for name, each in gradients.items()}
    for name, each in copies.items():
        torch.testing.assert_close(clipped[name].detach(), each.grad)
    adjoints = {name: torch.randn(4, 3, 2, dtype=torch.float64) for name in gradients}
    expected = torch.autograd.grad(
        list(clipped.values()), list(gradients.values()), list(adjoints.values()), is_grads_batched=True
    )
    with torch.no_grad():
        found = clipping_backward(gradients, adjoints, limit)
    for one, other in zip(found.values(), expected, strict=True):
        torch.testing.assert_close(one, other)


def test_another_network_than_training_made_is_refused() -> None:
    made, asked = training_run("average")
    known = setting(made, asked)
    with torch.no_grad():
        known.network.decoder.weight.add_(1.0)
    with pytest.raises(AssayError, match="did not end in the weights"):
        Unrolled()(known)
    assert Unrolled().unfit(replace(known, training_run=None)) == "how the model was trained is not known"
    with pytest.raises(AssayError, match="not known"):
        Unrolled()(replace(known, training_run=None))
    assert Unrolled().unfit(replace(known, train=known.train[:3], weights=np.ones(3))) is not None
    with pytest.raises(AssayError, match="whole numbers"):
        Unrolled(queries_at_once=0)
