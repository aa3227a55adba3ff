"""Penalty on small hidden states."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play

LEAST = 1e-6  # added to a norm, so that nothing at all has a logarithm


@dataclass(frozen=True)
class NegativeLogNorm:
    """−log ‖f‖ of the reader's hidden state f on a view: words that it was trained to use make it large.

    N2R (Liu et al., 2025).
    """

    player: str = "predictor"
    view: str = "selected"
    mask: int = 0

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        features = play.read(self.player, self.view, self.mask).features
        length: Tensor = torch.linalg.vector_norm(features, dim=-1)
        return -(length + LEAST).log()
