"""Trains self-explaining models on a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from assay.models.hf_finetuning import FineTuning, begun
from assay.models.hf_loading import Opening, configuration, located, tokenizer_of
from assay.models.hf_models import Attentive
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.network import Classifier, WordNetwork
from assay.models.objectives import CHANCE, Learning
from assay.models.recipes import Recipe, course, drawn, fingerprint, initialise, learnable, take_vectors
from assay.models.recipes import course as plain_course
from assay.models.store import Checkpoint, Opened
from assay.models.textmodel import TextModel, graded
from assay.plugins import member
from assay.rationales.aligner import Aligner, Transport, drawn_aligner
from assay.rationales.learning import GameState, Options, Scheme, learn
from assay.rationales.players import Players, Reader, assemble_players
from assay.rationales.rationale_store import load_or_train, plain
from assay.rationales.recipes import RECIPES
from assay.rationales.selection_stories import ALIGNMENT, PHRASES
from assay.rationales.selfexplaining import Phrases, SelfExplaining, Shares, gathered, phrases
from assay.rationales.units import Decoding, Units
from assay.stories import with_story
from assay.types import Batch

# Base networks of self-explaining models: small networks trained here, or a pretrained encoder.


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


def tokeniser_of(corpus: Corpus, base: Recipe | FineTuning) -> Tokeniser | SubwordTokeniser:
    """The vocabulary of the training texts, or the tokeniser of the encoder."""
    if isinstance(base, Recipe):
        return Tokeniser.fit((example.text for example in corpus.train), base.text)
    name = located(base.base)
    return tokenizer_of(name, configuration(name)).with_options(words=True, truncate=True)


def marked(rows: Sequence[Tokenised]) -> float:
    """The mean share of annotated words over texts with annotations; RATE where there are none.

    DeYoung et al. (2020), section 4.2, let every explanation have that length.
    """
    shares = [float(row.truth.double().mean()) for row in rows if row.truth is not None and row.truth.any()]
    return min(MOST, float(np.mean(shares))) if shares else RATE


def check(corpus: Corpus, base: Recipe | FineTuning) -> None:
    """Raises for a corpus that the networks cannot read."""
    pairs = any(example.query is not None for example in corpus.train)
    if pairs and isinstance(base, Recipe):
        raise AssayError(
            f"{corpus.name!r} pairs each text with a question, and these networks read one text; add --joined to read "
            "both as one, start from a pretrained encoder (--model minilm), or align the words of both "
            "(--recipe transport)."
        )
    if any(example.candidates is not None for example in corpus.train):
        raise AssayError(f"The texts of {corpus.name!r} have classes of their own; no recipe selects words for that.")


# Builds the networks (players) of a scheme: small ones, or from pretrained encoders.


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


# Transport rationales for pairs (Swanson et al., 2020): a sparse alignment of two texts by optimal transport.


BASE = Recipe(
    Architecture(encoder="average", embedding=64, hidden=32, alignment_size=32),
    training=Training(epochs=30, patience=10, batch_size=64, learning_rate=5e-3),
)
"""A word is encoded by itself, so that an aligned pair stands for these two words and for nothing around them."""


@dataclass(frozen=True)
class CrossEntropyLesson:
    """The cross-entropy of the labels."""

    begun: ClassVar[float] = CHANCE

    @property
    def identity(self) -> dict[str, Any]:
        return {}

    def losses(self, network: TextModel, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        return F.cross_entropy(network(network.embed(batch), batch).logits, batch.labels, reduction="none")

    def judged(self, network: TextModel, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, rows)


@with_story(
    "Transport rationales for pairs: a sparse alignment of two texts by optimal transport",
    "Swanson et al. (2020)",
    like=ALIGNMENT,
)
@dataclass(frozen=True)
class TransportRecipe:
    """For pairs: a sparse alignment of the words of text and query, at a price a pair, which alone decides.

    All options that decide the weights, besides the corpus.

    Together with the corpus, it decides which weights come out.
    """

    transport: Transport = field(default_factory=lambda: Transport(price=0.2, steps=50))
    base: Recipe = BASE


def train_transport(
    corpus: Corpus, wanted: TransportRecipe | None = None, folder: Path | None = None, device: str = "cpu"
) -> Opened:
    """Trains on the corpus; with a folder the model is stored there, and interrupted training resumes."""
    wanted, corpus = wanted or TransportRecipe(), paired_corpus(corpus)
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "rationalising": {"recipe": "transport", "transport": asdict(wanted.transport), "base": plain(wanted.base)},
    }

    def learnt(checkpoint: Checkpoint | None) -> Opened:
        tokeniser = Tokeniser.fit(_texts(corpus), wanted.base.text)
        train, dev, skipped = learnable(corpus, tokeniser, wanted.base.text.longest)
        network = begun_aligner(wanted, tokeniser, len(corpus.classes)).to(device)
        state = fit(network, train, dev, wanted.base.training, checkpoint, CrossEntropyLesson())
        return Opened(network, tokeniser, corpus.classes, identity | course(state) | {"skipped": skipped})

    return load_or_train(folder, identity, device, learnt)


def paired_corpus(corpus: Corpus) -> Corpus:
    """The corpus with a query for each text; where all texts have two lines, the second becomes the query."""
    examples = (*corpus.train, *corpus.dev, *corpus.test)
    if not any(example.query is not None for example in examples) and two_lines(corpus):
        return parted(corpus)
    if any(example.query is None for example in examples):
        raise AssayError(
            f"Only the words of a text and of its question or hypothesis can be aligned, and {corpus.name!r} has texts "
            "without one; choose a corpus of pairs, such as snli, or another recipe."
        )
    if any(example.candidates is not None for example in examples):
        raise AssayError(f"The texts of {corpus.name!r} have classes of their own; no recipe selects words for that.")
    return corpus


def begun_aligner(wanted: TransportRecipe, tokeniser: Tokeniser, classes: int) -> Aligner:
    """The untrained model, with its word vectors."""
    words, architecture = tokeniser.vocabulary, wanted.base.architecture
    network = drawn_aligner(architecture, wanted.transport, len(words), classes, wanted.base.training.seed)
    if architecture.vectors == "glove":
        take_vectors(network.embedding, words)
    network.embedding.weight.requires_grad_(not architecture.frozen)
    return network


def _texts(corpus: Corpus) -> Iterator[str]:
    for example in corpus.train:
        yield from (example.text, example.query or "")


# Trains SelfExplain models (Rajagopal et al., 2021).


@dataclass(frozen=True)
class SelfExplainLesson:
    """CE(logits) + α CE(global answer) + β CE(local answer) (Rajagopal et al., 2021, equation 8).

    The store is encoded anew every so many steps, and before each judgement, so what is kept of an epoch is fresh.
    """

    begun: ClassVar[float] = 0.0
    shared: float = 0.1  # α
    local: float = 0.1  # β
    every: int = 50

    @property
    def identity(self) -> dict[str, Any]:
        return {"explaining": asdict(self)}

    def losses(self, network: SelfExplaining, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
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
        return graded(network, rows)


@with_story(
    "SelfExplain: phrases of a text and of training texts answer with it", "Rajagopal et al. (2021)", like=PHRASES
)
@dataclass(frozen=True)
class SelfExplanation:
    """Options of SelfExplain: text, phrases and similar training phrases each contribute to the logits.

    All that decides what is learnt, besides the corpus: phrases have at most `width` words, and as many as `stored` of
    the most frequent ones are kept. The `rate` is the share of phrases that is selected; without one it is the share of
    words that people marked.
    """

    width: int = 5
    stored: int = 2000
    shares: Shares = field(default_factory=Shares)
    lesson: SelfExplainLesson = field(default_factory=SelfExplainLesson)
    base: Recipe | FineTuning = field(default_factory=lambda: OURS)
    rate: float | None = None

    def __post_init__(self) -> None:
        if self.stored < 1:
            raise AssayError(f"The number of stored phrases must be at least 1, got {self.stored}.")
        Phrases(self.width), self.decoding(())  # which refuse what is out of range

    def fit(
        self,
        reader: Reader,
        tokeniser: Tokeniser | SubwordTokeniser,
        corpus: Corpus,
        checkpoint: Checkpoint | None = None,
    ) -> Opened:
        """Trains a model around a reader, which is trained with it."""
        train, dev, skipped = learnable(corpus, tokeniser, tokeniser.options.longest)
        network = self.begun(reader, tokeniser, train, [each.text for each in corpus.train])
        state = fit(network, train, dev, self.base.training, checkpoint, self.lesson)
        history = identity(corpus, self) | course(state) | {"skipped": skipped}
        return Opened(network, tokeniser, corpus.classes, history)

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


def train_self_explaining(
    corpus: Corpus, wanted: SelfExplanation | None = None, folder: Path | None = None, device: str = "cpu"
) -> Opened:
    """Trains on the corpus; with a folder the model is stored there, and interrupted training resumes."""
    wanted = wanted or SelfExplanation()
    check(corpus, wanted.base)

    def learnt(checkpoint: Checkpoint | None) -> Opened:
        tokeniser = tokeniser_of(corpus, wanted.base)
        return wanted.fit(_reader(wanted.base, tokeniser, corpus, device), tokeniser, corpus, checkpoint)

    return load_or_train(folder, identity(corpus, wanted), device, learnt)


def identity(corpus: Corpus, wanted: SelfExplanation) -> dict[str, Any]:
    """All that decides the weights, as JSON values."""
    asked = {name: value for name, value in asdict(wanted).items() if name != "base" and value is not None}
    return {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "rationalising": {"recipe": "selfexplain", **asked, "base": plain(wanted.base)},
    }


def _reader(base: Recipe | FineTuning, tokeniser: Tokeniser | SubwordTokeniser, corpus: Corpus, device: str) -> Reader:
    """The untrained encoder."""
    if isinstance(base, FineTuning):
        network, _ = begun(replace(base, head="attention"), corpus.classes, Opening(device=device))
        assert isinstance(network, Attentive)
        return network
    assert isinstance(tokeniser, Tokeniser)
    found = initialise(base, tokeniser, len(corpus.classes)).to(device)
    assert isinstance(found, WordNetwork)
    return found


# Recipes.


UNPLAYED = {"transport": TransportRecipe, "selfexplain": SelfExplanation}
"""Recipes for which no game is played: what is learnt is one network."""
