"""Agglomerative trees: adjacent phrases with the strongest interaction are merged, bottom-up."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import unknown
from assay.explainers.hierarchies.occluding import Without
from assay.explainers.hierarchies.scorers import PhraseScorer, reading
from assay.explainers.hierarchies.tables import PhraseTable, edges, steps, trees
from assay.explainers.needs import demand
from assay.trees import Tree
from assay.types import Batch, Model

TIE = 1e-6  # of the largest score: joins that are as near as this are told apart by rounding alone
PRIORITIES = ("interaction", "added")


@dataclass(frozen=True)
class Agglomerative:
    """A bottom-up tree: per level, the two adjacent phrases that interact most are merged.

    What they do together is |φ(ab) − φ(a) − φ(b)|, the "interaction" of their scores, or the larger of φ(ab) − φ(a)
    and φ(ab) − φ(b): what one has "added" to the other, the priority of ACD (Singh et al., 2019). Of pairs that are
    alike, the one that counts least is joined first, so that strong words stand alone longest.
    """

    # differs from Singh et al. (2019): one join a level, not all in the top percentiles, so that levels are partitions

    scorer: PhraseScorer = field(default_factory=Without)
    priority: str = "interaction"

    def __post_init__(self) -> None:
        if self.priority not in PRIORITIES:
            raise unknown("priority", self.priority, PRIORITIES)

    def unfit(self, model: Model) -> str | None:
        return self.scorer.unfit(model)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> list[Tree]:
        demand(self.unfit(model))
        table = PhraseTable(reading(self.scorer, model, batch, target), batch)
        lengths = batch.lengths
        texts = torch.arange(len(batch), device=lengths.device)
        positions = torch.arange(batch.ids.shape[1] + 1, device=lengths.device)
        inside = (positions > 0) & (positions < lengths[:, None])
        cuts = positions <= lengths[:, None]
        ranks = torch.zeros_like(cuts, dtype=torch.long)
        table.ask(texts, torch.zeros_like(lengths), lengths)
        for level in steps(int(lengths.max()) - 1, "acd"):
            around = edges(cuts, lengths, 1)
            open_ = inside & cuts
            position = self._strongest(table, around, open_)
            joined = texts[lengths > level + 1]
            ranks[joined, position[joined]] = lengths[joined] - 1 - level
            cuts[joined, position[joined]] = False
        return trees("acd", ranks, table, lengths)

    def _strongest(
        self, table: PhraseTable, around: Int[Tensor, "B E 3"], candidates: Bool[Tensor, "B E"]
    ) -> Int[Tensor, " B"]:
        """The boundary of each text between the two phrases to merge."""
        example, position = candidates.nonzero(as_tuple=True)
        start, _, stop = around[example, position].unbind(-1)
        table.ask(example.repeat(3), torch.cat([start, position, start]), torch.cat([position, stop, stop]))
        phrases = (start, position), (position, stop), (start, stop)
        left, right, both = (table.scores[example, *ends] for ends in phrases)
        gain = both - torch.minimum(left, right) if self.priority == "added" else (both - left - right).abs()
        gains = _spread(gain, candidates, -torch.inf)
        tolerance = TIE * table.scores.abs().flatten(1).amax(1, keepdim=True)
        near = gains >= gains.amax(1, keepdim=True) - tolerance
        size = _spread(both.abs(), candidates, torch.inf).masked_fill(~near, torch.inf)
        return (size <= size.amin(1, keepdim=True) + tolerance).int().argmax(1)


def _spread(values: Float[Tensor, " N"], positions: Bool[Tensor, "B E"], other: float) -> Float[Tensor, "B E"]:
    return torch.full_like(positions, other, dtype=values.dtype).masked_scatter(positions, values)
