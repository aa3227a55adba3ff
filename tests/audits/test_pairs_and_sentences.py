"""Audits that train anew, on pairs of texts and on texts of sentences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.audits.cases import Resources
from assay.audits.roar import Roar, _texts
from assay.audits.sanity import Sanity
from assay.audits.stability import Stability
from assay.data.batches import collate, tokenise
from assay.data.examples import Corpus, Example
from assay.explainers.baselines import Random
from assay.explainers.gradients import Gradient
from assay.models.recipes import Recipe, train
from assay.types import Batch, Query
from tests.audits import small_resources

QUESTIONS = {"is it red": 0, "is it blue": 1, "is it green": 1}
BRIEF = Roar(shares=(0.5,), train_limit=30)


def corpus(pairs: bool) -> Corpus:
    """Texts of two sentences; each pair has the same text as two others, and the question decides."""
    texts = [
        f"The {thing} is here. It is {colour}." for thing in ("car", "cup", "hat", "bag") for colour in ("red", "old")
    ]
    examples = tuple(
        Example(text, label if pairs else int("red" in text), query=question if pairs else None)
        for text in texts
        for question, label in QUESTIONS.items()
    )
    return Corpus("small", ("no", "yes"), examples, examples, examples[:9])


@pytest.fixture(scope="module", params=["paired", "hierarchical"])
def resources(request) -> Resources:
    made = corpus(request.param == "paired")
    recipe = Recipe(
        replace(small_resources.RECIPE.architecture, shape=request.param, encoder="gru"),
        small_resources.RECIPE.text,
        replace(small_resources.RECIPE.training, epochs=2),
    )
    model = train(made, recipe)
    rows, _ = tokenise(made.test, model.tokeniser, 99)
    return Resources(model, {"gradient": Gradient(), "random": Random(0)}, rows, made)


@pytest.mark.parametrize("audit", [BRIEF, Sanity(), Stability(draws=1, seeds=1)], ids=["roar", "sanity", "stability"])
def test_models_are_trained_anew_in_the_same_shape(resources, audit):
    prepared, case = audit.prepared(resources), small_resources.case(resources)
    assert prepared.unfit(case) is None
    measures = prepared(case).measures
    assert all(values.shape == (9,) and not np.isinf(values).any() for values in measures.values())
    assert np.isfinite(np.stack(list(measures.values()))).any()


def test_pairs_with_one_text_keep_their_own_answers(resources):
    """What is known of each text is its place among all, so that an answer that is the place must come back."""
    prepared, case = BRIEF.prepared(resources), small_resources.case(resources)
    if case.batch.query is None:
        assert len(prepared.places) == 3  # the same text thrice
        return
    assert [prepared.places[text] for text in _texts(case.batch)] == list(range(9))
    order = torch.tensor([4, 0, 8])
    assert [prepared.places[text] for text in _texts(case.batch[order])] == order.tolist()


def test_sentences_and_candidates_tell_texts_apart_and_padding_does_not():
    ids, mask = torch.tensor([[5, 6, 0], [5, 6, 0], [5, 6, 0]]), torch.tensor([[True, True, False]]).expand(3, 3)
    query = Query(torch.tensor([[7, 0]]).expand(3, 2), torch.tensor([[True, False]]).expand(3, 2))
    sentences = torch.tensor([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    candidates = torch.tensor([[True, True], [True, True], [True, False]])
    batch = Batch(ids, mask, torch.zeros(3).long(), query, None, sentences, candidates)
    assert len(set(_texts(batch))) == 3
    alone = Batch(ids[:1, :2], mask[:1, :2], torch.zeros(1).long(), Query(query.ids[:1, :1], query.mask[:1, :1]), None)
    assert _texts(replace(alone, sentences=sentences[:1, :2])) == _texts(batch)[:1]


def test_rows_and_batches_name_texts_alike(resources):
    assert [text for row in resources.rows for text in _texts(collate([row], 2))] == _texts(collate(resources.rows, 2))
