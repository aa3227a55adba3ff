"""Small trainings in double precision, with all that a training can have."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from assay.data.batches import Tokenised, tokenise
from assay.data.corpora import corpus
from assay.data.examples import Corpus
from assay.data.text import Tokeniser
from assay.influence.setting import Setting
from assay.influence.training_run import TrainingRun
from assay.models.config import Architecture, Training
from assay.models.recipes import Recipe, initialise

HARD = Training(epochs=2, batch_size=6, learning_rate=5e-3, decay=1e-3, clip=0.3)


@cache
def planted() -> Corpus:
    return corpus("planted:keyword")


def training_run(
    encoder: str, rows: int = 12, training: Training = HARD, **architecture: object
) -> tuple[TrainingRun, list[Tokenised]]:
    """A training, with more examples of one class than of the other, and texts to ask about."""
    texts = planted()
    chosen = [each for index, each in enumerate(texts.train[: 2 * rows]) if each.label == 0 or index % 3][:rows]
    parts = Architecture(encoder=encoder, embedding=6, hidden=4, alignment_size=4)
    recipe = Recipe(replace(parts, **architecture), training=training)  # type: ignore[arg-type]
    tokeniser = Tokeniser.fit([each.text for each in chosen], recipe.text)
    learnt, _ = tokenise(chosen, tokeniser, 1000)
    asked, _ = tokenise(texts.test[:4], tokeniser, 1000)
    return TrainingRun(initialise(recipe, tokeniser, 2).double(), learnt, training, training.epochs), asked


def setting(made: TrainingRun, asked: list[Tokenised], target: str = "margin") -> Setting:
    """The trained network and what is asked of it."""
    return Setting.of(made.learn(), made.rows, asked, target, training_run=made)
