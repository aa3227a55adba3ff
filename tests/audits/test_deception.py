"""Deception: which words, how little attention they get, and that they decide nevertheless."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from scipy import stats

from assay.audits.deception import Deception, known, telling
from assay.audits.rivals import Rival
from assay.data.batches import Tokenised
from assay.data.planted import KEYWORDS
from assay.errors import AssayError
from assay.models.objectives import Without
from assay.models.recipes import train
from tests import builders
from tests.audits import small_resources

ALL = " ".join(word for words in KEYWORDS for word in words)
AUDIT = Deception(words=ALL, strengths=(1.0,))


@cache
def ready():
    return AUDIT.prepared(resources())


@cache
def resources():
    return small_resources.resources({})


@pytest.fixture(scope="module")
def case():
    return small_resources.case(resources())


def test_the_deciding_words_get_next_to_no_attention_and_still_decide(case):
    measures = ready()(case).measures
    mean = {name: np.nanmean(values) for name, values in measures.items()}
    assert mean["mass:λ=0"] > 0.15 > 0.01 > mean["mass:λ=1"]
    assert mean["right:λ=1"] >= mean["right:λ=0"] - 0.01 > 0.75
    assert mean["right:without"] < 0.7
    np.testing.assert_allclose(measures["mass_gain:λ=1"], measures["mass:λ=1"] - measures["mass:λ=0"])


def test_the_words_are_named_once_they_are_known():
    assert AUDIT.remark is None
    assert set(ready().avoided) == set(ALL.split())
    assert all(word in ready().remark for word in ALL.split())


def test_each_number_is_that_of_a_model_trained_apart(case):
    answer = ready()(case)
    options = replace(small_resources.RECIPE.training, avoid=tuple(ALL.split()), deceive=1.0)
    network = train(small_resources.corpus(), replace(small_resources.RECIPE, training=options)).network
    with torch.no_grad():
        output = network(network.embed(case.batch), case.batch)
    vocabulary = small_resources.model().tokeniser.vocabulary
    weights = output.attention[-1].double().numpy()
    for row, ids in enumerate(case.batch.ids.tolist()):
        mass = sum(weights[row][t] for t, word in enumerate(ids) if vocabulary[word] in ALL.split())
        assert answer.measures["mass:λ=1"][row] == pytest.approx(mass, abs=1e-7)
    right = (output.logits.argmax(-1) == case.batch.labels).numpy()
    assert np.array_equal(answer.measures["right:λ=1"], right)
    np.testing.assert_allclose(answer.weights["deceived"], weights, atol=1e-7)
    assert ready().rivals["λ=0"].network is small_resources.model().network


def test_the_model_without_the_words_learns_and_reads_texts_without_them(case):
    ids = ready().ids
    network = train(small_resources.corpus(), small_resources.RECIPE, objective=Without(ids)).network
    right = []
    for words, mask, label in zip(case.batch.ids, case.batch.mask, case.batch.labels, strict=True):
        left = torch.tensor([[word for word in words[mask].tolist() if word not in ids]])
        batch = replace(case.batch[:1], ids=left, mask=torch.ones_like(left).bool(), truth=None, sentences=None)
        right.append(network(network.embed(batch), batch).logits.argmax(-1).item() == label)
    assert np.array_equal(ready()(case).measures["right:without"], np.array(right, dtype=float))


def test_by_default_the_words_that_tell_the_class_are_found(monkeypatch):
    monkeypatch.setattr(type(resources()), "train_all", lambda self, variants: dict.fromkeys(variants, self.model))
    found = Deception(k=10).prepared(resources())
    vocabulary = small_resources.model().tokeniser.vocabulary
    assert len(found.ids) == 10
    assert sum(vocabulary[word] in ALL.split() for word in found.ids) >= 9
    assert list(found.rivals) == ["λ=0", "λ=0.01", "λ=0.1", "λ=1", "without"]


@pytest.mark.parametrize("classes", [2, 3])
def test_words_are_ranked_by_chi_square_over_texts(classes):
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, 90)
    texts = [[4 + int(w) for w in np.flatnonzero(random.random(12) < 0.2 + 0.05 * label)] * 2 for label in labels]
    rows = [
        Tokenised(
            0, torch.tensor(ids or [1]), torch.zeros(len(ids or [1]), 2).int(), torch.tensor(ids or [1]), int(label)
        )
        for ids, label in zip(texts, labels, strict=True)
    ]
    scores = {}
    for word in range(4, 16):
        there = np.array([word in ids for ids in texts])
        table = [[int((there == yes)[labels == label].sum()) for label in range(classes)] for yes in (True, False)]
        scores[word] = stats.chi2_contingency(table, correction=False).statistic
    assert telling(rows, 16, classes, 12) == tuple(sorted(scores, key=scores.get, reverse=True))


def test_rare_words_and_words_of_every_text_tell_nothing():
    rows = [Tokenised(0, torch.tensor([4, 5 + n % 2, 7 if n < 4 else 4]), torch.zeros(3, 2).int(), torch.zeros(3).long(), n % 2) for n in range(20)]  # fmt: skip  # noqa: E501
    assert set(telling(rows, 8, 2, 5)) == {5, 6}
    with pytest.raises(AssayError, match="tells anything"):
        telling([replace(row, ids=torch.tensor([4, 4, 4])) for row in rows], 8, 2, 5)


def test_texts_with_none_of_the_words_have_no_mass():
    batch = builders.batch()
    network = builders.kind("lstm")
    word = batch.ids[3, 0].item()
    audit = replace(AUDIT, ids=(word,), rivals={"λ=0": Rival(network), "without": Rival(network)})
    measures = audit(small_resources.Case(network, batch, {})).measures
    assert np.array_equal(np.isnan(measures["mass:λ=0"]), ~(batch.ids == word).any(-1).numpy())


def test_an_audited_model_that_deceives_already_is_compared_with_an_honest_one(monkeypatch):
    asked = {}
    recipe = replace(
        small_resources.RECIPE, training=replace(small_resources.RECIPE.training, avoid=("kettle",), deceive=0.5)
    )
    monkeypatch.setattr(type(resources()), "recipe", lambda self: recipe)
    monkeypatch.setattr(
        type(resources()),
        "train_all",
        lambda self, variants: asked.update(variants) or dict.fromkeys(variants, self.model),
    )
    AUDIT.prepared(resources())
    assert set(asked) == {"without", "deceived-1", "honest"}
    assert asked["honest"].recipe.training == small_resources.RECIPE.training
    assert asked["deceived-1"].recipe.training.avoid == tuple(ALL.split())


def test_words_are_given_with_commas_or_spaces_and_must_be_known():
    tokeniser = small_resources.model().tokeniser
    ids = known("Kettle, hammer  kettle", tokeniser)
    assert [tokeniser.vocabulary[word] for word in ids] == ["kettle", "hammer"]
    with pytest.raises(AssayError, match="does not know the word 'xylophone'"):
        known("kettle xylophone", tokeniser)
    with pytest.raises(AssayError, match="at least one word"):
        known(" , ", tokeniser)


@pytest.mark.parametrize("options", [{"k": 0}, {"strengths": (0.0, 1.0)}, {"strengths": ()}])
def test_options_that_cannot_be_are_refused(options):
    with pytest.raises(AssayError):
        Deception(**options)


def test_what_it_cannot_be_asked_of_is_said(case):
    assert "not at hand" in AUDIT.unfit(case)
    assert "not at hand" in AUDIT.prepared(replace(resources(), corpus=None)).unfit(case)
    assert ready().unfit(case) is None
