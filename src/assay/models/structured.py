"""Structured self-attention: several attention distributions over the words, each with its own mean."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.models.architecture import Architecture
from assay.models.attention import mixed
from assay.models.network import WordNetwork
from assay.types import Batch


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

    def states(
        self, x: Float[Tensor, "B T D"], batch: Batch, below: list[Tensor] | None = None
    ) -> Float[Tensor, "B T M"]:
        encoded = self.encoded(self.encoder, self.dropped(x, self.architecture.dropout_words), batch.mask, below)
        scores = self.alignment(encoded).mT
        rows = self.project(scores, batch.mask[:, None].expand_as(scores))
        return torch.cat([encoded, rows.mT], dim=-1)

    def rows(self, states: Float[Tensor, "B T M"]) -> Float[Tensor, "B R T"]:
        """The attention matrix A of each text, one distribution per row."""
        return states[..., -self.architecture.rows :].mT

    def attend(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, "B T"]:
        return self.rows(states).mean(1)

    def pooled(self, states: Float[Tensor, "B T M"], weights: Float[Tensor, "B T"]) -> Float[Tensor, "B P"]:
        encoded, rows = states.tensor_split((-self.architecture.rows,), dim=-1)
        mix = mixed(rows, rows.mean(-1, keepdim=True), torch.ones_like(rows))
        return ((mix * weights[..., None]).mT @ encoded).flatten(1)

    def penalty(self, states: Float[Tensor, "B T M"], batch: Batch) -> Float[Tensor, " B"]:
        """‖A Aᵀ − I‖²_F: small where the rows are concentrated and differ from each other."""
        rows = self.rows(states)
        alike = rows @ rows.mT - torch.eye(rows.shape[1], dtype=rows.dtype, device=rows.device)
        return alike.square().sum((1, 2))
