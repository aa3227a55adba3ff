"""Networks trained here: embeddings, an encoder, one attention that pools words, and a linear decoder."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.text import END, PAD, SPECIAL, START, UNKNOWN
from assay.errors import AssayError, unknown
from assay.models.config import PAIRS, Architecture
from assay.models.encoders import ALIGNMENTS, Additive, Dot, Encoder, Product, Recurrent, Transformer, encoder
from assay.models.projections import projection
from assay.models.textmodel import TextModel, WordItems
from assay.types import (
    BLANKS,
    Batch,
    Edit,
    Embeddings,
    ItemStates,
    ItemWeights,
    Logits,
    Mask,
    Output,
    PositionIds,
    TextScores,
    TokenIds,
    TokenStates,
    TokenWeights,
    Vector,
    attended,
)


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
    def items(self, batch: Batch) -> TokenIds:
        """The index of the attended item of each token: the token itself, or its sentence."""

    @abstractmethod
    def within(self, x: Embeddings, batch: Batch) -> TokenWeights:
        """The weight of each token within its item: 1, or its attention within its sentence; 0 on padding."""

    @abstractmethod
    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> ItemStates:
        """One hidden state per item; `below` is filled with the attention of the layers beneath, if any."""

    @abstractmethod
    def attend(self, states: ItemStates, batch: Batch) -> ItemWeights:
        """The weights of the attention that pools."""

    @abstractmethod
    def encodings(self, x: Embeddings, batch: Batch, states: ItemStates) -> Float[Tensor, "B T H"]:
        """The encoder's hidden state of each word alone; `states` are those of the same text."""

    @property
    def words_encoder(self) -> Encoder:
        """The encoder of words."""
        return self.encoder

    def penalty(self, states: ItemStates, batch: Batch) -> TextScores | None:
        """A structural penalty on attention, added to the training loss, if the network defines one."""
        return None

    def reader(self, size: int) -> Encoder:
        """A new encoder for vectors of that size."""
        parts = self.architecture
        return encoder(parts.encoder, size, parts.hidden, projection(parts.inner))

    def width(self, encoder: Encoder) -> int:
        """The size of a word's vector above its encoder."""
        return encoder.size + self.architecture.embedding * self.architecture.concat

    def beside(self, encoded: Float[Tensor, "B T H"], x: Embeddings, mask: Mask) -> TokenStates:
        """The vector of each word above its encoder: with `concat`, [h; e] (Tutek and Šnajder, 2020)."""
        return torch.cat([encoded, x * mask[..., None]], dim=-1) if self.architecture.concat else encoded

    def embed(self, batch: Batch) -> Embeddings:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def decode(self, states: ItemStates, weights: ItemWeights) -> Logits:
        logits: Tensor = self.decoder(self.dropped(self.pooled(states, weights), "decoder"))
        return logits

    def pooled(self, states: ItemStates, weights: ItemWeights) -> Float[Tensor, "B P"]:
        """The decoder's input, linear in the weights; further entries may follow the pooled state."""
        return (weights[:, None] @ states[..., : self.decoder.in_features]).squeeze(1)

    def forward(self, x: Embeddings, batch: Batch, edit: Edit | None = None) -> Output:
        below: list[Tensor] | None = None if self.layers else []  # of a stack only where it is asked for: it is slower
        return self._read(x, batch, edit, below)

    @property
    def layers(self) -> int:
        return len(self.encoder.blocks) if self.stacked and isinstance(self.encoder, Transformer) else 0

    def layered(self, x: Embeddings, batch: Batch) -> Output:
        """As the call, with the attention of each encoder layer before that which pools."""
        return self._read(x, batch, None, [])

    def token_index(self, batch: Batch) -> PositionIds:
        tokens = torch.arange(batch.ids.shape[1], device=batch.ids.device).where(batch.mask, -1)
        return F.pad(tokens, (1, 1), value=-1) if self.architecture.markers else tokens

    def _read(self, x: Embeddings, batch: Batch, edit: Edit | None, below: list[Tensor] | None) -> Output:
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

    def blank(self, name: str) -> Vector:
        """The baseline embedding of that name; the unknown word serves as the mask."""
        return blank_of(self.vectors, name)

    def dropped(self, x: Tensor, part: str) -> Tensor:
        """Dropout at the rate of a part: words, sentences or decoder."""
        rate = getattr(self.architecture, f"dropout_{part}")
        return F.dropout(x, rate) if self.training and rate else x

    def surrounded(self, x: Embeddings, mask: Mask) -> tuple[Float[Tensor, "B T+2 D"], Bool[Tensor, "B T+2"]]:
        """The embeddings with start and end markers around each text, and their mask."""
        start, end = (self.embedding.weight[SPECIAL.index(name)] for name in (START, END))
        rows, tokens, size = x.shape
        positions = torch.arange(tokens + 2, device=x.device)
        last = mask.sum(-1, keepdim=True) + 1
        longer = torch.cat([start.expand(rows, 1, size), x, x.new_zeros(rows, 1, size)], dim=1)
        return torch.where((positions == last)[..., None], end, longer), positions <= last

    def encoded(
        self,
        encoder: Encoder,
        x: Embeddings,
        mask: Mask,
        below: list[Tensor] | None,
        asked: Float[Tensor, "B D"] | None = None,
    ) -> TokenStates:
        """The hidden states of a text, with markers around it where the architecture has them.

        Each word is read beside the vector that is `asked` about, if there is one.
        """
        seen = {} if below is None or not isinstance(encoder, Transformer) else {"weights": below}
        around, inside = self.surrounded(x, mask) if self.architecture.markers else (x, mask)
        if asked is not None:
            around = torch.cat([around, asked[:, None].expand_as(around)], dim=-1)
        states: Tensor = encoder(around, inside, **seen)
        if self.architecture.markers:
            states = states[:, 1:-1] * mask[..., None]
        return self.beside(states, x, mask)


def blank_of(vectors: Float[Tensor, "V D"], name: str) -> Vector:
    """The baseline embedding of that name from an embedding table."""
    if name not in BLANKS:
        raise unknown("blank", name, BLANKS)
    table = vectors.detach()
    if name == "mean":
        return table[len(SPECIAL) :].mean(0)
    return torch.zeros_like(table[0]) if name == "zero" else table[SPECIAL.index({"pad": PAD}.get(name, UNKNOWN))]


class WordNetwork(WordItems, Network):
    """A network whose pooling attention is over words."""

    alignment: nn.Module

    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> TokenStates:
        return self.encoded(self.encoder, self.dropped(x, "words"), batch.mask, below)

    def attend(self, states: TokenStates, batch: Batch) -> TokenWeights:
        return self.project(self.alignment(states), batch.mask)

    def encodings(self, x: Embeddings, batch: Batch, states: TokenStates) -> Float[Tensor, "B T H"]:
        return states[..., : self.encoder.size]


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

    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> TokenStates:
        return self.matched(super().states(x, batch, below), self.query_encoding(batch), batch)

    def matched(self, encoded: Float[Tensor, "B T H"], query: Float[Tensor, "B H"], batch: Batch) -> TokenStates:
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
        x = self.dropped(self.embedding(batch.query.ids), "words")
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

    def attend(self, states: TokenStates, batch: Batch) -> TokenWeights:
        return self.project(self.alignment(states[..., : 2 * self.width(self.encoder)]), batch.mask)

    def decode(self, states: TokenStates, weights: TokenWeights) -> Logits:
        logits, barred = super().decode(states, weights), states[:, 0, self.decoder.in_features :]
        return logits + barred if barred.shape[-1] else logits


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

    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> TokenStates:
        x, asked = self.dropped(x, "words"), self.query_encoding(batch)
        encoded = self.encoded(self.encoder, x, batch.mask, below, asked)
        return torch.cat([encoded, asked[:, None].expand_as(x) * batch.mask[..., None]], dim=-1)

    def query_encoding(self, batch: Batch) -> Float[Tensor, "B D"]:
        """The mean embedding of the aspect's words."""
        if batch.query is None:
            raise AssayError("This model reads a text and an aspect; give it both (--query food).")
        mask = batch.query.mask[..., None]
        embedded: Tensor = self.dropped(self.embedding(batch.query.ids), "words") * mask
        return embedded.sum(1) / mask.sum(1).clamp(min=1)
