"""Costs of answers that differ from one view of a text to another."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play


@dataclass(frozen=True)
class FullTextDivergence:
    """KL(P(all) ‖ P(view)): what a reader's answer to a view loses of its answer to all words, which stays as it is.

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
