"""Networks that pool sentences, several means or spans; and the construction of a network of any shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.errors import AssayError, reason
from assay.models.config import Architecture
from assay.models.encoders import ALIGNMENTS, Additive, Dot, Encoder, mixed
from assay.models.network import Aspect, Classifier, Network, Paired, WordNetwork
from assay.types import Batch, Embeddings, Mask, TextScores, TokenIds, TokenStates, TokenWeights, attended

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

    def rows(self, x: Embeddings) -> Float[Tensor, "R W D"]:
        """Token values rearranged to one sentence per row."""
        rows = x.new_zeros(*self.mask.shape, x.shape[-1])
        return rows.index_put((self.row, self.position), x[self.example, self.token])


def _firsts(batch: Batch) -> Mask:
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

    def items(self, batch: Batch) -> TokenIds:
        return (_firsts(batch).long().cumsum(-1) - 1).clamp(min=0)

    def within(self, x: Embeddings, batch: Batch) -> TokenWeights:
        layout = Layout.of(batch)
        return self._apart(self._pooled(x, layout)[1], layout, batch)

    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> Float[Tensor, "B S M"]:
        layout, real = Layout.of(batch), attended(self, batch)
        means, weights = self._pooled(x, layout)
        if below is not None:
            below.append(self._apart(weights, layout, batch))
        sentences = means.new_zeros(*real.shape, means.shape[-1]).masked_scatter(real[..., None], means)
        encoded: Tensor = self.encoder(self.dropped(sentences, "sentences"), real)
        return encoded

    def attend(self, states: Float[Tensor, "B S M"], batch: Batch) -> Float[Tensor, "B S"]:
        return self.project(self.alignment(states), attended(self, batch))

    def encodings(self, x: Embeddings, batch: Batch, states: Float[Tensor, "B S M"]) -> Float[Tensor, "B T H"]:
        layout = Layout.of(batch)
        rows = self.dropped(layout.rows(x), "words")
        found = rows.new_zeros(*rows.shape[:2], self.word_encoder.size)
        for band, longest in layout.bands():
            read = self.word_encoder(rows[band, :longest], layout.mask[band, :longest])
            found = found.index_put((band,), F.pad(read, (0, 0, 0, rows.shape[1] - longest)))
        there = found[layout.row, layout.position]
        return found.new_zeros(*batch.ids.shape, found.shape[-1]).index_put((layout.example, layout.token), there)

    def _pooled(self, x: Embeddings, layout: Layout) -> tuple[Float[Tensor, "R M"], Float[Tensor, "R W"]]:
        """The attention-weighted mean of each sentence's hidden states, and that attention."""
        rows = self.dropped(layout.rows(x), "words")
        means, weights = rows.new_zeros(len(rows), self.width(self.word_encoder)), rows.new_zeros(rows.shape[:2])
        for band, longest in layout.bands():
            mask = layout.mask[band, :longest]
            states = self.beside(self.word_encoder(rows[band, :longest], mask), rows[band, :longest], mask)
            shares = self.project(self.word_alignment(states), mask)
            means = means.index_put((band,), (shares[:, None] @ states).squeeze(1))
            weights = weights.index_put((band,), F.pad(shares, (0, rows.shape[1] - shares.shape[1])))
        return means, weights

    def _apart(self, weights: Float[Tensor, "R W"], layout: Layout, batch: Batch) -> TokenWeights:
        """The attention to the words of sentences, rearranged to one text per row."""
        there = weights[layout.row, layout.position]
        return weights.new_zeros(batch.ids.shape).index_put((layout.example, layout.token), there)


class Rows(nn.Module):
    """W₂ tanh(W₁ h): one score per attention row (Lin et al., 2017, equation 6)."""

    def __init__(self, size: int, hidden: int, rows: int) -> None:
        super().__init__()
        self.project = nn.Linear(size, hidden, bias=False)
        self.score = nn.Linear(hidden, rows, bias=False)

    def forward(self, states: Float[Tensor, "*B T M"]) -> Float[Tensor, "*B T R"]:
        scores: Tensor = self.score(self.project(states).tanh())
        return scores


class Structured(WordNetwork):
    """A linear decoder over M = A H, where each of the R rows of A is an attention (Lin et al., 2017).

    The weight of a word is the mean of its weights in all rows, ᾱ_t. The state of a word is [h_t; A_1t … A_Rt]; the
    decoder reads of it A_rt / ᾱ_t · h_t, one row r after the other, so that with ᾱ it pools just M. When ᾱ is changed,
    the mix of rows within each word is kept; a word that no row attends to has equal rows.
    """

    # differs from Lin et al. (2017): a linear decoder in place of a hidden layer with ReLU, so that any intervention on
    # the weights is exact; the mean over rows, where they show the normalised sum, which is the same

    cascade: tuple[str, ...] = ("decoder", "alignment", "encoder", "embedding")

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__(architecture, words)
        self.encoder = self.reader(architecture.embedding)
        size = self.width(self.encoder)
        self.alignment = Rows(size, architecture.alignment_size, architecture.rows)
        self.decoder = nn.Linear(architecture.rows * size, classes)

    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> TokenStates:
        encoded = super().states(x, batch, below)
        scores = self.alignment(encoded).mT
        rows = self.project(scores, batch.mask[:, None].expand_as(scores))
        return torch.cat([encoded, rows.mT], dim=-1)

    def rows(self, states: TokenStates) -> Float[Tensor, "B R T"]:
        """The attention matrix A of each text, one distribution per row."""
        return states[..., -self.architecture.rows :].mT

    def attend(self, states: TokenStates, batch: Batch) -> TokenWeights:
        return self.rows(states).mean(1)

    def pooled(self, states: TokenStates, weights: TokenWeights) -> Float[Tensor, "B P"]:
        encoded, rows = states.tensor_split((-self.architecture.rows,), dim=-1)
        mix = mixed(rows, rows.mean(-1, keepdim=True), torch.ones_like(rows))
        return ((mix * weights[..., None]).mT @ encoded).flatten(1)

    def penalty(self, states: TokenStates, batch: Batch) -> TextScores:
        """‖A Aᵀ − I‖²_F: small where the rows are concentrated and differ from each other."""
        rows = self.rows(states)
        alike = rows @ rows.mT - torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
        return alike.square().sum((1, 2))


class Composition(nn.Module):
    """Span embeddings tanh(W₁ h_i + W₂ h_j + W₃ (h_i − h_j) + W₄ (h_i ⊙ h_j)) of their ends (Sun et al., 2020)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.start, self.end, self.apart, self.product = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, encoded: TokenStates, longest: int) -> Float[Tensor, "B T L M"]:
        """One vector per span length from 1 and start position; spans may run beyond the text."""
        first, last = encoded[:, :, None], _ahead(encoded, longest)
        start, end, apart = self.start(encoded), self.end(encoded), self.apart(encoded)
        ends = (start + apart)[:, :, None] + _ahead(end - apart, longest)
        composed: Tensor = (ends + self.product(first * last)).tanh()
        return composed


class Spans(WordNetwork):
    """A linear decoder over the mean of all spans of up to L words, weighted by attention a (Sun et al., 2020).

    A span shares its weight evenly among its words, so the weight of a word is w_t = Σ a_ij / (j − i + 1) over the
    spans that hold it, and its state for the decoder is s_t = Σ a_ij / (j − i + 1) h_ij / w_t: with w, just the mean of
    the spans is pooled. A word whose spans have no weight stands there as a span by itself. The state of a word is
    [s_t; h_t; w_t; a_tt, a_tt+1, …], the weights of the spans that begin with it last.
    """

    # differs from Sun et al. (2020): spans have a largest length, for there are T² of them; the scores are those of the
    # alignment (theirs is "dot", which we scale)

    cascade: tuple[str, ...] = ("decoder", "alignment", "composition", "encoder", "embedding")
    stacked: ClassVar[bool] = False  # what is pooled are spans, not what the layers below make of each word

    alignment: Additive | Dot

    def __init__(self, architecture: Architecture, words: int, classes: int) -> None:
        super().__init__(architecture, words)
        self.encoder = self.reader(architecture.embedding)
        self.size = self.width(self.encoder)
        self.composition = Composition(self.size)
        self.alignment = ALIGNMENTS[architecture.alignment](self.size, architecture.alignment_size)
        self.decoder = nn.Linear(self.size, classes)

    def states(self, x: Embeddings, batch: Batch, below: list[Tensor] | None = None) -> TokenStates:
        longest = self.architecture.longest_span
        encoded = super().states(x, batch)
        spans = self.composition(encoded, longest)
        weights = self.project(self.alignment(spans).flatten(1), inside(batch.mask, longest).flatten(1))
        weights = weights.reshape(spans.shape[:3])
        if below is not None:
            below.append(weights)
        shares = weights[..., None] * _evenly(weights)  # [B, T, L, L]: of each span for each of its words
        sums = _behind(shares.mT @ spans)
        shown = _behind(shares.sum(2)[..., None])
        own = mixed(sums, shown, spans[:, :, 0]) * batch.mask[..., None]
        return torch.cat([own, encoded, shown, weights], dim=-1)

    def attend(self, states: TokenStates, batch: Batch) -> TokenWeights:
        return states[..., 2 * self.size]

    def encodings(self, x: Embeddings, batch: Batch, states: TokenStates) -> Float[Tensor, "B T H"]:
        return states[..., self.size : self.size + self.encoder.size]

    def spans(self, states: TokenStates) -> Float[Tensor, "B T L"]:
        """The attention over spans: for each word, that of the spans of 1, 2, … words that start there."""
        return states[..., -self.architecture.longest_span :]

    def penalty(self, states: TokenStates, batch: Batch) -> TextScores:
        """−Σ a²: small where attention is concentrated on few spans."""
        return -self.spans(states).square().sum((1, 2))

    @torch.no_grad()
    def heaviest(
        self, batch: Batch, count: int = 1
    ) -> tuple[Int[Tensor, "B K"], Int[Tensor, "B K"], Float[Tensor, "B K"]]:
        """The first and last word of the spans of highest weight, in descending order, and their weights.

        Where a text has fewer spans than asked for, the others have no weight.
        """
        weights = self.spans(self.states(self.embed(batch), batch)).flatten(1)
        most, position = weights.topk(min(count, weights.shape[1]), dim=-1)
        first = position // self.architecture.longest_span
        return first, first + position % self.architecture.longest_span, most


def inside(mask: Mask, longest: int) -> Bool[Tensor, "B T L"]:
    """The mask of spans of 1, 2, … words per start position that lie within the text."""
    return mask[..., None] & _ahead(mask[..., None], longest).squeeze(-1)


def _ahead(rows: Tensor, longest: int) -> Tensor:
    """[B, T, L, M]: for each position the rows at offsets 0, 1, …; zeros beyond the text."""
    return F.pad(rows, (0, 0, 0, longest - 1)).unfold(1, longest, 1).mT


def _behind(parts: Float[Tensor, "B T L M"]) -> TokenStates:
    """For each position, the sum of the entries at offsets 0, 1, … of the positions that precede it."""
    tokens, longest = parts.shape[1:3]
    return sum(  # type: ignore[return-value]
        F.pad(parts[:, : tokens - back, back], (0, 0, back, 0)) for back in range(min(longest, tokens))
    )


def _evenly(weights: Float[Tensor, "B T L"]) -> Float[Tensor, "L L"]:
    """The share of the d-th word in a span of l words, in row l: 1/l, or 0 beyond its end."""
    lengths = torch.arange(1, weights.shape[-1] + 1, dtype=weights.dtype, device=weights.device)
    return (lengths <= lengths[:, None]) / lengths[:, None]


NETWORKS: dict[str, Callable[[Architecture, int, int], Network]] = {
    "flat": Classifier,
    "hierarchical": Hierarchical,
    "paired": Paired,
    "structured": Structured,
    "spans": Spans,
    "aspect": Aspect,
}


def built(architecture: Architecture, words: int, classes: int) -> Network:
    """An untrained network for a number of words and classes."""
    try:
        return NETWORKS[architecture.shape](architecture, words, classes)
    except (MemoryError, OverflowError, RuntimeError, TypeError) as fault:  # as torch has it, of what is too large
        raise AssayError(
            f"There is no room for a network of these sizes ({reason(fault)}); try smaller ones."
        ) from fault
