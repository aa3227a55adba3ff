"""Trains self-explaining models on a corpus: games of players, alignments of pairs, and SelfExplain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.data.examples import Corpus, parted, two_lines
from assay.data.text import SPECIAL, Tokeniser
from assay.errors import AssayError
from assay.models.config import Architecture, Training
from assay.models.fit import fit
from assay.models.hf_finetuning import Answers, FineTuning, begun
from assay.models.hf_loading import Opening, configuration, located, tokenizer_of
from assay.models.hf_models import Attentive
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.network import Classifier, WordNetwork
from assay.models.objectives import CHANCE, Learning
from assay.models.recipes import Recipe, course, drawn, fingerprint, initialise, learnable, take_vectors
from assay.models.store import Checkpoint, Opened
from assay.models.textmodel import TextModel
from assay.plugins import member
from assay.rationales.aligner import Aligner, Transport, drawn_aligner
from assay.rationales.learning import Options, Scheme, learn
from assay.rationales.players import Players, Reader, assemble_players
from assay.rationales.rationale_store import load_or_train, plain
from assay.rationales.recipes import RECIPES
from assay.rationales.selection_stories import ALIGNMENT, PHRASES
from assay.rationales.selfexplaining import Phrases, SelfExplaining, Shares, gathered, phrases
from assay.rationales.units import Decoding, Units
from assay.stories import with_story
from assay.types import Batch

Base = Recipe | FineTuning
"""Networks of ours, or a pretrained encoder."""

RATE, MOST = 0.2, 0.9  # of words to select where nobody marked any, and where people marked nearly all
OURS = Recipe(
    Architecture(embedding=100, hidden=64, alignment_size=64),
    training=Training(epochs=20, patience=20, batch_size=64, learning_rate=2e-3),
)
"""Players of ours. A game may stand still for epochs before it moves, so none is stopped early."""

PRETRAINED = Training(epochs=10, patience=10, batch_size=32, learning_rate=5e-5, decay=0.0, clip=1.0)


def pretrained(base: str, training: Training | None = None, device: str = "cpu", frozen: bool = False) -> FineTuning:
    """Training options for players from a pretrained encoder, in half precision on a GPU."""
    precision = "bfloat16" if device.startswith("cuda") else "float32"
    return replace(FineTuning(base, "attention", frozen, precision), training=training or PRETRAINED)


def marked(rows: Sequence[Tokenised]) -> float:
    """The mean share of annotated words over texts with annotations; RATE where there are none.

    DeYoung et al. (2020), section 4.2, let every explanation have that length.
    """
    shares = [float(row.truth.double().mean()) for row in rows if row.truth is not None and row.truth.any()]
    return min(MOST, float(np.mean(shares))) if shares else RATE


def tokeniser_of(corpus: Corpus, base: Base) -> Tokeniser | SubwordTokeniser:
    """The vocabulary of the training texts, or the tokeniser of the encoder."""
    if isinstance(base, Recipe):
        return Tokeniser.fit((example.text for example in corpus.train), base.text)
    name = located(base.base)
    return tokenizer_of(name, configuration(name)).with_options(words=True, truncate=True)


@dataclass(frozen=True)
class Lesson:
    """A corpus as it is learnt from: tokenised, on a device."""

    corpus: Corpus
    tokeniser: Tokeniser | SubwordTokeniser
    train: Sequence[Tokenised]
    dev: Sequence[Tokenised]
    device: str = "cpu"


class TrainingPlan(ABC):
    """All options that decide the weights of a self-explaining model, besides the corpus."""

    base: Base

    def checked(self, corpus: Corpus) -> Corpus:
        """The corpus as the networks read it; raises for one that they cannot read."""
        pairs = any(example.query is not None for example in corpus.train)
        if pairs and isinstance(self.base, Recipe):
            raise AssayError(
                f"{corpus.name!r} pairs each text with a question, and these networks read one text; add --joined to "
                "read both as one, start from a pretrained encoder (--model minilm), or align the words of both "
                "(--recipe transport)."
            )
        return without_candidates(corpus)

    def tokeniser(self, corpus: Corpus) -> Tokeniser | SubwordTokeniser:
        return tokeniser_of(corpus, self.base)

    @abstractmethod
    def identity(self, lesson: Lesson) -> dict[str, Any]:
        """The recipe's name and all options but the base, as JSON values."""

    @abstractmethod
    def learnt(self, lesson: Lesson, checkpoint: Checkpoint | None) -> tuple[TextModel, dict[str, Any]]:
        """The trained model, and the history of its training."""


def train_model(corpus: Corpus, plan: TrainingPlan, folder: Path | None = None, device: str = "cpu") -> Opened:
    """Trains on the corpus; with a folder the model is stored there, and interrupted training resumes."""
    corpus = plan.checked(corpus)
    tokeniser = plan.tokeniser(corpus)
    train, dev, skipped = learnable(corpus, tokeniser, tokeniser.options.longest)
    lesson = Lesson(corpus, tokeniser, train, dev, device)
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "rationalising": plan.identity(lesson) | {"base": plain(plan.base)},
    }

    def learnt(checkpoint: Checkpoint | None) -> Opened:
        network, history = plan.learnt(lesson, checkpoint)
        return Opened(network, tokeniser, corpus.classes, identity | history | {"skipped": skipped})

    return load_or_train(folder, identity, device, learnt)


def without_candidates(corpus: Corpus) -> Corpus:
    if any(example.candidates is not None for example in (*corpus.train, *corpus.dev, *corpus.test)):
        raise AssayError(f"The texts of {corpus.name!r} have classes of their own; no recipe selects words for that.")
    return corpus


# Games of players


@dataclass(frozen=True)
class Rationalising(TrainingPlan):
    """Options of a game.

    Without a `rate`, as large a share of words is selected as people marked, on average over the training texts with
    marks, or RATE where there are none. Without a `reading`, what is not selected gives way to 0 where a network of
    ours reads, and to the mask where a pretrained encoder does. `base` says what the players are made of.
    """

    recipe: str = "mcd"
    base: Base = OURS
    rate: float | None = None
    units: Units = field(default_factory=Units)
    reading: str | None = None
    size: float | None = None
    continuity: float | None = None
    concepts: int | None = None

    def __post_init__(self) -> None:
        member(self.recipe, RECIPES, "recipe")

    def options(self, lesson: Lesson) -> Options:
        """The options of the recipe."""
        rate = marked(lesson.train) if self.rate is None else self.rate
        reading = self.reading or ("mask" if isinstance(self.base, FineTuning) else "zero")
        classes = len(lesson.corpus.classes)
        return Options(classes, rate, self.units, reading, self.size, self.continuity, self.concepts)

    def identity(self, lesson: Lesson) -> dict[str, Any]:
        options = asdict(self.options(lesson))
        asked = {name: value for name, value in options.items() if name != "classes" and value is not None}
        return {"recipe": self.recipe, **asked}

    def learnt(self, lesson: Lesson, checkpoint: Checkpoint | None) -> tuple[TextModel, dict[str, Any]]:
        scheme = member(self.recipe, RECIPES, "recipe")(self.options(lesson))
        classes, base = lesson.corpus.classes, self.base
        if isinstance(base, FineTuning):
            players, _ = build_pretrained_players(scheme, base, classes, Opening(device=lesson.device))
        else:
            assert isinstance(lesson.tokeniser, Tokeniser)
            players = build_players(scheme, base, lesson.tokeniser, len(classes)).to(lesson.device)
        network, state = learn(players, scheme, lesson.train, lesson.dev, base.training, checkpoint)
        return network, course(state) | {"shares": state.shares}


SEED_STEP = 1000  # between the seeds of two readers


def build_players(scheme: Scheme, recipe: Recipe, tokeniser: Tokeniser, classes: int) -> Players:
    """Players with random weights, equal for equal seeds; all but the predictor have a table of markers only."""
    readers: dict[str, Reader] = {}
    for index, name in enumerate(scheme.readers):
        seed = recipe.training.seed + SEED_STEP * index
        network = (
            initialise(recipe, tokeniser, classes)
            if name == "predictor"
            else drawn(recipe.architecture, len(SPECIAL), classes, seed)
        )
        if not isinstance(network, Classifier):
            raise AssayError(
                f"Players are networks with one attention over the words of one text; the shape "
                f"{recipe.architecture.shape} is none, so use flat."
            )
        readers[name] = network
    return assemble_players(scheme.rules, readers, scheme.extras, classes, recipe.training.seed)


def build_pretrained_players(
    scheme: Scheme, recipe: FineTuning, classes: Sequence[str], options: Opening
) -> tuple[Players, SubwordTokeniser]:
    """Players that all start from one pretrained encoder, and its tokeniser.

    All read the embeddings of the predictor, so the others keep theirs, which they need for markers, as they are.
    """
    readers: dict[str, Reader] = {}
    for index, name in enumerate(scheme.readers):
        training = replace(recipe.training, seed=recipe.training.seed + SEED_STEP * index)
        network, tokeniser = begun(replace(recipe, head="attention", training=training), classes, options)
        assert isinstance(network, Attentive)
        if name != "predictor":
            network.embedding.requires_grad_(False)
        readers[name] = network
    return assemble_players(scheme.rules, readers, scheme.extras, len(classes), recipe.training.seed), tokeniser


# Alignments of pairs

BASE = Recipe(
    Architecture(encoder="average", embedding=64, hidden=32, alignment_size=32),
    training=Training(epochs=30, patience=10, batch_size=64, learning_rate=5e-3),
)
"""A word is encoded by itself, so that an aligned pair stands for these two words and for nothing around them."""


class AlignmentObjective(Answers):
    """The cross-entropy of the labels, by pairs that are aligned only after some epochs."""

    begun: ClassVar[float] = CHANCE


@with_story(
    "Transport rationales for pairs: a sparse alignment of two texts by optimal transport",
    "Swanson et al. (2020)",
    like=ALIGNMENT,
)
@dataclass(frozen=True)
class TransportRecipe(TrainingPlan):
    """For pairs: a sparse alignment of the words of text and query, at a price a pair, which alone decides."""

    transport: Transport = field(default_factory=lambda: Transport(price=0.2, steps=50))
    base: Recipe = BASE

    def checked(self, corpus: Corpus) -> Corpus:
        """The corpus with a query for each text; where all texts have two lines, the second becomes the query."""
        examples = (*corpus.train, *corpus.dev, *corpus.test)
        if not any(example.query is not None for example in examples) and two_lines(corpus):
            return parted(corpus)
        if any(example.query is None for example in examples):
            raise AssayError(
                f"Only the words of a text and of its question or hypothesis can be aligned, and {corpus.name!r} has "
                "texts without one; choose a corpus of pairs, such as snli, or another recipe."
            )
        return without_candidates(corpus)

    def tokeniser(self, corpus: Corpus) -> Tokeniser:
        texts = (text for example in corpus.train for text in (example.text, example.query or ""))
        return Tokeniser.fit(texts, self.base.text)

    def identity(self, lesson: Lesson) -> dict[str, Any]:
        return {"recipe": "transport", "transport": asdict(self.transport)}

    def begun(self, tokeniser: Tokeniser, classes: int) -> Aligner:
        """The untrained model, with its word vectors."""
        words, architecture = tokeniser.vocabulary, self.base.architecture
        network = drawn_aligner(architecture, self.transport, len(words), classes, self.base.training.seed)
        if architecture.vectors == "glove":
            take_vectors(network.embedding, words)
        network.embedding.weight.requires_grad_(not architecture.frozen)
        return network

    def learnt(self, lesson: Lesson, checkpoint: Checkpoint | None) -> tuple[TextModel, dict[str, Any]]:
        assert isinstance(lesson.tokeniser, Tokeniser)
        network = self.begun(lesson.tokeniser, len(lesson.corpus.classes)).to(lesson.device)
        training, objective = self.base.training, AlignmentObjective()
        return network, course(fit(network, lesson.train, lesson.dev, training, checkpoint, objective))


# SelfExplain (Rajagopal et al., 2021)


@dataclass(frozen=True)
class SelfExplainLesson(Answers):
    """CE(logits) + α CE(global answer) + β CE(local answer) (Rajagopal et al., 2021, equation 8).

    The store is encoded anew every so many steps, and before each judgement, so what is kept of an epoch is fresh.
    """

    shared: float = 0.1  # α
    local: float = 0.1  # β
    every: int = 50

    @property
    def identity(self) -> dict[str, Any]:
        return {"explaining": asdict(self)}

    def losses(self, network: SelfExplaining, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:  # type: ignore[override]
        if int(network.steps) % self.every == 0:
            network.refresh()
        network.steps += 1
        explained = network.explained(network.embed(batch), batch)
        shares = network.shares
        parts = (
            (1.0, explained.logits),
            (self.shared, explained.neighbours.sum(1) / max(shares.shared, 1e-9)),
            (self.local, explained.phrases.sum(1) / max(shares.local, 1e-9)),
        )
        total = torch.zeros(len(batch), device=batch.ids.device)
        for weight, logits in parts:
            total = total + weight * F.cross_entropy(logits.float(), batch.labels, reduction="none")
        return total

    def judged(self, network: SelfExplaining, rows: Sequence[Tokenised]) -> tuple[float, float]:
        network.refresh()
        return super().judged(network, rows)


@with_story(
    "SelfExplain: phrases of a text and of training texts answer with it", "Rajagopal et al. (2021)", like=PHRASES
)
@dataclass(frozen=True)
class SelfExplanation(TrainingPlan):
    """Options of SelfExplain: text, phrases and similar training phrases each contribute to the logits.

    Phrases have at most `width` words, and as many as `stored` of the most frequent ones are kept. The `rate` is the
    share of phrases that is selected; without one it is the share of words that people marked.
    """

    width: int = 5
    stored: int = 2000
    shares: Shares = field(default_factory=Shares)
    lesson: SelfExplainLesson = field(default_factory=SelfExplainLesson)
    base: Base = OURS
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.stored < 1:
            raise AssayError(f"The number of stored phrases must be at least 1, got {self.stored}.")
        Phrases(self.width), self.decoding(())  # which refuse what is out of range

    def identity(self, lesson: Lesson) -> dict[str, Any]:
        asked = {name: value for name, value in asdict(self).items() if name != "base" and value is not None}
        return {"recipe": "selfexplain", **asked}

    def learnt(self, lesson: Lesson, checkpoint: Checkpoint | None) -> tuple[TextModel, dict[str, Any]]:
        texts = [each.text for each in lesson.corpus.train]
        network = self.begun(self._reader(lesson), lesson.tokeniser, lesson.train, texts)
        return network, course(fit(network, lesson.train, lesson.dev, self.base.training, checkpoint, self.lesson))

    def _reader(self, lesson: Lesson) -> Reader:
        """The untrained encoder."""
        classes = lesson.corpus.classes
        if isinstance(self.base, FineTuning):
            reader: TextModel = begun(replace(self.base, head="attention"), classes, Opening(device=lesson.device))[0]
        else:
            assert isinstance(lesson.tokeniser, Tokeniser)
            reader = initialise(self.base, lesson.tokeniser, len(classes)).to(lesson.device)
        assert isinstance(reader, WordNetwork | Attentive)
        return reader

    def decoding(self, train: Sequence[Tokenised]) -> Decoding:
        """How many phrases are selected."""
        return Decoding("top", marked(train) if self.rate is None else self.rate)

    def begun(
        self,
        reader: Reader,
        tokeniser: Tokeniser | SubwordTokeniser,
        train: Sequence[Tokenised],
        texts: Sequence[str],
    ) -> SelfExplaining:
        """The untrained model with an encoded store, equal for equal seeds."""
        cut = phrases(tokeniser, self.width)
        store = gathered(train, texts, cut, reader.decoder.in_features, self.stored)
        with torch.random.fork_rng():
            torch.manual_seed(self.base.training.seed + 1)
            network = SelfExplaining(reader, store, cut, self.shares, self.decoding(train))
        network.to(reader.decoder.weight.dtype).to(reader.device)
        network.refresh()
        return network


UNPLAYED = {"transport": TransportRecipe, "selfexplain": SelfExplanation}
"""Recipes for which no game is played: what is learnt is one network."""
