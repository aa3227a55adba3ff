"""What every explainer owes its caller, checked over all of them and all kinds of models."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import torch

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.explainers.anchors import Anchors
from assay.explainers.gradients import SmoothGrad
from assay.explainers.needs import is_class_free, is_sparse, unfit
from assay.explainers.phrase_trees import Hedge, Projected
from assay.types import Query
from tests import builders
from tests.contracts import kinds
from tests.contracts.covering import covering, fitting

QUICK = EXPLAINERS | {
    "anchors": Anchors(longest=2),
    "smoothgrad": SmoothGrad(samples=4),
    "hedge": Projected(Hedge(window=1)),
}
"""All explainers; those that read most read less here."""


@cache
def reason(name, kind):
    """Why the explainer cannot serve models of this kind, or None."""
    return unfit(QUICK[name], shown(kind))


@cache
def shown(kind):
    """A model of this kind that is only looked at."""
    return kinds.kind(kind)


def fits(name, kind):
    return reason(name, kind) is None


SERVED, UNFIT = fitting(EXPLAINERS, kinds.KINDS, fits)
EVERY = pytest.mark.parametrize("name", EXPLAINERS)
PRECISELY_SERVED = {name for name, kind in SERVED if kind in kinds.PRECISE}
PRECISE = [pair for pair in SERVED if pair[1] in kinds.PRECISE or pair[0] not in PRECISELY_SERVED]
CHOOSING = [name for name, kind in SERVED if kind == "paired-average"]
WITH_MARKERS = SERVED + [(name, f"{kind}-marked") for name, kind in SERVED if kind in kinds.MARKED]


def marked(kind, classes=2):
    """A model of this kind, which reads its texts between markers if the name says so."""
    return kinds.kind(kind.removesuffix("-marked"), classes, markers=kind.endswith("-marked"))


def explained(name, model, batch):
    return QUICK[name](model, batch, batch.labels)


def some_kind(name):
    """A kind of model that the explainer can serve, one of sentences if possible."""
    fit = [kind for other, kind in SERVED if other == name]
    return "hierarchical-gru" if "hierarchical-gru" in fit else fit[0]


def some_model(name, classes=2):
    return kinds.kind(some_kind(name), classes)


@EVERY
def test_every_explainer_serves_some_kind_of_model(name):
    assert any(other == name for other, _ in SERVED)


@covering(UNFIT, each=2)
def test_an_unfit_model_is_refused_with_the_reason(name, kind):
    with pytest.raises(AssayError) as refusal:
        explained(name, kinds.kind(kind), builders.texts())
    assert reason(name, kind) in str(refusal.value)


@covering(SERVED, turn=1)
def test_one_finite_score_a_token_and_nothing_on_padding(name, kind):
    batch = builders.texts()
    scores = explained(name, kinds.kind(kind), batch)
    assert scores.shape == batch.ids.shape
    assert scores.isfinite().all()
    assert (scores[~batch.mask] == 0).all()
    if is_sparse(QUICK[name]):
        assert (scores >= 0).all()
    elif kind not in kinds.SELECTING:  # there, what is not selected counts for nothing
        assert (scores[3] != 0).sum() > 6


@covering(WITH_MARKERS, turn=6)
def test_padding_changes_nothing(name, kind):
    model = marked(kind)
    narrow, wide = builders.texts(), builders.texts(width=20)
    torch.testing.assert_close(explained(name, model, wide)[:, :12], explained(name, model, narrow))


@covering(SERVED, turn=2)
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


@covering(SERVED, turn=3)
def test_the_model_is_left_as_it_was(name, kind):
    model, batch = kinds.kind(kind), builders.texts()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    explained(name, model, batch)
    assert not model.training
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())


@covering(PRECISE, turn=4)
def test_single_and_half_precision_work(name, kind):
    batch = builders.texts()
    exact = explained(name, kinds.kind(kind), batch)
    single = explained(name, kinds.kind(kind, dtype=torch.float32), batch)
    assert single.isfinite().all()
    if not is_sparse(QUICK[name]):
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


@covering(SERVED, turn=5)
def test_the_class_matters_unless_the_explainer_is_free_of_it(name, kind):
    model, batch = kinds.kind(kind, classes=3), builders.texts()
    scores = torch.stack([QUICK[name](model, batch, torch.full((4,), label)) for label in range(3)])
    assert scores.isfinite().all()
    if is_class_free(QUICK[name]):
        assert torch.equal(scores[0], scores[1]) and torch.equal(scores[0], scores[2])
    elif not is_sparse(QUICK[name]):  # few words may decide for several classes
        apart = (scores[:, None].abs() - scores[None].abs()).abs().amax((-1, -2))  # the sign alone is not enough
        assert (apart[~torch.eye(3, dtype=torch.bool)] > 1e-3 * scores.abs().max()).all()


@covering(WITH_MARKERS, turn=7)
def test_a_single_word_gets_a_score(name, kind):
    model, batch = marked(kind, classes=3), builders.texts((1,))
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
    kind, batch, target, seen = some_kind(name), told_apart(), torch.arange(4), []
    model = kinds.kind(kind, classes=4)
    reader = model.players.reader("selector") if kind in kinds.SELECTING else model
    states, embed = reader.states, reader.embed

    def read_states(x, read, *below):
        seen.append(read)
        return states(x, read, *below)

    def read_words(read):
        seen.append(read)
        return embed(read)

    monkeypatch.setattr(reader, "states", read_states)
    monkeypatch.setattr(reader, "embed", read_words)
    scores = QUICK[name](model, batch, target)
    assert all(kept_together(batch, read) for read in seen)
    if not seen:  # then the model had no part in it
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.neg_()
        assert torch.equal(QUICK[name](model, batch, target), scores)


@pytest.mark.parametrize("name", CHOOSING)
def test_a_class_that_is_no_candidate_is_as_if_there_were_none(name):
    model, fewer = kinds.kind("paired-average", classes=4), kinds.kind("paired-average", classes=3)
    left = {key: tensor[:3] if key.startswith("decoder") else tensor for key, tensor in model.state_dict().items()}
    fewer.load_state_dict(left)
    batch, target = builders.texts(), torch.tensor([0, 1, 2, 0])
    barred = replace(batch, candidates=torch.tensor([[True, True, True, False]]).expand(4, 4))
    torch.testing.assert_close(QUICK[name](model, barred, target), QUICK[name](fewer, batch, target))
