"""The self-explaining span layer: attention over all phrases of a text, up to a length."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay.models.architecture import Architecture
from assay.models.attention import ALIGNMENTS, Additive, Dot, mixed
from assay.models.network import WordNetwork
from assay.types import Batch


class Composition(nn.Module):
    """Span embeddings tanh(W₁ h_i + W₂ h_j + W₃ (h_i − h_j) + W₄ (h_i ⊙ h_j)) of their ends (Sun et al., 2020)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.start, self.end, self.apart, self.product = (nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, encoded: Float[Tensor, "B T M"], longest: int) -> Float[Tensor, "B T L M"]:
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

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B T M"]:
        longest = self.architecture.longest_span
        encoded = self.encoded(self.encoder, self.dropped(x, self.architecture.dropout_words), batch.mask, None)
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

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return states[..., 2 * self.size]

    def encodings(
        self, x: Float[Tensor, "B T D"], batch: Batch, states: Float[Tensor, "B T M"]
    ) -> Float[Tensor, "B T H"]:
        return states[..., self.size : self.size + self.encoder.size]

    def spans(self, states: Float[Tensor, "B T M"]) -> Float[Tensor, "B T L"]:
        """The attention over spans: for each word, that of the spans of 1, 2, … words that start there."""
        return states[..., -self.architecture.longest_span :]

    def penalty(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, " B"]:
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


def inside(mask: Bool[Tensor, "B T"], longest: int) -> Bool[Tensor, "B T L"]:
    """The mask of spans of 1, 2, … words per start position that lie within the text."""
    return mask[..., None] & _ahead(mask[..., None], longest).squeeze(-1)


def _ahead(rows: Tensor, longest: int) -> Tensor:
    """[B, T, L, M]: for each position the rows at offsets 0, 1, …; zeros beyond the text."""
    return F.pad(rows, (0, 0, 0, longest - 1)).unfold(1, longest, 1).mT


def _behind(parts: Float[Tensor, "B T L M"]) -> Float[Tensor, "B T M"]:
    """For each position, the sum of the entries at offsets 0, 1, … of the positions that precede it."""
    tokens, longest = parts.shape[1:3]
    return sum(  # type: ignore[return-value]
        F.pad(parts[:, : tokens - back, back], (0, 0, back, 0)) for back in range(min(longest, tokens))
    )


def _evenly(weights: Float[Tensor, "B T L"]) -> Float[Tensor, "L L"]:
    """The share of the d-th word in a span of l words, in row l: 1/l, or 0 beyond its end."""
    lengths = torch.arange(1, weights.shape[-1] + 1, dtype=weights.dtype, device=weights.device)
    return (lengths <= lengths[:, None]) / lengths[:, None]
