"""Phrase scores by Shapley values: a phrase is one player among the words around it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.hierarchies.interactions import shares
from assay.explainers.hierarchies.occluding import VersionScorer
from assay.explainers.hierarchies.versions import Versions
from assay.explainers.surrogates.coalitions import every

WIDEST = 6  # words on each side: a phrase is then read 2^13 times


@dataclass(frozen=True)
class PhraseShapley(VersionScorer):
    """The Shapley value of the phrase as one player, with `window` words on each side as the others.

    Words further away are removed, as in L-Shapley (Chen et al., 2019); where all of a text are in the window, the
    value is that of the whole game. It is exact: each set of players is read.
    """

    window: int = 2
    removal: str = "delete"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.window <= WIDEST:
            raise AssayError(f"The window must be 0 to {WIDEST} words on each side, got {self.window}.")

    def scored(self, versions: Versions, chosen: Bool[Tensor, "B S T"]) -> Float[Tensor, "B S"]:
        texts, number = chosen.any(-1).nonzero(as_tuple=True)
        scores = versions.target.new_zeros(chosen.shape[:2], dtype=torch.double)
        at_once = max(1, (1 << 24) // (chosen.shape[-1] << 2 * self.window + 1))
        for example, position in zip(torch.split(texts, at_once), torch.split(number, at_once), strict=True):
            scores[example, position] = self._values(versions, example, chosen[example, position])
        return scores

    def _values(
        self, versions: Versions, example: Int[Tensor, " N"], phrase: Bool[Tensor, "N T"]
    ) -> Float[Tensor, " N"]:
        positions, there = around(phrase, versions.batch.mask[example], self.window)
        sets = every(positions.shape[1], phrase.device)  # [P, K] of the neighbours
        possible = ~(sets & ~there[:, None]).any(-1)  # [N, P]
        case, number = possible.nonzero(as_tuple=True)
        others = torch.zeros_like(phrase)[case].scatter(1, positions[case], sets[number] & there[case])
        worth = versions.worth(example[case].repeat(2), torch.cat([others | phrase[case], others]))
        joined, without = worth.chunk(2)
        table = shares(positions.shape[1] + 1, positions.shape[1] + 1).to(joined)
        gains = (joined - without) * table[there.sum(-1)[case] + 1, sets.sum(-1)[number]]
        return gains.new_zeros(len(phrase)).index_add(0, case, gains)


def around(
    phrase: Bool[Tensor, "N T"], mask: Bool[Tensor, "N T"], window: int
) -> tuple[Int[Tensor, "N K"], Bool[Tensor, "N K"]]:
    """The positions of the words nearest to a phrase, up to two windows, and their mask."""
    positions = torch.arange(phrase.shape[1], device=phrase.device)
    apart = (positions[:, None] - positions).abs()
    distance = torch.where(phrase[:, None], apart, len(positions)).amin(-1)  # [N, T]
    near = mask & ~phrase & (distance <= window)
    order = torch.where(near, distance, len(positions) + 1).argsort(dim=-1, stable=True)[:, : 2 * window]
    return order, near.gather(1, order)
