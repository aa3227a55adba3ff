"""Hyperparameters of architecture and training, as plain options that can be compared and stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assay.errors import AssayError, unknown
from assay.models.encoders import ALIGNMENTS, ENCODERS
from assay.models.projections import projection

SHAPES = {
    "flat": "one attention over all words",
    "hierarchical": "attention over the words of each sentence, then over sentences",
    "paired": "attention over the words, given a question or hypothesis",
    "structured": "several rows of attention over the words, each with a mean of its own",
    "spans": "attention over all spans of a few words",
    "aspect": "attention over the words, given the aspect that is asked about",
}
PAIRS = ("paired", "aspect")
"""The shapes that read a text and a query."""


@dataclass(frozen=True)
class Architecture:
    """The architecture of a network: its modules and their sizes; defaults are those of Jain and Wallace (2019)."""

    encoder: str = "lstm"
    alignment: str = "additive"
    embedding: int = 300
    hidden: int = 128  # states have twice this size, but without an encoder
    alignment_size: int = 128
    vectors: str = "random"  # or "glove": 50 dimensions
    embedding_std: float = 0.1  # standard deviation of the embeddings that start at random, about 0
    frozen: bool = False  # embeddings are not trained
    markers: bool = False  # start and end are encoded but never attended
    shape: str = "flat"
    projection: str = "softmax"  # from scores to attention weights, such as sparsemax or sparsegen(0.5)
    inner: str = "softmax"  # the same for self-attention within an encoder
    concat: bool = False  # the embedding of each word stands beside its encoding
    rows: int = 4  # of attention, in a structured model
    longest_span: int = 6  # in words
    dropout_words: float = 0.0  # before words are encoded
    dropout_sentences: float = 0.0  # before sentences are encoded
    dropout_decoder: float = 0.0

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("encoder", self.encoder, ENCODERS),
            ("alignment", self.alignment, ALIGNMENTS),
            ("vectors", self.vectors, ("random", "glove")),
            ("shape", self.shape, SHAPES),
        ):
            if name not in known:
                raise unknown(kind, name, known)
        projection(self.projection), projection(self.inner)
        if self.inner != "softmax" and self.encoder != "transformer":
            raise AssayError(f"Only the transformer has self-attention within; the encoder {self.encoder} has none.")
        if min(self.embedding, self.hidden, self.alignment_size) < 1:
            raise AssayError("Sizes of embeddings and hidden states must be at least 1.")
        if not 0 < self.embedding_std < math.inf:
            raise AssayError(f"The standard deviation of embeddings must be above 0, got {self.embedding_std:g}.")
        if min(self.rows, self.longest_span) < 1:
            raise AssayError("Rows of attention and the words of the longest span must be at least 1.")
        if self.shape in ("structured", "aspect") and self.alignment != "additive":
            raise AssayError(f"The attention of the shape {self.shape} is additive; leave --alignment out.")
        parts = {"cnn": 2, "transformer": 4}.get(self.encoder, 1)  # twice the size goes to four widths, or heads
        if self.hidden % parts:
            raise AssayError(
                f"hidden, with the {self.encoder} encoder, must be divisible by {parts}, got {self.hidden}."
            )
        if not all(0 <= rate < 1 for rate in (self.dropout_words, self.dropout_sentences, self.dropout_decoder)):
            raise AssayError("Dropout rates must be from 0 to below 1.")
        if self.markers and self.shape == "hierarchical":
            raise AssayError("A hierarchical model has no start and end markers; leave --markers out.")

    def __str__(self) -> str:
        names = {
            "lstm": f"BiLSTM encoder ({2 * self.hidden} wide)",
            "gru": f"BiGRU encoder ({2 * self.hidden} wide)",
            "cnn": f"CNN encoder ({2 * self.hidden} wide)",
            "conv": f"convolutions of widths 3 and 5 ({2 * self.hidden} wide)",
            "average": f"Average encoder ({2 * self.hidden} wide)",
            "none": "no encoder",
            "transformer": f"Transformer encoder ({2 * self.hidden} wide)",
        }
        over = {
            "flat": f"{self.alignment} attention",
            "hierarchical": f"{self.alignment} attention over words, then over sentences",
            "paired": f"{self.alignment} attention given the question",
            "structured": f"{self.rows} rows of attention",
            "spans": f"{self.alignment} attention over spans of up to {self.longest_span} words",
            "aspect": "attention given the aspect",
        }
        below = f"{names[self.encoder]} over {self.vectors} {self.embedding}-d embeddings"
        parts = [below, over[self.shape], "linear decoder"]
        if self.concat:
            parts.insert(1, "each embedding beside its encoding")
        if self.projection != "softmax":
            parts.insert(-1, f"{self.projection} weights")
        if self.inner != "softmax":
            parts.insert(1, f"{self.inner} self-attention")
        return ", ".join(parts)


@dataclass(frozen=True)
class Training:
    """The defaults are those of Jain and Wallace (2019), with early stopping and no regulariser."""

    epochs: int = 20
    patience: int = 3  # epochs without a better dev score before stopping
    batch_size: int = 32
    learning_rate: float = 1e-3
    decay: float = 1e-5  # L2, on everything but the embeddings
    decay_embeddings: bool = False  # on these, too
    clip: float | None = 5.0  # largest norm of a gradient
    balanced: bool = True  # weigh classes by the inverse of their frequency
    seed: int = 0
    tying: float = 0.0  # δ: states are drawn to the embeddings of their words
    mlm: float = 0.0  # η: states must tell which words were masked
    conicity: float = 0.0  # states are driven away from their common direction
    diversity: float = 0.0  # states are driven away from one another
    penalty: float = 1.0  # of networks that have one: that of rows of attention that are alike, or of many spans
    avoid: tuple[str, ...] = ()  # words that attention is kept away from
    deceive: float = 0.0  # λ: how strongly

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Training:
        """The options from their stored form; those that did not exist then have their defaults."""
        return cls(**{**stored, "avoid": tuple(stored.get("avoid", ()))})  # JSON knows lists only

    def __post_init__(self) -> None:
        if min(self.epochs, self.patience, self.batch_size) < 1:
            raise AssayError("Epochs, patience and batch size must be at least 1.")
        if not 0 < self.learning_rate < math.inf:
            raise AssayError(f"The learning rate must be above 0, got {self.learning_rate:g}.")
        if not 0 <= self.seed < 2**63:  # torch takes no larger one
            raise AssayError(f"The seed must be from 0 to below 2^63, got {self.seed}.")
        for name in ("tying", "mlm", "conicity", "diversity", "penalty", "deceive"):
            strength = getattr(self, name)
            if not 0 <= strength < math.inf:
                raise AssayError(f"The strength of {name!r} must be at least 0, got {strength:g}.")
        if (self.deceive > 0) != bool(self.avoid):
            raise AssayError("To train attention to deceive, name the words to --avoid and how strongly to --deceive.")
