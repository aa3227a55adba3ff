"""Losses of class-wise masks, each of which supports one class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from assay.rationales.play import Play
from assay.rationales.terms.answers import AnswerCrossEntropy


@dataclass(frozen=True)
class AllMasksCrossEntropy:
    """The mean cross-entropy over all masks: the true class is the target whatever the mask's class."""

    player: str = "predictor"

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        costs = [AnswerCrossEntropy(self.player, mask=mask, stopped=True)(play) for mask in range(play.rules.masks)]
        return torch.stack(costs).mean(0)


@dataclass(frozen=True)
class Convincing:
    """Minus the mean probability of class t given mask t, over all t (Chang et al., 2019)."""

    player: str = "predictor"

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        masks = range(play.rules.masks)
        believed = [play.read(self.player, "selected", mask).logits.softmax(-1)[:, mask] for mask in masks]
        return -torch.stack(believed).mean(0)


@dataclass(frozen=True)
class Sizes:
    """The mean of |share − rate| over masks, with the shares of a whole batch."""

    rate: float = 0.2

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        shares = play.z.sum((0, 2)) / play.batch.lengths.sum()
        return (shares - self.rate).abs().mean().expand(len(play.batch))
