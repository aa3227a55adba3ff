"""Transport rationales for pairs (Swanson et al., 2020): a sparse alignment of two texts by optimal transport."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.parted import parted, two_lines
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.models.config import Architecture, Training
from assay.models.fit import fit
from assay.models.objectives import CHANCE, Learning
from assay.models.recipes import Recipe, course, fingerprint, learnable, take_vectors
from assay.models.store import Checkpoint, Opened
from assay.models.textmodel import TextModel, graded
from assay.rationales.aligner import Aligner, drawn
from assay.rationales.stories import ALIGNMENT
from assay.rationales.storing import load_or_train, plain
from assay.rationales.transport import Transport
from assay.stories import with_story
from assay.types import Batch

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
    wanted, corpus = wanted or TransportRecipe(), pairs(corpus)
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "rationalising": {"recipe": "transport", "transport": asdict(wanted.transport), "base": plain(wanted.base)},
    }

    def learnt(checkpoint: Checkpoint | None) -> Opened:
        tokeniser = Tokeniser.fit(_texts(corpus), wanted.base.text)
        train, dev, skipped = learnable(corpus, tokeniser, wanted.base.text.longest)
        network = begun(wanted, tokeniser, len(corpus.classes)).to(device)
        state = fit(network, train, dev, wanted.base.training, checkpoint, CrossEntropyLesson())
        return Opened(network, tokeniser, corpus.classes, identity | course(state) | {"skipped": skipped})

    return load_or_train(folder, identity, device, learnt)


def pairs(corpus: Corpus) -> Corpus:
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


def begun(wanted: TransportRecipe, tokeniser: Tokeniser, classes: int) -> Aligner:
    """The untrained model, with its word vectors."""
    words, architecture = tokeniser.vocabulary, wanted.base.architecture
    network = drawn(architecture, wanted.transport, len(words), classes, wanted.base.training.seed)
    if architecture.vectors == "glove":
        take_vectors(network.embedding, words)
    network.embedding.weight.requires_grad_(not architecture.frozen)
    return network


def _texts(corpus: Corpus) -> Iterator[str]:
    for example in corpus.train:
        yield from (example.text, example.query or "")
