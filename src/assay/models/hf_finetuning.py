"""Fine-tunes a pretrained encoder on a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch.nn import functional as F

from assay.data.examples import Corpus
from assay.errors import unknown
from assay.models.config import Training
from assay.models.fit import fit
from assay.models.hf_body import Body
from assay.models.hf_loading import (
    CARD,
    Opening,
    configuration,
    encoder_of,
    headed,
    located,
    opened,
    save,
    tokenizer_of,
)
from assay.models.hf_models import Attentive, Pretrained, traits
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.objectives import Learning, Objective
from assay.models.recipes import CHECKPOINT, begun_in, check_same, course, fingerprint, learnable
from assay.models.store import Opened
from assay.models.textmodel import TextModel
from assay.types import Batch, TextScores

HEADS = ("own", "attention")
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class FineTuning:
    """Everything that decides the weights besides the corpus: base model, head and training options.

    The head is the library's `own`, or one `attention` that pools the words, so that exact answers hold. A `frozen`
    encoder stays as it is, and only what is above it learns. Texts longer than the encoder reads are cut.
    """

    base: str = "minilm"
    head: str = "own"
    frozen: bool = False
    dtype: str = "float32"
    training: Training = field(
        default_factory=lambda: Training(epochs=4, patience=2, learning_rate=5e-5, decay=0.0, clip=1.0)
    )

    def __post_init__(self) -> None:
        if self.head not in HEADS:
            raise unknown("head", self.head, HEADS)
        if self.dtype not in PRECISIONS:
            raise unknown("precision of training", self.dtype, PRECISIONS)

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> FineTuning:
        """The options from their stored form."""
        return cls(**{**stored, "training": Training.of(stored["training"])})


@dataclass(frozen=True)
class Answers(Objective):
    """The fine-tuning objective: cross-entropy of the labels."""

    begun: ClassVar[float] = 0.0

    def losses(self, network: TextModel, batch: Batch, learning: Learning) -> TextScores:
        logits = network(network.embed(batch), batch).logits.float()
        return F.cross_entropy(logits, batch.labels, reduction="none")


def finetune(corpus: Corpus, recipe: FineTuning, folder: Path | None = None, options: Opening | None = None) -> Opened:
    """A classifier fine-tuned on the corpus; with a folder it is stored there, and interrupted training is resumed."""
    options = options or Opening()
    identity = {
        "corpus": corpus.name,
        "data": fingerprint((*corpus.train, *corpus.dev)),
        "finetuning": asdict(recipe),
    }
    if folder is not None and (folder / CARD).exists():
        return _finished(folder, identity, options)
    network, tokeniser = begun(recipe, corpus.classes, options)
    train, dev, skipped = learnable(corpus, tokeniser, tokeniser.options.longest)
    checkpoint = None if folder is None else begun_in(folder, identity)
    state = fit(network, train, dev, recipe.training, checkpoint, Answers())
    model = Opened(network, tokeniser, corpus.classes, identity | course(state) | {"skipped": skipped})
    if folder is None:
        return model
    save(model, folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    return opened(str(folder), options)


def begun(recipe: FineTuning, classes: Sequence[str], options: Opening) -> tuple[Body, SubwordTokeniser]:
    """The encoder with an untrained head, determined by the seed."""
    name = located(recipe.base)
    config = configuration(name)
    config.num_labels = len(classes)
    config.id2label, config.label2id = dict(enumerate(classes)), {each: index for index, each in enumerate(classes)}
    config.problem_type = "single_label_classification"
    tokeniser = tokenizer_of(name, config).with_options(words=options.words, truncate=True)
    precision = PRECISIONS[recipe.dtype]
    with torch.random.fork_rng():
        torch.manual_seed(recipe.training.seed)
        network: Body
        if recipe.head == "attention":
            inner = encoder_of(name, config, torch.float32)
            network = Attentive(inner, traits(inner, tokeniser.inner, recipe.base), len(classes), precision)
        else:
            inner = headed(name, config)
            network = Pretrained(inner, traits(inner, tokeniser.inner, recipe.base), autocast=precision)
    if recipe.frozen:
        for parameter in inner.base_model.parameters():
            parameter.requires_grad_(False)
        for parameter in network.part(network.cascade[0]).parameters():
            parameter.requires_grad_(True)
    return network.to(options.devices[0]), tokeniser


def _finished(folder: Path, identity: dict[str, Any], options: Opening) -> Opened:
    model = opened(str(folder), options)
    check_same(folder, model.history, identity)
    return model
