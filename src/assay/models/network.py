"""The base class of all networks here: embeddings, an encoder, one attention that pools, and a linear decoder."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.text import END, PAD, SPECIAL, START, UNKNOWN
from assay.errors import unknown
from assay.models.architecture import PAIRS, Architecture
from assay.models.encoders import Encoder, Transformer, encoder
from assay.models.projections import projection
from assay.models.textmodel import TextModel
from assay.types import BLANKS, Batch, Edit, Output, attended


class Network(TextModel):
    """A pooled model: logits are linear in the attention-weighted mean of its hidden states."""

    stacked: ClassVar[bool] = True
    """Whether layers of self-attention, where the encoder has any, are over the words of a whole text."""

    embedding: nn.Embedding
    encoder: Encoder
    decoder: nn.Linear

    def __init__(self, architecture: Architecture, words: int) -> None:
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Embedding(words, architecture.embedding, padding_idx=0)
        self.project = projection(architecture.projection)

    @property
    def classes(self) -> int:
        return self.decoder.out_features

    @property
    def paired(self) -> bool:
        return self.architecture.shape in PAIRS

    @property
    def facts(self) -> dict[str, str]:
        items = "sentences" if self.architecture.shape == "hierarchical" else "words"
        return {"description": str(self.architecture), "shape": self.architecture.shape, "items": items}

    def part(self, name: str) -> nn.Module:
        part: nn.Module = getattr(self, name)
        return part

    @abstractmethod
    def items(self, batch: Batch) -> Int[Tensor, "B T"]:
        """The index of the attended item of each token: the token itself, or its sentence."""

    @abstractmethod
    def within(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T"]:
        """The weight of each token within its item: 1, or its attention within its sentence; 0 on padding."""

    @abstractmethod
    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B N M"]:
        """One hidden state per item; `below` is filled with the attention of the layers beneath, if any."""

    @abstractmethod
    def attend(self, states: Float[Tensor, "B N M"], batch: Batch) -> Float[Tensor, "B N"]:
        """The weights of the attention that pools."""

    @abstractmethod
    def encodings(
        self, x: Float[Tensor, "B T D"], batch: Batch, states: Float[Tensor, "B N M"]
    ) -> Float[Tensor, "B T H"]:
        """The encoder's hidden state of each word alone; `states` are those of the same text."""

    @property
    def words_encoder(self) -> Encoder:
        """The encoder of words."""
        return self.encoder

    def penalty(self, states: Float[Tensor, "B N M"], batch: Batch) -> Float[Tensor, " B"] | None:
        """A structural penalty on attention, added to the training loss, if the network defines one."""
        return None

    def reader(self, size: int) -> Encoder:
        """A new encoder for vectors of that size."""
        parts = self.architecture
        return encoder(parts.encoder, size, parts.hidden, projection(parts.inner))

    def width(self, encoder: Encoder) -> int:
        """The size of a word's vector above its encoder."""
        return encoder.size + self.architecture.embedding * self.architecture.concat

    def beside(
        self, encoded: Float[Tensor, "B T H"], x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T M"]:
        """The vector of each word above its encoder: with `concat`, [h; e] (Tutek and Šnajder, 2020)."""
        return torch.cat([encoded, x * mask[..., None]], dim=-1) if self.architecture.concat else encoded

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def decode(self, states: Float[Tensor, "B N M"], weights: Float[Tensor, "B N"]) -> Float[Tensor, "B C"]:
        pooled = self.dropped(self.pooled(states, weights), self.architecture.dropout_decoder)
        logits: Tensor = self.decoder(pooled)
        return logits

    def pooled(self, states: Float[Tensor, "B N M"], weights: Float[Tensor, "B N"]) -> Float[Tensor, "B P"]:
        """The decoder's input, linear in the weights; further entries may follow the pooled state."""
        return (weights[:, None] @ states[..., : self.decoder.in_features]).squeeze(1)

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        below: list[Tensor] | None = None if self.layers else []  # of a stack only where it is asked for: it is slower
        return self._read(x, batch, edit, below)

    @property
    def layers(self) -> int:
        return len(self.encoder.blocks) if self.stacked and isinstance(self.encoder, Transformer) else 0

    def layered(self, x: Float[Tensor, "B T D"], batch: Batch) -> Output:
        """As the call, with the attention of each encoder layer before that which pools."""
        return self._read(x, batch, None, [])

    def token_index(self, batch: Batch) -> Int[Tensor, "B S"]:
        tokens = torch.arange(batch.ids.shape[1], device=batch.ids.device).where(batch.mask, -1)
        return F.pad(tokens, (1, 1), value=-1) if self.architecture.markers else tokens

    def _read(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None, below: list[Tensor] | None) -> Output:
        states = self.states(x, batch, below)
        weights = self.attend(states, batch)
        if edit is not None:
            weights = edit(weights, attended(self, batch))
        return self.counted(Output(self.decode(states, weights), (*(below or ()), weights)))

    @property
    def vectors(self) -> Float[Tensor, "V D"]:
        return self.embedding.weight

    @property
    def ordinary(self) -> int:
        return len(SPECIAL)

    def blank(self, name: str) -> Float[Tensor, " D"]:
        """The baseline embedding of that name; the unknown word serves as the mask."""
        return blank_of(self.vectors, name)

    def dropped(self, x: Tensor, rate: float) -> Tensor:
        """Dropout."""
        return F.dropout(x, rate) if self.training and rate else x

    def surrounded(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T+2 D"], Bool[Tensor, "B T+2"]]:
        """The embeddings with start and end markers around each text, and their mask."""
        start, end = (self.embedding.weight[SPECIAL.index(name)] for name in (START, END))
        rows, tokens, size = x.shape
        positions = torch.arange(tokens + 2, device=x.device)
        last = mask.sum(-1, keepdim=True) + 1
        longer = torch.cat([start.expand(rows, 1, size), x, x.new_zeros(rows, 1, size)], dim=1)
        return torch.where((positions == last)[..., None], end, longer), positions <= last

    def encoded(
        self, encoder: Encoder, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"], below: list[Tensor] | None
    ) -> Float[Tensor, "B T M"]:
        """The hidden states of a text, with markers around it where the architecture has them."""
        seen = {} if below is None or not isinstance(encoder, Transformer) else {"weights": below}
        states: Tensor
        if self.architecture.markers:
            states = encoder(*self.surrounded(x, mask), **seen)[:, 1:-1] * mask[..., None]
        else:
            states = encoder(x, mask, **seen)
        return self.beside(states, x, mask)


def blank_of(vectors: Float[Tensor, "V D"], name: str) -> Float[Tensor, " D"]:
    """The baseline embedding of that name from an embedding table."""
    if name not in BLANKS:
        raise unknown("blank", name, BLANKS)
    table = vectors.detach()
    if name == "mean":
        return table[len(SPECIAL) :].mean(0)
    return torch.zeros_like(table[0]) if name == "zero" else table[SPECIAL.index({"pad": PAD}.get(name, UNKNOWN))]


class WordNetwork(Network):
    """A network whose pooling attention is over words."""

    def items(self, batch: Batch) -> Int[Tensor, "B T"]:
        return torch.arange(batch.ids.shape[1], device=batch.ids.device).expand_as(batch.ids)

    def within(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T"]:
        return batch.mask.to(x.dtype)

    def encodings(
        self, x: Float[Tensor, "B T D"], batch: Batch, states: Float[Tensor, "B T M"]
    ) -> Float[Tensor, "B T H"]:
        return states[..., : self.encoder.size]
