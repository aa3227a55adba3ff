"""Divergence of a reader's predictions on different views of a text."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play


@dataclass(frozen=True)
class FullTextDivergence:
    """KL(P(all) ‖ P(view)) of a reader's predictions; no gradient through P(all).

    Of the words that are selected it is the cost of MCD (Liu et al., 2023, equation 8); of the rest, with a weight
    below 0, it is what MRD (Liu et al., 2024) makes large.
    """

    player: str = "predictor"
    view: str = "selected"
    mask: int = 0

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        whole = play.read(self.player, "all").logits.detach().log_softmax(-1)
        seen = play.read(self.player, self.view, self.mask).logits.log_softmax(-1)
        return (whole.exp() * (whole - seen)).sum(-1)
