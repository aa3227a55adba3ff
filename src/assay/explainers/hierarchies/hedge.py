"""HEDGE: top-down trees that split phrases where their parts interact least."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.explainers.hierarchies.occluding import Margin
from assay.explainers.hierarchies.scorers import PhraseScorer, Read, reading
from assay.explainers.hierarchies.splitting import Cuts
from assay.explainers.hierarchies.tables import PhraseTable, steps, trees
from assay.explainers.hierarchies.versions import Versions
from assay.explainers.needs import demand, no_blank
from assay.models.erasure import REMOVALS
from assay.trees import Tree
from assay.types import Batch, Model

WIDEST = 3  # phrases on each side: each cut that could be made is then tried in 2^6 surroundings
PLAYERS = ("window", "text")


@dataclass(frozen=True)
class Hedge:
    """A top-down tree: each level splits a phrase where its two parts interact least (Chen et al., 2020).

    On each level every cut of every phrase is tried. How much its parts do together is their Shapley interaction
    among the `window` phrases on each side; what is further away is removed. The number of players that weighs sets
    of these is that in the "window", as in the paper, or that in the "text", as in the authors' code. A phrase has the
    score of the `scorer`, or else p(class) less the largest other p, given the phrase alone.
    """

    # differs from the authors' code: interactions are not halved, which changes no choice

    window: int = 2
    players: str = "window"
    removal: str = "delete"
    scorer: PhraseScorer | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.window <= WIDEST:
            raise AssayError(f"The window of hedge must be 0 to {WIDEST} phrases on each side, got {self.window}.")
        if self.players not in PLAYERS:
            raise unknown("number of players", self.players, PLAYERS)
        if self.removal not in REMOVALS:
            raise unknown("removal", self.removal, REMOVALS)
        if self.scorer is not None and not isinstance(self.scorer, PhraseScorer):
            raise AssayError(f"{self.scorer!r} scores no phrases; give the scorer of a tree beside it, by its name.")

    def unfit(self, model: Model) -> str | None:
        lacking = None if self.removal == "delete" else no_blank(model)
        return lacking or (None if self.scorer is None else self.scorer.unfit(model))

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> list[Tree]:
        demand(self.unfit(model))
        versions = Versions(model, batch, target, self.removal)
        table = PhraseTable(self._read(versions), batch)
        ranks, phrases = self._cut(versions)
        table.ask(*phrases.nonzero(as_tuple=True))
        return trees("hedge", ranks, table, batch.lengths)

    def _read(self, versions: Versions) -> Read:
        if self.scorer is not None:
            return reading(self.scorer, versions.model, versions.batch, versions.target)
        return lambda chosen: Margin(self.removal).scored(versions, chosen)

    def _cut(self, versions: Versions) -> tuple[Int[Tensor, "B E"], Bool[Tensor, "B E E"]]:
        """The level on which each boundary is cut, and all phrases that occurred, by start and stop."""
        lengths = versions.batch.lengths
        texts = torch.arange(len(lengths), device=lengths.device)
        cuts, middle = Cuts(versions, self.window), self.window + 1
        ranks = torch.zeros_like(cuts.made, dtype=torch.long)
        phrases = torch.zeros(*ranks.shape, ranks.shape[1], dtype=torch.bool, device=texts.device)
        phrases[texts, 0, lengths] = True
        for level in steps(int(lengths.max()) - 1, "hedge"):
            uncut = texts[lengths > level + 1]
            position = cuts.weakest(level + 2 if self.players == "text" else None)[uncut]
            start, stop = (cuts.around[uncut, position, middle + side] for side in (-1, 1))
            phrases[uncut, start, position] = True
            phrases[uncut, position, stop] = True
            ranks[uncut, position] = level + 1
            cuts.made[uncut, position] = True
        return ranks, phrases
