"""What a model learnt from, and how: the ground on which its decisions are traced back to training texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from assay.data.batches import Tokenised, tokenise
from assay.data.examples import Corpus, Example
from assay.data.matching import examples_for
from assay.errors import AssayError
from assay.influence.setting import Setting
from assay.influence.training_run import TrainingRun
from assay.models.store import Opened
from assay.models.textmodel import predict
from assay.run.texts import check_learnt


@dataclass(frozen=True)
class Background:
    """A model with the texts that it learnt from; `training_run` is None where nobody knows how it was trained."""

    model: Opened
    corpus: Corpus
    examples: Sequence[Example]
    rows: Sequence[Tokenised]
    training_run: TrainingRun | None

    @classmethod
    def of(cls, model: Opened, corpus: Corpus) -> Background:
        """Checks that a model which was made here learnt from this corpus; of others it is taken on trust."""
        check_learnt(model, corpus)
        training_run = TrainingRun.of(model, corpus) if {"recipe", "finetuning"} & set(model.history) else None
        examples = examples_for(corpus, "train", model.classes)
        rows = (
            training_run.rows
            if training_run
            else tokenise(examples, model.tokeniser, model.tokeniser.options.longest)[0]
        )
        if not rows:
            raise AssayError(f"{corpus.name!r} has no training text that the model can read.")
        return cls(model, corpus, examples, rows, training_run)

    def setting(
        self, queries: Sequence[Tokenised], target: str = "margin", asked: Sequence[int] | None = None
    ) -> Setting:
        """The question about some texts, of their predicted classes or of those that are named."""
        classes = None if asked is None else np.asarray(asked)
        return Setting.of(self.model.network, self.rows, queries, target, classes, self.training_run)

    @cached_property
    def probabilities(self) -> Float[np.ndarray, "N C"]:
        """What the model answers for its own training texts."""
        return predict(self.model.network, self.rows)

    def text(self, place: int) -> str:
        """The training text that a row was made of."""
        return self.examples[self.rows[place].index].text
