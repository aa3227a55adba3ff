"""From a corpus to a model that selects what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.text import Tokeniser
from assay.errors import AssayError, unknown
from assay.models.architecture import Architecture
from assay.models.checkpoints import Checkpoint
from assay.models.huggingface.finetuning import FineTuning
from assay.models.huggingface.loading import configuration, tokenizer_of
from assay.models.huggingface.opening import Opening
from assay.models.huggingface.pieces import PieceTokeniser
from assay.models.huggingface.presets import located
from assay.models.options import Training
from assay.models.recipes import CHECKPOINT, Recipe, check_same, fingerprint, learnable
from assay.models.recipes import course as plain_course
from assay.models.store import Opened
from assay.rationales import storing
from assay.rationales.casting import cast, cast_pretrained
from assay.rationales.learning import Course, learn
from assay.rationales.players import Players
from assay.rationales.recipes import RECIPES
from assay.rationales.schemes import Options, Scheme
from assay.rationales.units import Units

RATE, MOST = 0.2, 0.9  # of words to select where nobody marked any, and where people marked nearly all
OURS = Recipe(
    Architecture(embedding=100, hidden=64, alignment_size=64),
    training=Training(epochs=20, patience=20, batch_size=64, learning_rate=2e-3),
)
"""Players of ours. A game may stand still for epochs before it moves, so none is stopped early."""

PRETRAINED = Training(epochs=10, patience=10, batch_size=32, learning_rate=5e-5, decay=0.0, clip=1.0)


@dataclass(frozen=True)
class Rationalising:
    """Everything that decides which weights come out, besides the corpus.

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
        if self.recipe not in RECIPES:
            raise unknown("recipe", self.recipe, RECIPES)

    def options(self, classes: int, train: Sequence[Tokenised]) -> Options:
        """What the recipe is asked for."""
        rate = marked(train) if self.rate is None else self.rate
        reading = self.reading or ("mask" if isinstance(self.base, FineTuning) else "zero")
        return Options(classes, rate, self.units, reading, self.size, self.continuity, self.concepts)


def rationaliser(corpus: Corpus, wanted: Rationalising, folder: Path | None = None, device: str = "cpu") -> Opened:
    """A model trained on the corpus; with a folder it is stored there, and an interrupted training goes on."""
    check(corpus, wanted.base)
    tokeniser = _tokeniser(corpus, wanted.base)
    train, dev, skipped = learnable(corpus, tokeniser, tokeniser.options.longest)
    options = wanted.options(len(corpus.classes), train)
    asked = {name: value for name, value in asdict(options).items() if name != "classes" and value is not None}
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "rationalising": {"recipe": wanted.recipe, **asked, "base": _plain(wanted.base)},
    }
    if folder is not None and storing.is_folder(folder):
        return _finished(folder, identity, device)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is known before the work
    scheme = RECIPES[wanted.recipe](options)
    players = _players(scheme, wanted.base, tokeniser, corpus.classes, device)
    checkpoint = None if folder is None else Checkpoint(folder / CHECKPOINT, identity)
    network, course = learn(players, scheme, train, dev, wanted.base.training, checkpoint)
    model = Opened(network, tokeniser, corpus.classes, identity | _told(course) | {"skipped": skipped})
    if folder is not None:
        storing.save(model, folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return model


def marked(rows: Sequence[Tokenised]) -> float:
    """The mean share of words that people marked, over the texts in which they marked any; RATE where there are none.

    DeYoung et al. (2020), section 4.2, let every explanation have that length.
    """
    shares = [float(row.truth.double().mean()) for row in rows if row.truth is not None and row.truth.any()]
    return min(MOST, float(np.mean(shares))) if shares else RATE


def check(corpus: Corpus, base: Recipe | FineTuning) -> None:
    """Refuses what no player could read."""
    pairs = any(example.query is not None for example in corpus.train)
    if pairs and isinstance(base, Recipe):
        raise AssayError(
            f"{corpus.name!r} pairs each text with a question, and these networks read one text; add --joined to read "
            "both as one, or start from a pretrained encoder: --model minilm."
        )
    if any(example.candidates is not None for example in corpus.train):
        raise AssayError(f"The texts of {corpus.name!r} have classes of their own; no recipe selects words for that.")


def _tokeniser(corpus: Corpus, base: Recipe | FineTuning) -> Tokeniser | PieceTokeniser:
    if isinstance(base, Recipe):
        return Tokeniser.fit((example.text for example in corpus.train), base.text)
    name = located(base.base)
    return tokenizer_of(name, configuration(name)).with_options(words=True, truncate=True)


def _players(
    scheme: Scheme,
    base: Recipe | FineTuning,
    tokeniser: Tokeniser | PieceTokeniser,
    classes: Sequence[str],
    device: str,
) -> Players:
    if isinstance(base, FineTuning):
        return cast_pretrained(scheme, base, classes, Opening(device=device))[0]
    assert isinstance(tokeniser, Tokeniser)
    return cast(scheme, base, tokeniser, len(classes)).to(device)


def _plain(base: Recipe | FineTuning) -> dict[str, Any]:
    """All that was chosen; precision goes with the device, which is not."""
    return {name: value for name, value in asdict(base).items() if name != "dtype"}


def _told(course: Course) -> dict[str, Any]:
    """How the game went, for the history of the model."""
    return plain_course(course) | {"shares": course.shares}


def _finished(folder: Path, identity: dict[str, Any], device: str) -> Opened:
    model = storing.load(folder, device)
    stored = dict(model.history)
    if "rationalising" in stored:  # options that did not exist then have their defaults
        base = stored["rationalising"]["base"]
        kind = FineTuning if "base" in base else Recipe
        stored["rationalising"] = {**stored["rationalising"], "base": _plain(kind.of(base))}
    check_same(folder, stored, identity)
    return model


def pretrained(base: str, training: Training | None = None, device: str = "cpu", frozen: bool = False) -> FineTuning:
    """Players that start from a pretrained encoder; on a GPU they are trained in half precision."""
    precision = "bfloat16" if device.startswith("cuda") else "float32"
    return replace(FineTuning(base, "attention", frozen, precision), training=training or PRETRAINED)
