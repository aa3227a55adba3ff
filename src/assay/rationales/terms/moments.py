"""Distance of hidden-state distributions from those of whole texts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.errors import AssayError
from assay.rationales.play import Play


@dataclass(frozen=True)
class Moments:
    """The central moment discrepancy between a reader's hidden states on a view and a teacher's on all words.

    Of the whole batch, the same for each of its texts; Huang et al. (2021).
    """

    # differs from the code of Huang et al. (2021): moments are powers, not multiples, so that more than means count,
    # and the gradient goes on to the selector
    highest: int = 5
    width: float = 2.0
    teacher: str = "teacher"
    player: str = "predictor"
    view: str = "selected"
    mask: int = 0

    def __post_init__(self) -> None:
        if self.highest < 1 or not self.width > 0:
            raise AssayError("Moments are compared from the first on, of features between bounds with some width.")

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        wanted = play.read(self.teacher, "all").features.detach()
        seen = play.read(self.player, self.view, self.mask).features
        return discrepancy(seen, wanted, self.highest, self.width).expand(len(play.batch))


def discrepancy(
    first: Float[Tensor, "N M"], second: Float[Tensor, "P M"], highest: int = 5, width: float = 2.0
) -> Float[Tensor, ""]:
    """‖E x − E y‖ / w + Σ_k ‖E (x − E x)ᵏ − E (y − E y)ᵏ‖ / wᵏ for k from 2, w being the width between bounds.

    Zellinger et al. (2017).
    """
    means = [each.mean(0) for each in (first, second)]
    total: Tensor = torch.linalg.vector_norm(means[0] - means[1]) / width
    centred = [(each - mean) / width for each, mean in zip((first, second), means, strict=True)]
    for power in range(2, highest + 1):
        moments = [(each**power).mean(0) for each in centred]
        total = total + torch.linalg.vector_norm(moments[0] - moments[1])
    return total
