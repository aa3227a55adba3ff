"""Hierarchies of phrases, and the language model of training texts that some of them need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from assay import progress
from assay.data import given
from assay.data.batches import Tokenised, collate, tokenise
from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.explainers.phrase_sampling import CARD, Sampler, kept
from assay.explainers.phrase_trees import tree_builders
from assay.explainers.phrases import TreeBuilder
from assay.models.recipes import fingerprint
from assay.models.store import Opened
from assay.records import Record
from assay.report.examples import choose
from assay.run.texts import check_learnt
from assay.types import TokenModel

FOLDER = "language"
WORDS = 300_000  # words of training texts: more take long and teach a small language model little
MOST, LONGEST = 6, 40
"""Texts that are divided into phrases, and the words of the longest: more cannot be drawn, and cost much."""


@dataclass(frozen=True)
class Home:
    """A model's folder, and what it learnt from; that is asked for only if there is no language model in the folder.

    With `named` texts, they are compared with what the model learnt from even then.
    """

    folder: Path | None = None
    corpus: Callable[[], Corpus] | None = None
    named: bool = False

    @classmethod
    def of(cls, model: Any, corpus: Any = None) -> Home:
        """That of a model that is named by its folder, with the texts that it learnt from in any form."""
        folder = Path(model) if isinstance(model, str | Path) and Path(model).is_dir() else None
        return cls(folder, None if corpus is None else lambda: given.corpus(corpus), corpus is not None)


def fitting_trees(
    model: Opened, trees: str | None, scorer: str | None, home: Home | None = None
) -> dict[str, TreeBuilder]:
    """The builders that are named, all of which can serve the model; `home` is where to learn what they need."""
    builders = with_language(tree_builders(trees, scorer), model, home or Home())
    for name, builder in builders.items():
        if (reason := builder.unfit(model.network)) is not None:
            raise AssayError(f"The tree {name!r} cannot be built for this model: {reason}.")
    return builders


def divided(
    model: Opened, rows: Sequence[Tokenised], record: Record, builders: dict[str, TreeBuilder]
) -> list[dict[str, Any]]:
    """For some of the texts that the page shows, the trees of the decision."""
    order = [place for choice in choose(record) for place in choice.rows]
    places = [place for place in order if len(rows[place].ids) <= LONGEST][:MOST]
    found = []
    with progress.bar() as shown:
        for place in shown.track(places, description="phrases"):
            row, told = rows[place], record.examples.slice(place, 1).to_pylist()[0]
            batch = collate([row], len(model.classes)).to(model.device)
            with torch.no_grad():
                target = model.network(model.network.embed(batch), batch).logits.argmax(-1)
            trees = [{"name": name} | build(model.network, batch, target)[0].json() for name, build in builders.items()]
            words = [told["text"][start:end] for start, end in zip(told["starts"], told["ends"], strict=True)]
            found.append(
                {
                    "example": told["example"],
                    "words": words,
                    "predicted": model.classes[int(target)],
                    "label": model.classes[row.label],
                    "trees": trees,
                }
            )
    return found


def with_language(builders: Mapping[str, TreeBuilder], model: Opened, home: Home) -> dict[str, TreeBuilder]:
    """The builders, those whose scorers need a language model with one."""
    if not isinstance(model.network, TokenModel) or not any(map(_lacking, builders.values())):
        return dict(builders)
    words = len(model.network.vectors)
    folder = None if home.folder is None else home.folder / FOLDER
    there = folder is not None and (folder / CARD).is_file()
    corpus = _corpus(model, home) if home.named or not there else None
    data = model.history.get("data") if corpus is None else fingerprint((*corpus.train, *corpus.dev))
    language = kept(folder, lambda: _rows(model, corpus), words, data)
    return {name: _spoken(builder, language) if _lacking(builder) else builder for name, builder in builders.items()}


def _lacking(builder: TreeBuilder) -> bool:
    scorer = getattr(builder, "scorer", None)
    return isinstance(scorer, Sampler) and scorer.window > 0 and scorer.language is None


def _spoken(builder: TreeBuilder, language: Any) -> TreeBuilder:
    whole = cast(Any, builder)
    given: TreeBuilder = replace(whole, scorer=replace(whole.scorer, language=language))
    return given


def _corpus(model: Opened, home: Home) -> Corpus:
    if home.corpus is None:
        raise AssayError(
            "Other words around a phrase are written by a language model of the texts that the model learnt from; name "
            "these texts with --corpus."
        )
    corpus = home.corpus()
    check_learnt(model, corpus)
    return corpus


def _rows(model: Opened, corpus: Corpus | None) -> Sequence[Tokenised]:
    """Training texts in the model's words, drawn until there are enough."""
    assert corpus is not None
    rows, _ = tokenise(corpus.train, model.tokeniser, model.tokeniser.options.longest)
    order = np.random.default_rng(0).permutation(len(rows))
    before = np.cumsum([0, *(len(rows[place].ids) for place in order)])[:-1]
    return [rows[place] for place, many in zip(order.tolist(), before.tolist(), strict=True) if many < WORDS]
