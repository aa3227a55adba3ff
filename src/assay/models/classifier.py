"""The classifier of the attention papers: embedding, encoder, attention over all words, linear decoder."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from assay.models.architecture import Architecture
from assay.models.attention import ALIGNMENTS, Additive, Dot
from assay.models.network import WordNetwork
from assay.types import Batch


class Classifier(WordNetwork):
    """A single-text classifier with attention over words; Serrano and Smith (2019) call it a flat attention network."""

    cascade: tuple[str, ...] = ("decoder", "alignment", "encoder", "embedding")

    alignment: Additive | Dot

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__(architecture, words)
        self.encoder = self.reader(architecture.embedding)
        size = self.width(self.encoder)
        self.alignment = ALIGNMENTS[architecture.alignment](size, architecture.alignment_size)
        self.decoder = nn.Linear(size, classes)

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B T M"]:
        return self.encoded(self.encoder, self.dropped(x, self.architecture.dropout_words), batch.mask, below)

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return self.project(self.alignment(states), batch.mask)
