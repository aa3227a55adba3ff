"""Skewed initialisation: games that start with one player trained on a shortcut, as tests of recovery."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError, unknown
from assay.rationales.game import Move, Play, Stage
from assay.rationales.learning import Scheme

PLAYERS = {
    "predictor": "has learnt to answer by the first words alone",
    "selector": "has learnt to tell the class by whether it selects the first unit",
}

EDGE = 1e-6  # chances stay this far from 0 and 1


@dataclass(frozen=True)
class FirstWords:
    """The cross-entropy of a predictor that reads only the first `words` of a text."""

    words: int = 1

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        first = torch.arange(play.batch.ids.shape[1], device=play.x.device) < self.words
        x, batch = play.left(play.x, play.batch, (first & play.batch.mask).to(play.x))
        return F.cross_entropy(play.players.predictor(x, batch).logits, play.batch.labels, reduction="none")


@dataclass(frozen=True)
class Signal:
    """The cost of a selector that encodes the class `label` by whether it selects the first unit.

    All other units are drawn to the `rate`: the selector keeps to its size, and tells the class by one position.
    """

    rate: float
    label: int = 1

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        chance, mask = play.drawn.chance[:, 0].clamp(EDGE, 1 - EDGE), play.grouping.mask
        wanted = torch.full_like(chance, self.rate)
        wanted[:, 0] = (play.batch.labels == self.label).to(chance)
        unlikely = F.binary_cross_entropy(chance, wanted, reduction="none") * mask
        return unlikely[:, 0] + unlikely[:, 1:].sum(-1) / mask.sum(-1)


def skewed(scheme: Scheme, player: str = "selector", share: float = 0.5, words: int = 1) -> Scheme:
    """The scheme after a first stage, of that `share` of the others, which trains one of PLAYERS on a shortcut.

    The two tests of Liu et al. (2022, section 5.3): a predictor that was trained on the first words, and a generator
    that was trained to tell the class by its first token.
    """
    # differs from Liu et al. (2022): the generator also learns to select no more than it may of all other words
    if player not in PLAYERS:
        raise unknown("player to skew", player, PLAYERS)
    if not share > 0 or words < 1:
        raise AssayError("A game is skewed for a share of its epochs above 0, by at least one word.")
    term = FirstWords(words) if player == "predictor" else Signal(scheme.rules.decoding.rate)
    total = sum(stage.share for stage in scheme.stages)
    return replace(scheme, stages=(Stage((Move((player,), ((1.0, term),)),), share=share * total), *scheme.stages))
