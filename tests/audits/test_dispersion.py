"""Dispersion: every number against one that is put together by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from assay.audits.cases import Case
from assay.audits.dispersion import Dispersion
from assay.explainers.occlusion import leave_one_out
from assay.types import attended
from tests import builders
from tests.audits import small_resources

CLOSE = {"abs": 1e-6}


def cases(kind):
    return Case(builders.kind(kind), builders.texts((7, 1, 4, 12)), {})


def alone(case, row):
    """One text without padding, and what the model makes of it."""
    length = int(case.batch.lengths[row])
    one = case.batch[row : row + 1]
    cut = {name: getattr(one, name)[:, :length] for name in ("ids", "mask", "sentences")}
    batch = replace(one, **cut)
    x = case.model.embed(batch).detach().requires_grad_()
    return batch, x


def entropy(values):
    values = np.asarray(values, dtype=np.float64)
    return stats.entropy(values, base=len(values)) if len(values) > 1 and values.sum() > 0 else np.nan


def answer_without(model, x, batch, states, weights, gone):
    """The output when the attention to one state is erased and the rest renormalised."""
    left = weights.clone()
    left[0, gone] = 0
    total = left.sum()
    return model.decode(states, left / total if total > 0 else left).softmax(-1)[0]


def by_hand(case, row):
    """The importances of the words and states of one text, one derivative or deletion at a time."""
    model, (batch, x) = case.model, alone(case, row)
    states = model.states(x, batch)
    weights = model.attend(states, batch)
    output = model.decode(states, weights).softmax(-1)[0]
    top = output.argmax()
    (to_words,) = torch.autograd.grad(output[top], x, retain_graph=True)
    (to_states,) = torch.autograd.grad(output[top], states, retain_graph=True)
    dependence = []
    for state in states[0]:
        (gradient,) = torch.autograd.grad(state.norm(), x, retain_graph=True)
        dependence.append(gradient[0].norm(dim=-1))
    dependence = torch.stack(dependence)
    erased = [
        (answer_without(model, x, batch, states, weights, item) - output).abs().sum() / 2
        for item in range(states.shape[1])
    ]
    return {
        "gradient": to_words[0].norm(dim=-1).numpy(),
        "leave_one_out": leave_one_out(model, batch, top[None])[0].numpy(),
        "attention": weights[0].detach().numpy(),
        "state_gradient": to_states[0].norm(dim=-1).numpy(),
        "state_leave_one_out": torch.stack(erased).detach().numpy(),
        "dependence": (dependence / dependence.sum(-1, keepdim=True)).numpy(),
        "items": model.items(batch)[0].numpy(),
        "shown": (weights.gather(1, model.items(batch)) * model.within(x, batch))[0].detach().numpy(),
    }


@pytest.mark.parametrize("kind", ["lstm", "cnn", "hierarchical-gru", "paired-lstm"])
def test_every_number_is_that_of_its_definition(kind):
    case = cases(kind)
    measures = Dispersion()(case).measures
    for row in range(4):
        found = by_hand(case, row)
        for name in ("gradient", "leave_one_out", "attention", "state_gradient", "state_leave_one_out"):
            expected = pytest.approx(entropy(found[name]), nan_ok=True, **CLOSE)
            assert measures[f"entropy:{name}"][row] == expected, name
        if row == 1:  # a single word has no rank
            continue
        for name in ("gradient", "leave_one_out"):
            expected = stats.kendalltau(found["shown"], found[name])
            assert measures[f"tau:attention~{name}"][row] == pytest.approx(expected.statistic, nan_ok=True, **CLOSE)
            assert measures[f"p:attention~{name}"][row] == pytest.approx(expected.pvalue, nan_ok=True, **CLOSE)
        for name in ("state_gradient", "state_leave_one_out"):
            expected = stats.kendalltau(found["attention"], found[name]).statistic
            assert measures[f"tau:attention~{name}"][row] == pytest.approx(expected, nan_ok=True, **CLOSE)


@pytest.mark.parametrize("kind", ["lstm", "hierarchical-gru", "paired-lstm"])
def test_what_states_depend_on_is_a_mean_over_states(kind):
    case = cases(kind)
    measures = Dispersion()(case).measures
    for row in (0, 2, 3):
        found = by_hand(case, row)
        dependence, items = found["dependence"], found["items"]
        assert measures["entropy:states"][row] == pytest.approx(np.mean([entropy(each) for each in dependence]))
        own = [each[items == item].sum() for item, each in enumerate(dependence)]
        first = [items[each.argmax()] == item for item, each in enumerate(dependence)]
        assert measures["own:states"][row] == pytest.approx(np.mean(own))
        assert measures["first:states"][row] == pytest.approx(np.mean(first))


def test_a_text_of_one_word_has_no_number():
    measures = Dispersion()(cases("lstm")).measures
    assert all(np.isnan(values[1]) for values in measures.values())
    assert all(np.isfinite(values[3]) for values in measures.values())


def test_without_an_encoder_each_state_is_its_word():
    measures = Dispersion()(cases("none")).measures
    for row in (0, 2, 3):
        assert measures["entropy:states"][row] == pytest.approx(0, abs=1e-9)
        assert measures["own:states"][row] == pytest.approx(1)
        assert measures["first:states"][row] == 1


def test_under_uniform_attention_entropy_is_1_and_nothing_agrees():
    case = Case(builders.model(projection="uniform"), builders.texts((7, 9)), {})
    measures = Dispersion()(case).measures
    assert measures["entropy:attention"] == pytest.approx([1, 1])
    assert np.isnan(measures["tau:attention~gradient"]).all()


def test_scores_that_are_there_are_used():
    case = cases("lstm")
    flat = case.batch.mask.double()
    scored = replace(case, scores={"gradient_norm": flat, "leave_one_out": flat, "state_gradient": flat})
    measures = Dispersion()(scored).measures
    for name in ("gradient", "leave_one_out", "state_gradient"):
        assert measures[f"entropy:{name}"][[0, 2, 3]] == pytest.approx([1, 1, 1])
    given = {"gradient_norm": torch.rand_like(flat)}
    assert (Dispersion()(replace(case, scores=given)).measures["entropy:gradient"][[0, 2, 3]] < 1).all()


def test_it_is_for_models_whose_states_can_be_followed_back():
    case = cases("lstm")
    assert Dispersion().unfit(case) is None
    assert "followed back" in Dispersion().unfit(replace(case, model=small_resources.Foreign()))
    assert attended(case.model, case.batch).shape == (4, 12)
