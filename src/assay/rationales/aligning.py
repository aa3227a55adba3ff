"""From a corpus of pairs to a model that aligns what it reads; a folder of it is JSON and safetensors."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.text import TextOptions, Tokeniser
from assay.errors import AssayError, told
from assay.files import write_text
from assay.models import tensors
from assay.models.architecture import Architecture
from assay.models.checkpoints import Checkpoint
from assay.models.lessons import CHANCE, Learning
from assay.models.options import Training
from assay.models.predictions import graded
from assay.models.recipes import CHECKPOINT, Recipe, check_same, course, fingerprint, learnable
from assay.models.store import TOKENISER, WEIGHTS, Opened
from assay.models.textmodel import TextModel
from assay.models.training import fit
from assay.rationales.alignment import Aligner
from assay.rationales.transport import Transport
from assay.types import Batch

CARD = "aligner.json"
BASE = Recipe(
    Architecture(encoder="average", embedding=64, hidden=32, alignment_size=32),
    training=Training(epochs=30, patience=5, batch_size=64, learning_rate=3e-3),
)
"""A word is encoded by itself, so that an aligned pair stands for these two words and for nothing around them."""


@dataclass(frozen=True)
class Answered:
    """The right class."""

    begun: ClassVar[float] = CHANCE

    @property
    def identity(self) -> dict[str, Any]:
        return {}

    def losses(self, network: TextModel, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        return F.cross_entropy(network(network.embed(batch), batch).logits, batch.labels, reduction="none")

    def judged(self, network: TextModel, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, rows)


@dataclass(frozen=True)
class Aligning:
    """Everything that decides which weights come out, besides the corpus."""

    transport: Transport = field(default_factory=lambda: Transport(price=0.2, steps=50))
    base: Recipe = BASE


def train_transport(
    corpus: Corpus, wanted: Aligning | None = None, folder: Path | None = None, device: str = "cpu"
) -> Opened:
    """A model trained on the corpus; with a folder it is stored there, and an interrupted training goes on."""
    wanted = wanted or Aligning()
    if any(example.query is None for example in (*corpus.train, *corpus.dev)):
        raise AssayError(f"Only a text and a query can be aligned, and {corpus.name!r} has texts without one.")
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "aligning": asdict(wanted),
    }
    if folder is not None and is_folder(folder):
        return _finished(folder, identity, device)
    tokeniser = Tokeniser.fit(_texts(corpus), wanted.base.text)
    train, dev, skipped = learnable(corpus, tokeniser, wanted.base.text.longest)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)  # what cannot be written to is known before the work
    network = drawn(wanted, len(tokeniser.vocabulary), len(corpus.classes)).to(device)
    checkpoint = None if folder is None else Checkpoint(folder / CHECKPOINT, identity)
    state = fit(network, train, dev, wanted.base.training, checkpoint, Answered())
    model = Opened(network, tokeniser, corpus.classes, identity | course(state) | {"skipped": skipped})
    if folder is not None:
        save(model, folder)
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return model


def drawn(wanted: Aligning, words: int, classes: int) -> Aligner:
    """An untrained model, the same for the same seed."""
    with torch.random.fork_rng():
        torch.manual_seed(wanted.base.training.seed)
        network = Aligner(wanted.base.architecture, words, classes, wanted.transport)
        nn.init.normal_(network.embedding.weight, std=0.5)
    with torch.no_grad():
        network.embedding.weight[0] = 0
    return network


def is_folder(path: Path) -> bool:
    """Whether the folder holds a model that aligns words."""
    return (path / CARD).is_file()


def save(model: Opened, folder: Path) -> None:
    """Writes the folder; the card comes last and marks it as whole."""
    network = model.network
    assert isinstance(network, Aligner) and isinstance(model.tokeniser, Tokeniser)
    write_text(folder / TOKENISER, model.tokeniser.to_json())
    tensors.save(network.state_dict(), folder / WEIGHTS)
    card = {
        "format": "assay-aligner-1",
        "architecture": asdict(network.architecture),
        "transport": asdict(network.transport),
        "text": asdict(model.tokeniser.options),
        "classes": list(model.classes),
        "history": model.history,
    }
    write_text(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")


def load(folder: Path, device: torch.device | str = "cpu") -> Opened:
    """Reads the folder."""
    if not is_folder(folder):
        raise AssayError(f"{folder} holds no model that aligns words; train one with --recipe transport.")
    with told(lambda reason: f"The model folder {folder} is damaged ({reason}); train it again or copy it anew."):
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        text = TextOptions(**card["text"])
        tokeniser = Tokeniser.from_json((folder / TOKENISER).read_text(encoding="utf-8"), text)
        architecture, transport = Architecture(**card["architecture"]), Transport(**card["transport"])
        network = Aligner(architecture, len(tokeniser.vocabulary), len(card["classes"]), transport)
        network.load_state_dict(load_file(folder / WEIGHTS))
        classes, history = tuple(card["classes"]), dict(card["history"])
    return Opened(network.to(device).eval(), tokeniser, classes, history)


def _texts(corpus: Corpus) -> Iterator[str]:
    for example in corpus.train:
        yield from (example.text, example.query or "")


def _finished(folder: Path, identity: dict[str, Any], device: str) -> Opened:
    model = load(folder, device)
    check_same(folder, model.history, identity)
    return model
