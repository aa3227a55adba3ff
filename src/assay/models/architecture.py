"""What a classifier is made of."""

from __future__ import annotations

from dataclasses import dataclass

from assay.errors import AssayError, unknown
from assay.models.attention import ALIGNMENTS
from assay.models.encoders import ENCODERS

SHAPES = {
    "flat": "one attention over all words",
    "hierarchical": "attention over the words of each sentence, then over sentences",
    "paired": "attention over the words, given a question or hypothesis",
}


@dataclass(frozen=True)
class Architecture:
    """The parts and their sizes; the sizes are those of Jain and Wallace (2019)."""

    encoder: str = "lstm"
    alignment: str = "additive"
    embedding: int = 300
    hidden: int = 128  # states have twice this size, but without an encoder
    alignment_size: int = 128
    vectors: str = "random"  # or "glove": 50 dimensions
    frozen: bool = False  # embeddings are not trained
    markers: bool = False  # start and end are encoded but never attended
    shape: str = "flat"
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
        if min(self.embedding, self.hidden, self.alignment_size) < 1:
            raise AssayError("Sizes of embeddings and states are whole numbers from 1.")
        if self.encoder in ("cnn", "transformer") and self.hidden % 4:
            raise AssayError(f"The {self.encoder} encoder takes a hidden size that 4 divides, not {self.hidden}.")
        if not all(0 <= rate < 1 for rate in (self.dropout_words, self.dropout_sentences, self.dropout_decoder)):
            raise AssayError("A dropout is a share from 0 to below 1.")
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
        }
        below = f"{names[self.encoder]} over {self.vectors} {self.embedding}-d embeddings"
        return f"{below}, {over[self.shape]}, linear decoder"
