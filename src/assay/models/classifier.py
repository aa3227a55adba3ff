"""The classifier of the attention papers: embedding, encoder, attention, linear decoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay import costs
from assay.data.text import END, PAD, SPECIAL, START, UNKNOWN
from assay.errors import AssayError, unknown
from assay.models.attention import ALIGNMENTS, softmax
from assay.models.encoders import ENCODERS, Transformer
from assay.types import BLANKS, Batch, Edit, Output


@dataclass(frozen=True)
class Architecture:
    """What a classifier is made of; the sizes are those of Jain and Wallace (2019)."""

    encoder: str = "lstm"
    alignment: str = "additive"
    embedding: int = 300
    hidden: int = 128  # states have twice this size
    alignment_size: int = 128
    vectors: str = "random"  # or "glove": 50 dimensions
    frozen: bool = False  # embeddings are not trained
    markers: bool = False  # start and end are encoded but never attended

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("encoder", self.encoder, ENCODERS),
            ("alignment", self.alignment, ALIGNMENTS),
            ("vectors", self.vectors, ("random", "glove")),
        ):
            if name not in known:
                raise unknown(kind, name, known)
        if min(self.embedding, self.hidden, self.alignment_size) < 1:
            raise AssayError("Sizes of embeddings and states are whole numbers from 1.")
        if self.encoder in ("cnn", "transformer") and self.hidden % 4:
            raise AssayError(f"The {self.encoder} encoder takes a hidden size that 4 divides, not {self.hidden}.")

    def __str__(self) -> str:
        names = {
            "lstm": "BiLSTM",
            "gru": "BiGRU",
            "cnn": "CNN",
            "average": "Average",
            "transformer": "Transformer",
        }
        below = (
            f"{names[self.encoder]} encoder ({2 * self.hidden} wide) over {self.vectors} {self.embedding}-d embeddings"
        )
        return f"{below}, {self.alignment} attention, linear decoder"


class Classifier(nn.Module):
    """A pooled model: its logits are linear in the attention-weighted mean of its states."""

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__()
        self.architecture = architecture
        self.embedding = nn.Embedding(words, architecture.embedding, padding_idx=0)
        self.encoder = ENCODERS[architecture.encoder](architecture.embedding, architecture.hidden)
        self.alignment = ALIGNMENTS[architecture.alignment](self.encoder.size, architecture.alignment_size)
        self.decoder = nn.Linear(self.encoder.size, classes)

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        embedded: Tensor = self.embedding(batch.ids)
        return embedded

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B T M"]:
        """One state a token; `below` is filled with the encoder's own attention, where it has any."""
        seen = {} if below is None or not self.layers else {"weights": below}
        states: Tensor
        if self.architecture.markers:
            states = self.encoder(*self.surrounded(x, batch.mask), **seen)[:, 1:-1] * batch.mask[..., None]
        else:
            states = self.encoder(x, batch.mask, **seen)
        return states

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return softmax(self.alignment(states), batch.mask)

    def decode(self, states: Float[Tensor, "B T M"], weights: Float[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        logits: Tensor = self.decoder((weights[:, None] @ states).squeeze(1))
        return logits

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        states = self.states(x, batch)
        weights = self.attend(states, batch)
        if edit is not None:
            weights = edit(weights, batch.mask)
        return self._counted(Output(self.decode(states, weights), (weights,)))

    @property
    def layers(self) -> int:
        return len(self.encoder.blocks) if isinstance(self.encoder, Transformer) else 0

    def layered(self, x: Float[Tensor, "B T D"], batch: Batch) -> Output:
        """As the call, with the weights of each layer of the encoder before those that pool."""
        below: list[Tensor] = []
        states = self.states(x, batch, below)
        weights = self.attend(states, batch)
        return self._counted(Output(self.decode(states, weights), (*below, weights)))

    @property
    def vectors(self) -> Float[Tensor, "V D"]:
        return self.embedding.weight

    @property
    def ordinary(self) -> int:
        return len(SPECIAL)

    def blank(self, name: str) -> Float[Tensor, " D"]:
        """An embedding that stands for "nothing here"; the unknown word serves as the mask."""
        if name not in BLANKS:
            raise unknown("blank", name, BLANKS)
        table = self.vectors.detach()
        if name == "mean":
            return table[self.ordinary :].mean(0)
        return torch.zeros_like(table[0]) if name == "zero" else table[SPECIAL.index({"pad": PAD}.get(name, UNKNOWN))]

    def _counted(self, output: Output) -> Output:
        """The output; where somebody counts passes, this one is counted, and so is a way back through it."""
        if costs.measuring():
            rows = len(output.logits)
            costs.add(forward=rows)
            if output.logits.requires_grad:
                output.logits.register_hook(lambda slope: costs.add(backward=rows))  # type: ignore[no-untyped-call]
        return output

    def surrounded(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T+2 D"], Bool[Tensor, "B T+2"]]:
        """The embeddings with the start marker before and the end marker after each text, and their mask."""
        start, end = (self.embedding.weight[SPECIAL.index(name)] for name in (START, END))
        rows, tokens, size = x.shape
        places = torch.arange(tokens + 2, device=x.device)
        last = mask.sum(-1, keepdim=True) + 1
        longer = torch.cat([start.expand(rows, 1, size), x, x.new_zeros(rows, 1, size)], dim=1)
        return torch.where((places == last)[..., None], end, longer), places <= last
