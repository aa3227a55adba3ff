"""Trains SelfExplain models (Rajagopal et al., 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.models.fit import fit
from assay.models.hf_finetuning import FineTuning, begun
from assay.models.hf_loading import Opening
from assay.models.hf_models import Attentive
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.network import WordNetwork
from assay.models.objectives import Learning
from assay.models.recipes import Recipe, course, fingerprint, initialise, learnable
from assay.models.store import Checkpoint, Opened
from assay.models.textmodel import graded
from assay.rationales.bases import OURS, check, marked, tokeniser_of
from assay.rationales.concepts.phrases import Phrases, phrases
from assay.rationales.concepts.selfexplaining import SelfExplaining, Shares
from assay.rationales.concepts.store import gathered
from assay.rationales.decoding import Decoding
from assay.rationales.players import Reader
from assay.rationales.stories import PHRASES
from assay.rationales.storing import load_or_train, plain
from assay.stories import with_story
from assay.types import Batch


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
