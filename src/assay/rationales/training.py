"""Trains self-explaining models on a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.text import Tokeniser
from assay.models.hf_finetuning import FineTuning
from assay.models.hf_loading import Opening
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.recipes import Recipe, fingerprint, learnable
from assay.models.recipes import course as plain_course
from assay.models.store import Checkpoint, Opened
from assay.plugins import member
from assay.rationales.bases import OURS, check, marked, tokeniser_of
from assay.rationales.learning import GameState, learn
from assay.rationales.player_building import build_players, build_pretrained_players
from assay.rationales.players import Players
from assay.rationales.recipes import RECIPES
from assay.rationales.schemes import Options, Scheme
from assay.rationales.storing import load_or_train, plain
from assay.rationales.units import Units


@dataclass(frozen=True)
class Rationalising:
    """All options that decide the weights, besides the corpus.

    Without a `rate`, as large a share of words is selected as people marked, on average over the training texts with
    marks, or RATE where there are none. Without a `reading`, what is not selected gives way to 0 where a network of
    ours reads, and to the mask where a pretrained encoder does. `base` says what the players are made of.
    """

    recipe: str = "mcd"
    base: Recipe | FineTuning = field(default_factory=lambda: OURS)
    rate: float | None = None
    units: Units = field(default_factory=Units)
    reading: str | None = None
    size: float | None = None
    continuity: float | None = None
    concepts: int | None = None

    def __post_init__(self) -> None:
        member(self.recipe, RECIPES, "recipe")

    def options(self, classes: int, train: Sequence[Tokenised]) -> Options:
        """The options of the recipe."""
        rate = marked(train) if self.rate is None else self.rate
        reading = self.reading or ("mask" if isinstance(self.base, FineTuning) else "zero")
        return Options(classes, rate, self.units, reading, self.size, self.continuity, self.concepts)


def rationaliser(corpus: Corpus, wanted: Rationalising, folder: Path | None = None, device: str = "cpu") -> Opened:
    """Trains on the corpus; with a folder the model is stored there, and interrupted training resumes."""
    check(corpus, wanted.base)
    tokeniser = tokeniser_of(corpus, wanted.base)
    train, dev, skipped = learnable(corpus, tokeniser, tokeniser.options.longest)
    options = wanted.options(len(corpus.classes), train)
    asked = {name: value for name, value in asdict(options).items() if name != "classes" and value is not None}
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "rationalising": {"recipe": wanted.recipe, **asked, "base": plain(wanted.base)},
    }

    def learnt(checkpoint: Checkpoint | None) -> Opened:
        scheme = member(wanted.recipe, RECIPES, "recipe")(options)
        players = _players(scheme, wanted.base, tokeniser, corpus.classes, device)
        network, course = learn(players, scheme, train, dev, wanted.base.training, checkpoint)
        return Opened(network, tokeniser, corpus.classes, identity | _told(course) | {"skipped": skipped})

    return load_or_train(folder, identity, device, learnt)


def _players(
    scheme: Scheme,
    base: Recipe | FineTuning,
    tokeniser: Tokeniser | SubwordTokeniser,
    classes: Sequence[str],
    device: str,
) -> Players:
    if isinstance(base, FineTuning):
        return build_pretrained_players(scheme, base, classes, Opening(device=device))[0]
    assert isinstance(tokeniser, Tokeniser)
    return build_players(scheme, base, tokeniser, len(classes)).to(device)


def _told(course: GameState) -> dict[str, Any]:
    """The history of the training."""
    return plain_course(course) | {"shares": course.shares}
