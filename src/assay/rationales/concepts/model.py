"""Classifier that decides by concepts, each shown by the words that were selected for it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay.errors import AssayError
from assay.rationales.masking import blank_of, blended, compacted
from assay.rationales.players import Players
from assay.rationales.rationaliser import Rationaliser
from assay.rationales.rules import Rules
from assay.types import Batch, Edit, Output, Selection


@dataclass(frozen=True)
class ConceptResult:
    """K concepts for each text: presence, the words selected for each, and contributions to each logit.

    The contributions sum to the logits, and that of a concept that is not there is 0.
    """

    presence: Bool[Tensor, "B K"]
    chance: Float[Tensor, "B K"]
    masks: Bool[Tensor, "B K T"]
    contributions: Float[Tensor, "B K C"]


class ConceptModel(Rationaliser):
    """Selects words for each concept, infers its presence from these alone, and sums contributions."""

    unedited = "A model that decides by concepts has no attention to edit; leave that audit out."

    @property
    def facts(self) -> dict[str, str]:
        below = self.players.predictor.facts["description"]
        description = f"{self.rules.masks} concepts, {self.rules.units.kind}s of each, for: {below}"
        return {"description": description, "shape": "concepts", "items": "words"}

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("concepts", *super().cascade)

    def part(self, name: str) -> nn.Module:
        return self.players.extras["concepts"] if name == "concepts" else super().part(name)

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        """The prediction; there is no attention that an edit could change."""
        if edit is not None:
            raise AssayError(self.unedited)
        return self.counted(Output(self.play(batch, x).concepts.logits, ()))

    @torch.no_grad()
    def concepts(self, x: Float[Tensor, "B T D"], batch: Batch) -> ConceptResult:
        """Presence, words and contributions of each concept."""
        play = self.play(batch, x)
        inferred = play.concepts
        return ConceptResult(inferred.presence > 0, inferred.chance, play.z > 0, inferred.contributions)

    @torch.no_grad()
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
        """The words of all present concepts; a word's probability is its highest over concepts."""
        play = self.play(batch, x)
        there = play.concepts.presence[..., None]
        chance = play.grouping.expanded(play.drawn.chance) * play.concepts.chance[..., None]
        return Selection((play.z * there > 0).any(1), chance.amax(1))

    @torch.no_grad()
    def relevance(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B T C"]:
        """The contribution of each word to each logit: a concept's is split evenly among its words."""
        found = self.concepts(x, batch)
        masks = found.masks.to(found.contributions)
        shares = masks / masks.sum(-1, keepdim=True).clamp(min=1)
        return shares.mT @ found.contributions

    @torch.no_grad()
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the words that were selected, for the rest, or for all of them."""
        if view != "all":
            kept = self.selection(x, batch).kept
            z = (kept if view == "selected" else batch.mask & ~kept).to(x)
            if self.rules.reading == "delete":
                x, batch = compacted(x, batch, z)
            else:
                x = blended(x, z, blank_of(self.players.predictor, batch, self.rules.reading))
        answer: Output = self(x, batch)
        return answer.logits


def answering(players: Players, rules: Rules) -> Rationaliser:
    """A model whose predictor decides, or whose concepts do, as the rules say."""
    return ConceptModel(players, rules) if rules.answers != "reader" else Rationaliser(players, rules)
