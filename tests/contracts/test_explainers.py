"""What every explainer owes its caller, checked over all of them and all kinds of models."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.gradients import SmoothGrad
from assay.explainers.hierarchies.hedge import Hedge
from assay.explainers.hierarchies.projected import Projected
from assay.explainers.needs import unfit
from assay.explainers.surrogates.anchors import Anchors
from assay.types import Query
from tests import builders
from tests.contracts import kinds

SPARSE = {"input_reduction", "counterfactual", "anchors"}
"""They search for a few words: most scores are 0, and another precision may lead to another choice."""

SHARING = {"leave_one_out", "occlusion", *(f"occlusion_{blank}" for blank in ("zero", "pad", "mask", "mean"))}
"""One pass carries all their deletions; tests/models/test_deletions.py holds it against reading each text anew."""

PIECEWISE = {"lrp", "attnlrp", "deeplift", "random", *SHARING}
"""They do not have the model make states: they read its parts by themselves, or nothing."""

CLASS_FREE = {
    "attention",
    "attention_x_value",
    "rollout",
    "flow",
    "value_zeroing",
    "leave_one_out",
    "random",
    "rationale",
}
"""Their scores are the same whatever the class, and their docstrings say so."""


OWN = {"rationale", "own_relevance"}
"""Only models that explain themselves have them."""

QUICK = EXPLAINERS | {
    "anchors": Anchors(longest=2),
    "smoothgrad": SmoothGrad(samples=4),
    "hedge": Projected(Hedge(window=1)),
}
"""All explainers; those that read most read less here."""


def served(name, kind):
    """Whether the explainer can serve models of this kind."""
    return unfit(QUICK[name], kinds.kind(kind)) is None


SOME = {*OWN, "attention", "gradient", "leave_one_out", "occlusion_zero", "integrated_gradients", "hedge", "random"}
"""Those that also meet models that select: the others read such a model as one of these does."""

PAIRS = [(name, kind) for name in EXPLAINERS for kind in kinds.KINDS if kind in builders.KINDS or name in SOME]
SERVED = [pair for pair in PAIRS if served(*pair)]
UNFIT = [pair for pair in PAIRS if pair not in SERVED]
EVERY = pytest.mark.parametrize("name", EXPLAINERS)
PRECISE = [pair for pair in SERVED if pair[1] in kinds.PRECISE or pair[0] in OWN]
PRECISELY = pytest.mark.parametrize(("name", "kind"), PRECISE, ids=map("-".join, PRECISE))
EVERY_PAIR = pytest.mark.parametrize(("name", "kind"), SERVED, ids=map("-".join, SERVED))
MARKED = [(*pair, marked) for pair in SERVED for marked in (False, True)[: 1 + (pair[1] in kinds.MARKED)]]
WITH_MARKERS = pytest.mark.parametrize(
    ("name", "kind", "markers"), MARKED, ids=[f"{name}-{kind}-{markers}" for name, kind, markers in MARKED]
)


def explained(name, model, batch):
    return QUICK[name](model, batch, batch.labels)


def some_model(name, classes=2):
    """A model that the explainer can serve, one of sentences if possible."""
    fitting = [kind for other, kind in SERVED if other == name]
    return kinds.kind("hierarchical-gru" if "hierarchical-gru" in fitting else fitting[0], classes)


@EVERY
def test_every_explainer_serves_some_kind_of_model(name):
    assert any(other == name for other, _ in SERVED)


@pytest.mark.parametrize(("name", "kind"), UNFIT, ids=map("-".join, UNFIT))
def test_an_unfit_model_is_refused_with_the_reason(name, kind):
    model, batch = kinds.kind(kind), builders.texts()
    reason = unfit(QUICK[name], model)
    with pytest.raises(AssayError) as refusal:
        explained(name, model, batch)
    assert str(reason) in str(refusal.value)


@EVERY_PAIR
def test_one_finite_score_a_token_and_nothing_on_padding(name, kind):
    batch = builders.texts()
    scores = explained(name, kinds.kind(kind), batch)
    assert scores.shape == batch.ids.shape
    assert scores.isfinite().all()
    assert (scores[~batch.mask] == 0).all()
    if name in SPARSE:
        assert (scores >= 0).all()
    elif kind not in kinds.SELECTING:  # there, what is not selected counts for nothing
        assert (scores[3] != 0).sum() > 6


@WITH_MARKERS
def test_padding_changes_nothing(name, kind, markers):
    model = kinds.kind(kind, markers=markers)
    narrow, wide = builders.texts(), builders.texts(width=20)
    torch.testing.assert_close(explained(name, model, wide)[:, :12], explained(name, model, narrow))


@EVERY_PAIR
def test_order_and_size_of_the_batch_change_nothing(name, kind):
    model, batch = kinds.kind(kind), builders.texts()
    together = explained(name, model, batch)
    order = torch.tensor([2, 0, 3, 1])
    torch.testing.assert_close(explained(name, model, batch[order]), together[order])
    alone = torch.cat([explained(name, model, batch[row : row + 1]) for row in range(len(batch))])
    torch.testing.assert_close(alone, together)


@EVERY
def test_the_same_call_gives_the_same_scores(name):
    model, batch = some_model(name), builders.texts()
    assert torch.equal(explained(name, model, batch), explained(name, model, batch))


@EVERY_PAIR
def test_the_model_is_left_as_it_was(name, kind):
    model, batch = kinds.kind(kind), builders.texts()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    explained(name, model, batch)
    assert not model.training
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())


@PRECISELY
def test_single_and_half_precision_work(name, kind):
    batch = builders.texts()
    exact = explained(name, kinds.kind(kind), batch)
    single = explained(name, kinds.kind(kind, dtype=torch.float32), batch)
    assert single.isfinite().all()
    if name not in SPARSE:
        torch.testing.assert_close(single, exact, atol=1e-4, rtol=1e-3, check_dtype=False)
    half = explained(name, kinds.kind(kind, dtype=torch.bfloat16), batch)
    assert single.dtype == half.dtype == torch.float32
    assert half.isfinite().all()


@EVERY
def test_labels_and_truth_are_not_looked_at(name):
    model, batch = some_model(name), builders.texts()
    blind = replace(batch, labels=1 - batch.labels, truth=batch.mask)
    target = batch.labels
    assert torch.equal(QUICK[name](model, blind, target), QUICK[name](model, batch, target))


@EVERY_PAIR
def test_the_class_matters_unless_the_explainer_is_free_of_it(name, kind):
    model, batch = kinds.kind(kind, classes=3), builders.texts()
    scores = torch.stack([QUICK[name](model, batch, torch.full((4,), label)) for label in range(3)])
    assert scores.isfinite().all()
    if name in CLASS_FREE:
        assert torch.equal(scores[0], scores[1]) and torch.equal(scores[0], scores[2])
    elif name not in SPARSE:  # few words may decide for several classes
        apart = (scores[:, None].abs() - scores[None].abs()).abs().amax((-1, -2))  # the sign alone is not enough
        assert (apart[~torch.eye(3, dtype=torch.bool)] > 1e-3 * scores.abs().max()).all()


@WITH_MARKERS
def test_a_single_word_gets_a_score(name, kind, markers):
    model, batch = kinds.kind(kind, classes=3, markers=markers), builders.texts((1,))
    scores = QUICK[name](model, batch, torch.tensor([2]))
    assert scores.shape == (1, 1)
    assert scores.isfinite().all()


def told_apart():
    """Texts of words that differ, with questions and candidates that tell which text is which."""
    batch = builders.distinct(builders.texts())
    allowed = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 1, 1], [0, 1, 1, 1]]).bool()
    return replace(batch, query=Query(torch.arange(4)[:, None] + 4, torch.ones(4, 1).bool()), candidates=allowed)


def kept_together(batch, read):
    """Whether each text that was read has the question, candidates and sentences of the one it was made from."""
    owner = read.query.ids[:, 0] - 4
    whole = read.lengths == batch.lengths[owner]  # other words may stand in some places
    place = (read.ids[:, :, None] == batch.ids[owner, None]).int().argmax(-1)
    place = torch.where(whole[:, None], torch.arange(read.ids.shape[1]), place)
    same = read.sentences == batch.sentences[owner].gather(1, place)
    return (same | ~read.mask).all() and (
        read.candidates is None or torch.equal(read.candidates, batch.candidates[owner])
    )


@EVERY
def test_a_text_is_never_read_without_its_question_candidates_and_sentences(name, monkeypatch):
    model, batch = some_model(name, classes=4), told_apart()
    reader = model.players.reader("selector") if name in OWN else model
    seen, states = [], reader.states

    def spied(x, read, *below):
        seen.append(read)
        return states(x, read, *below)

    monkeypatch.setattr(reader, "states", spied)
    QUICK[name](model, batch, torch.arange(4))
    assert seen or name in PIECEWISE
    assert all(kept_together(batch, read) for read in seen)


CHOOSING = [name for name, kind in SERVED if kind == "paired-average"]


@pytest.mark.parametrize("name", CHOOSING)
def test_a_class_that_is_no_candidate_is_as_if_there_were_none(name):
    model, fewer = kinds.kind("paired-average", classes=4), kinds.kind("paired-average", classes=3)
    left = {key: tensor[:3] if key.startswith("decoder") else tensor for key, tensor in model.state_dict().items()}
    fewer.load_state_dict(left)
    batch, target = builders.texts(), torch.tensor([0, 1, 2, 0])
    barred = replace(batch, candidates=torch.tensor([[True, True, True, False]]).expand(4, 4))
    torch.testing.assert_close(QUICK[name](model, barred, target), QUICK[name](fewer, batch, target))
