"""The classifier of text pairs: attention over the words of a text, conditioned on a question or a hypothesis."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.errors import AssayError
from assay.models.architecture import Architecture
from assay.models.attention import Additive, Product
from assay.models.encoders import Recurrent
from assay.models.network import WordNetwork
from assay.types import Batch

BARRED = -1e4  # added to the logit of a class that cannot be right: no probability is left of it in any precision


class Paired(WordNetwork):
    """Attention to the words of a text given a query (Jain and Wallace, 2019, section 2).

    The state of a word is [h; q; h ⊙ q]: its encoding, that of the query, and their product. All of it is pooled, so
    the logits are W c + U q + V (c ⊙ q) + b for the mean encoding c, and linear in the weights. Classes that are no
    candidates are barred in the states as well.
    """

    # differs from Jain and Wallace (2019): their decoder reads c alone; docs/decisions/0009

    cascade: tuple[str, ...] = ("decoder", "alignment", "encoder", "query_encoder", "embedding")

    alignment: Additive | Product

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__(architecture, words)
        self.encoder, self.query_encoder = (self.reader(architecture.embedding) for _ in range(2))
        size = self.width(self.encoder)
        additive = architecture.alignment == "additive"
        self.alignment = Additive(2 * size, architecture.alignment_size) if additive else Product()
        self.decoder = nn.Linear(3 * size, classes)

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B T M"]:
        encoded = self.encoded(self.encoder, self.dropped(x, self.architecture.dropout_words), batch.mask, below)
        return self.matched(encoded, self.query_encoding(batch), batch)

    def matched(
        self, encoded: Float[Tensor, "B T H"], query: Float[Tensor, "B H"], batch: Batch
    ) -> Float[Tensor, "B T M"]:
        """The hidden states of words, combined with the query's encoding."""
        asked = query[:, None].expand_as(encoded)
        states = torch.cat([encoded, asked, encoded * asked], dim=-1) * batch.mask[..., None]
        if batch.candidates is None:
            return states
        barred = (~batch.candidates).to(encoded.dtype) * BARRED  # on padding too: it is all that an empty text has
        return torch.cat([states, barred[:, None].expand(*encoded.shape[:2], -1)], dim=-1)

    def query_encoding(self, batch: Batch) -> Float[Tensor, "B H"]:
        """The query's encoding: the last hidden state of each direction of a recurrence, else the mean over words."""
        if batch.query is None:
            raise AssayError("This model reads pairs; give it a text and a question or hypothesis (--query).")
        mask = batch.query.mask
        x = self.dropped(self.embedding(batch.query.ids), self.architecture.dropout_words)
        states = self.encoded(self.query_encoder, x, mask, None)
        count = mask.sum(-1, keepdim=True).clamp(min=1)
        if not isinstance(self.query_encoder, Recurrent):
            mean: Tensor = states.sum(1) / count
            return mean
        states, words = states[..., : self.query_encoder.size], states[..., self.query_encoder.size :]
        last = (mask.sum(-1) - 1).clamp(min=0)
        ahead, behind = states.chunk(2, dim=-1)
        ends = ahead[torch.arange(len(last), device=last.device), last], behind[:, 0]
        return torch.cat([*ends, words.sum(1) / count], dim=-1)

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return self.project(self.alignment(states[..., : 2 * self.width(self.encoder)]), batch.mask)

    def decode(self, states: Float[Tensor, "B T M"], weights: Float[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        logits, barred = super().decode(states, weights), states[:, 0, self.decoder.in_features :]
        return logits + barred if barred.shape[-1] else logits
