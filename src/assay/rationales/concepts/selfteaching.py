"""How a classifier learns to explain itself, with a store that keeps up with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.text import Tokeniser
from assay.models.checkpoints import Checkpoint
from assay.models.huggingface.attentive import Attentive
from assay.models.huggingface.pieces import PieceTokeniser
from assay.models.lessons import Learning
from assay.models.network import WordNetwork
from assay.models.options import Training
from assay.models.predictions import graded
from assay.models.recipes import course, learnable
from assay.models.store import Opened
from assay.models.training import fit
from assay.rationales.concepts.phrases import phrases
from assay.rationales.concepts.selfexplaining import SelfExplaining, Shares
from assay.rationales.concepts.store import gathered
from assay.rationales.players import Reader
from assay.types import Batch


@dataclass(frozen=True)
class Explaining:
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


@dataclass(frozen=True)
class SelfExplanation:
    """Everything that decides what is learnt, besides the corpus and the reader: phrases of at most `width` words."""

    width: int = 5
    stored: int = 2000
    shares: Shares = field(default_factory=Shares)
    lesson: Explaining = field(default_factory=Explaining)
    training: Training = field(default_factory=Training)

    def fit(
        self,
        reader: Reader,
        tokeniser: Tokeniser | PieceTokeniser,
        corpus: Corpus,
        checkpoint: Checkpoint | None = None,
    ) -> Opened:
        """A model around a reader, which learns with it: a flat network of ours, or a pretrained encoder's."""
        assert isinstance(reader, WordNetwork | Attentive)
        train, dev, skipped = learnable(corpus, tokeniser, tokeniser.options.longest)
        network = self.begun(reader, tokeniser, train, [each.text for each in corpus.train])
        state = fit(network, train, dev, self.training, checkpoint, self.lesson)
        history = {"corpus": corpus.name, "self_explanation": asdict(self), **course(state), "skipped": skipped}
        return Opened(network, tokeniser, corpus.classes, history)

    def begun(
        self,
        reader: Reader,
        tokeniser: Tokeniser | PieceTokeniser,
        train: Sequence[Tokenised],
        texts: Sequence[str],
    ) -> SelfExplaining:
        """The model before it learns, with its store encoded; the same for the same seed."""
        cut = phrases(tokeniser, self.width)
        store = gathered(train, texts, cut, reader.decoder.in_features, self.stored)
        with torch.random.fork_rng():
            torch.manual_seed(self.training.seed + 1)
            network = SelfExplaining(reader, store, cut, self.shares)
        network.to(reader.decoder.weight.dtype).to(reader.device)
        network.refresh()
        return network
