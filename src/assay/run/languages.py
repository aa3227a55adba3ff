"""Other words for what stands around a phrase: a language model of the texts that a model learnt from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from assay.data import given
from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus
from assay.errors import AssayError
from assay.explainers.hierarchies.keeping import kept
from assay.explainers.hierarchies.language import CARD
from assay.explainers.hierarchies.sampling import Sampler
from assay.explainers.hierarchies.scorers import TreeBuilder
from assay.models.recipes import fingerprint
from assay.models.store import Opened
from assay.run.background import check_learnt
from assay.types import TokenModel

FOLDER = "language"
MOST = 300_000  # words of training texts: more take long and teach a small language model little


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
    return [rows[place] for place, many in zip(order.tolist(), before.tolist(), strict=True) if many < MOST]
