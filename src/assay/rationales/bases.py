"""Base networks of self-explaining models: small networks trained here, or a pretrained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assay.data.batches import Tokenised
from assay.data.examples import Corpus
from assay.data.text import Tokeniser
from assay.errors import AssayError
from assay.models.config import Architecture, Training
from assay.models.hf_finetuning import FineTuning
from assay.models.hf_loading import configuration, located, tokenizer_of
from assay.models.hf_subwords import SubwordTokeniser
from assay.models.recipes import Recipe

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
