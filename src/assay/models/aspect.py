"""Attention by aspect: a classifier whose attention depends on the aspect that is asked about (Wang et al., 2016)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.errors import AssayError
from assay.models.architecture import Architecture
from assay.models.attention import Additive
from assay.models.encoders import Transformer
from assay.models.network import WordNetwork
from assay.types import Batch


class Aspect(WordNetwork):
    """The encoder reads each word beside the aspect, [e_t; v], and so does the attention, [h_t; v] (Wang et al., 2016).

    The aspect v is the mean embedding of the words that name it, the query of a pair. The state of a word is [h_t; v],
    of which the decoder reads h_t.
    """

    # differs from Wang et al. (2016): a linear decoder reads the pooled state alone, not a tanh of it and of the last
    # state, so that any intervention on the weights is exact; within the score's tanh, their parts of h and v stand
    # beside each other, where that of v is the same for all words and makes no difference, and ours are added

    cascade: tuple[str, ...] = ("decoder", "alignment", "encoder", "embedding")

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__(architecture, words)
        self.encoder = self.reader(2 * architecture.embedding)
        size = self.width(self.encoder)
        self.alignment = Additive(size + architecture.embedding, architecture.alignment_size)
        self.decoder = nn.Linear(size, classes)

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B T M"]:
        x, asked = self.dropped(x, self.architecture.dropout_words), self.query_encoding(batch)[:, None]
        around, mask = self.surrounded(x, batch.mask) if self.architecture.markers else (x, batch.mask)
        joined = torch.cat([around, asked.expand_as(around)], dim=-1)
        seen = {} if below is None or not isinstance(self.encoder, Transformer) else {"weights": below}
        encoded: Tensor = self.encoder(joined, mask, **seen)
        if self.architecture.markers:
            encoded = encoded[:, 1:-1] * batch.mask[..., None]
        encoded = self.beside(encoded, x, batch.mask)
        return torch.cat([encoded, asked.expand_as(x) * batch.mask[..., None]], dim=-1)

    def query_encoding(self, batch: Batch) -> Float[Tensor, "B D"]:
        """The mean embedding of the aspect's words."""
        if batch.query is None:
            raise AssayError("This model reads a text and an aspect; give it both (--query food).")
        mask = batch.query.mask[..., None]
        embedded: Tensor = self.dropped(self.embedding(batch.query.ids), self.architecture.dropout_words) * mask
        return embedded.sum(1) / mask.sum(1).clamp(min=1)

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return self.project(self.alignment(states), batch.mask)
