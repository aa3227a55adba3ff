"""A small corpus, a model that has learnt it, and cases of its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from torch import Tensor

from assay.audits.cases import Case, Resources
from assay.data.batches import collate, tokenise
from assay.data.examples import Corpus
from assay.data.planted import PLANTED
from assay.data.text import TextOptions
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, train
from assay.models.store import Trained
from assay.types import Batch, Edit, Explainer, Output

RECIPE = Recipe(
    Architecture(embedding=8, hidden=8, alignment_size=4),
    TextOptions(min_count=1),
    Training(epochs=5, batch_size=16, learning_rate=0.03),
)


@cache
def corpus() -> Corpus:
    whole = PLANTED["planted:keyword"](0)
    return replace(whole, train=whole.train[:200], dev=whole.dev[:40], test=whole.test[:40])


@cache
def model() -> Trained:
    return train(corpus(), RECIPE)


def resources(explainers: Mapping[str, Explainer], folder: Path | None = None) -> Resources:
    rows, _ = tokenise(corpus().test, model().tokeniser, 99)
    return Resources(model(), explainers, rows, corpus(), folder)


def case(prepared_by: Resources) -> Case:
    """All texts of the resources as one batch."""
    network, batch = prepared_by.model.network, collate(prepared_by.rows)
    scores: dict[str, Tensor] = {}
    found = Case(network, batch, scores, explainers=prepared_by.explainers)
    scores.update({name: each(network, batch, found.predicted) for name, each in prepared_by.explainers.items()})
    return found


class Foreign:
    """A model that is not one of ours."""

    def embed(self, batch: Batch) -> Tensor:
        return batch.ids[..., None].float()

    def __call__(self, x: Tensor, batch: Batch, edit: Edit | None = None) -> Output:
        return Output(x[:, :2, 0], ())
