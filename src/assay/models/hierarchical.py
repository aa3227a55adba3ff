"""The hierarchical attention network: attention over the words of each sentence, then over sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.models.architecture import Architecture
from assay.models.attention import ALIGNMENTS, Additive, Dot
from assay.models.encoders import Encoder
from assay.models.network import Network
from assay.types import Batch, attended

BANDS = {"cpu": (16, 2), "cuda": (64, 8)}
"""Sentences up to the first length are read together, and so are those up to so many times as long, and so on. A GPU
takes as long as there are positions to read, so it has fewer bands."""


@dataclass(frozen=True)
class Layout:
    """The layout of a batch as R sentence rows of at most W words."""

    example: Int[Tensor, " K"]  # of each real token: its example, ...
    token: Int[Tensor, " K"]  # ... its position in the text, ...
    row: Int[Tensor, " K"]  # ... the row of its sentence, ...
    position: Int[Tensor, " K"]  # ... and its position there
    mask: Bool[Tensor, "R W"]

    @classmethod
    def of(cls, batch: Batch) -> Layout:
        """The rows in the order of the texts, each a sentence without padding."""
        example, token = batch.mask.nonzero(as_tuple=True)
        first = _firsts(batch)[example, token]
        row = first.long().cumsum(0) - 1
        count = torch.bincount(row)
        position = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[row]
        longest = int(count.max()) if len(count) else 0
        return cls(example, token, row, position, torch.arange(longest, device=row.device) < count[:, None])

    def bands(self) -> Iterator[tuple[Int[Tensor, " r"], int]]:
        """Groups of rows of like length, and the longest of each: few sentences are as long as the longest."""
        lengths = self.mask.sum(-1)
        short, times = BANDS["cpu" if lengths.device.type == "cpu" else "cuda"]
        band = ((lengths / short).clamp(min=1).log() / math.log(times)).ceil()
        for number in torch.unique(band).tolist():
            chosen = (band == number).nonzero()[:, 0]
            yield chosen, int(lengths[chosen].max())

    def rows(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "R W D"]:
        """Token values rearranged to one sentence per row."""
        rows = x.new_zeros(*self.mask.shape, x.shape[-1])
        return rows.index_put((self.row, self.position), x[self.example, self.token])


def _firsts(batch: Batch) -> Bool[Tensor, "B T"]:
    """Whether a token starts a sentence; a text without sentences is one sentence."""
    numbers = torch.zeros_like(batch.ids) if batch.sentences is None else batch.sentences
    return torch.cat([torch.ones_like(batch.mask[:, :1]), numbers[:, 1:] != numbers[:, :-1]], dim=1) & batch.mask


class Hierarchical(Network):
    """The hierarchical attention network (Yang et al., 2016), as in Serrano and Smith (2019); it pools sentences.

    Sentences that have lost all their words are not there; the others move together.
    """

    cascade: tuple[str, ...] = (
        "decoder",
        "alignment",
        "encoder",
        "word_alignment",
        "word_encoder",
        "embedding",
    )
    stacked: ClassVar[bool] = False

    alignment: Additive | Dot

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__(architecture, words)
        alignment = ALIGNMENTS[architecture.alignment]
        self.word_encoder = self.reader(architecture.embedding)
        words_size = self.width(self.word_encoder)
        self.word_alignment = alignment(words_size, architecture.alignment_size)
        self.encoder = self.reader(words_size)
        self.alignment = alignment(self.encoder.size, architecture.alignment_size)
        self.decoder = nn.Linear(self.encoder.size, classes)

    @property
    def words_encoder(self) -> Encoder:
        return self.word_encoder

    def items(self, batch: Batch) -> Int[Tensor, "B T"]:
        return (_firsts(batch).long().cumsum(-1) - 1).clamp(min=0)

    def within(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T"]:
        layout = Layout.of(batch)
        return self._apart(self._pooled(x, layout)[1], layout, batch)

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B S M"]:
        layout, real = Layout.of(batch), attended(self, batch)
        means, weights = self._pooled(x, layout)
        if below is not None:
            below.append(self._apart(weights, layout, batch))
        sentences = means.new_zeros(*real.shape, means.shape[-1]).masked_scatter(real[..., None], means)
        encoded: Tensor = self.encoder(self.dropped(sentences, self.architecture.dropout_sentences), real)
        return encoded

    def attend(self, states: Float[Tensor, "B S M"], batch: Batch) -> Float[Tensor, "B S"]:
        return self.project(self.alignment(states), attended(self, batch))

    def encodings(
        self, x: Float[Tensor, "B T D"], batch: Batch, states: Float[Tensor, "B S M"]
    ) -> Float[Tensor, "B T H"]:
        layout = Layout.of(batch)
        rows = self.dropped(layout.rows(x), self.architecture.dropout_words)
        found = rows.new_zeros(*rows.shape[:2], self.word_encoder.size)
        for band, longest in layout.bands():
            read = self.word_encoder(rows[band, :longest], layout.mask[band, :longest])
            found = found.index_put((band,), F.pad(read, (0, 0, 0, rows.shape[1] - longest)))
        there = found[layout.row, layout.position]
        return found.new_zeros(*batch.ids.shape, found.shape[-1]).index_put((layout.example, layout.token), there)

    def _pooled(self, x: Float[Tensor, "B T D"], layout: Layout) -> tuple[Float[Tensor, "R M"], Float[Tensor, "R W"]]:
        """The attention-weighted mean of each sentence's hidden states, and that attention."""
        rows = self.dropped(layout.rows(x), self.architecture.dropout_words)
        means, weights = rows.new_zeros(len(rows), self.width(self.word_encoder)), rows.new_zeros(rows.shape[:2])
        for band, longest in layout.bands():
            mask = layout.mask[band, :longest]
            states = self.beside(self.word_encoder(rows[band, :longest], mask), rows[band, :longest], mask)
            shares = self.project(self.word_alignment(states), mask)
            means = means.index_put((band,), (shares[:, None] @ states).squeeze(1))
            weights = weights.index_put((band,), F.pad(shares, (0, rows.shape[1] - shares.shape[1])))
        return means, weights

    def _apart(self, weights: Float[Tensor, "R W"], layout: Layout, batch: Batch) -> Float[Tensor, "B T"]:
        """The attention to the words of sentences, rearranged to one text per row."""
        there = weights[layout.row, layout.position]
        return weights.new_zeros(batch.ids.shape).index_put((layout.example, layout.token), there)
