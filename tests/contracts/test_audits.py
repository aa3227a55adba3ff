"""What every audit owes its caller, checked over all of them and all shapes of models."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from assay.audits import AUDITS, deciding
from assay.audits.cases import Case, PreparedAudit
from assay.audits.equal_predictions import Adversary, Searched
from assay.audits.permutation import Permutation
from assay.explainers import EXPLAINERS
from assay.explainers.baselines import text_numbers
from assay.explainers.needs import unfit
from assay.models.erasure import Pool
from tests import builders, pretrained
from tests.contracts.covering import covering, fitting

KINDS = (
    *("gru", "hierarchical-gru", "hierarchical-none", "paired-lstm", "paired-average", "lstm-sparse"),
    *("structured", "spans", "aspect"),
)
TRANSFORMERS = ("bert", "gpt2", "attentive")
FEW = ("attention", "attention_x_gradient", "gradient", "leave_one_out", "random")
QUICK = AUDITS | {
    "adversary": Adversary(steps=3),
    "permutation": Permutation(stack_shuffles=5),
    "searched": Searched(steps=5),
}
EVERY_AUDIT = pytest.mark.parametrize("name", AUDITS)


@cache
def network(kind):
    if kind not in TRANSFORMERS:
        return builders.kind(kind, classes=3)
    return pretrained.attentive() if kind == "attentive" else pretrained.pretrained(kind, initializer_range=0.1)


def texts(kind):
    return pretrained.batch() if kind in TRANSFORMERS else builders.texts((7, 1, 4, 12, 9))


def case(kind, batch, planted):
    """The batch under some explainers; some words are evidence."""
    batch = replace(batch, truth=batch.mask & (batch.ids % 3 == 0))
    model = network(kind)
    explainers = {title: EXPLAINERS[title] for title in FEW if unfit(EXPLAINERS[title], model) is None}
    scores = {}
    found = Case(model, batch, scores, explainers=explainers, planted=planted)
    scores.update({title: each(found.model, batch, found.predicted) for title, each in explainers.items()})
    return found


def cases(kind, batch):
    """One case of what people marked and one of planted evidence: every audit is for one of them or for both."""
    return [case(kind, batch, planted) for planted in (False, True)]


@pytest.fixture(autouse=True)
def _untrained(monkeypatch):
    """Networks that have learnt nothing hardly decide by any words; here all words count."""
    monkeypatch.setattr(deciding, "DECIDES", 0.0)


def ready(audit, one):
    """The audit with what it prepares itself with, where a batch is enough for that."""
    if not isinstance(audit, deciding.Deciding):
        return audit
    batch = one.batch
    pool = Pool(batch.ids[batch.mask], None if batch.subwords is None else batch.subwords[batch.mask])
    return replace(audit, pool=pool, chosen=text_numbers(batch))


@cache
def unscored(kind, planted):
    """A case without scores, to be asked about and not to be measured."""
    batch = texts(kind)
    nothing = dict.fromkeys(FEW, torch.zeros(batch.ids.shape))
    explainers = {title: EXPLAINERS[title] for title in FEW}
    return Case(network(kind), replace(batch, truth=batch.mask), nothing, explainers=explainers, planted=planted)


def fits(name, kind):
    return any(AUDITS[name].unfit(unscored(kind, planted)) is None for planted in (False, True))


FIT, UNFIT = fitting(AUDITS, (*KINDS, *TRANSFORMERS), fits)


@EVERY_AUDIT
def test_every_audit_fits_some_kind_of_model_unless_it_has_to_prepare_itself(name):
    assert any(name == fit for fit, _ in FIT) or isinstance(AUDITS[name], PreparedAudit)


@covering(UNFIT, each=1)
def test_an_audit_that_does_not_fit_says_why_not(name, kind):
    for one in cases(kind, texts(kind)):
        assert len(AUDITS[name].unfit(one)) > 10


@covering(FIT)
def test_an_audit_gives_each_text_its_numbers_or_says_why_not(name, kind):
    batch = texts(kind)
    found = [(one, AUDITS[name].unfit(one)) for one in cases(kind, batch)]
    assert all(reason is None or len(reason) > 10 for _, reason in found)
    fit = [one for one, reason in found if reason is None]
    assert fit
    for one in fit:
        answer = ready(QUICK[name], one)(one)
        assert answer.measures
        for values in answer.measures.values():
            assert values.shape == (len(batch),) and values.dtype == np.float64
            assert not np.isinf(values).any()
        assert any(np.isfinite(values).any() for values in answer.measures.values())
        for weights in answer.weights.values():
            assert weights.shape == batch.ids.shape
            assert (weights[~batch.mask.numpy()] == 0).all()


@EVERY_AUDIT
@pytest.mark.parametrize("kind", ["hierarchical-gru", "paired-lstm"])
def test_padding_and_the_other_texts_change_no_number(name, kind):
    """But for what is drawn at random for a batch."""
    for narrow, wide in zip(cases(kind, builders.texts()), cases(kind, builders.texts(width=16)), strict=True):
        if AUDITS[name].unfit(narrow) is None and name != "permutation":
            expected, found = (ready(AUDITS[name], one)(one).measures for one in (narrow, wide))
            assert expected.keys() == found.keys()
            for measure, values in expected.items():
                np.testing.assert_allclose(found[measure], values, atol=1e-7, err_msg=measure)


@EVERY_AUDIT
def test_a_barred_class_makes_no_number_infinite(name):
    allowed = torch.tensor([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]]).bool()
    for one in cases("paired-average", replace(builders.texts(), candidates=allowed)):
        assert allowed.gather(1, one.predicted[:, None]).all()
        if AUDITS[name].unfit(one) is None:
            assert not any(np.isinf(values).any() for values in ready(AUDITS[name], one)(one).measures.values())
