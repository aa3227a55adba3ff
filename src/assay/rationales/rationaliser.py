"""Classifiers that decide by the words they select (a rationale), or by concepts with words of their own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay.errors import AssayError
from assay.models.textmodel import TextModel
from assay.rationales.game import OWN, Play, blank_of, blended, compacted
from assay.rationales.players import Players, Reader, Rules, redrawn
from assay.rationales.selection_stories import RULES
from assay.types import Batch, Edit, Output, Selection

# Protocol of classifiers that select the words they decide by.


VIEWS = ("selected", "rest", "all")


class Selecting(TextModel):
    """Classifier with a selection of words, and logits for these alone and for the others."""

    attends = False

    @property
    @abstractmethod
    def selecting(self) -> dict[str, Any]:
        """The rule of selection, and what replaces unselected words, as JSON values."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """The words that the decision depends on: "selected", or "all" where the selection only explains."""

    @property
    def critic(self) -> bool:
        """Whether a critic was trained on the unselected words."""
        return False

    @abstractmethod
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
        """The deterministic selection, and each word's probability."""

    @abstractmethod
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the selected words, for the rest, or for all of them: one of VIEWS."""

    def complement(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B C"]:
        """Logits from the complement, by the critic if one was trained."""
        return self.viewed(x, batch, "rest")

    def accounts(self, x: Float[Tensor, "B T D"], batch: Batch) -> list[dict[str, Any]]:
        """Further explanation of each decision as JSON values, where there is more than the selected words."""
        return [{} for _ in range(len(batch))]


def without_others(
    x: Float[Tensor, "B T D"], batch: Batch, kept: Bool[Tensor, "B T"], view: str
) -> tuple[Float[Tensor, "B W D"], Batch]:
    """A batch with only the words of the view, gaps closed."""
    if view == "all":
        return x, batch
    shown = kept if view == "selected" else batch.mask & ~kept
    return compacted(x, batch, shown.to(x))


# Classifier that decides by the words it selects (a rationale).


CRITIC = "critic"
"""The reader of what was not selected, in games that have one."""


class Rationaliser(Selecting):
    """Selects words deterministically, and lets the predictor read nothing else; the selection is its explanation."""

    def __init__(self, players: Players, rules: Rules) -> None:
        super().__init__()
        self.players, self.rules = players, rules

    @property
    def embedding(self) -> nn.Module:  # type: ignore[override]
        return self.players.predictor.embedding

    @property
    def classes(self) -> int:
        return self.players.predictor.classes

    @property
    def paired(self) -> bool:
        return self.players.predictor.paired

    @property
    def ordinary(self) -> int:
        return self.players.predictor.ordinary

    @property
    def facts(self) -> dict[str, str]:
        below = self.players.predictor.facts["description"]
        description = f"selection of {self.rules.units.kind}s for: {below}"
        return {"description": description, "shape": "rationale", "items": "words"}

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.players.predictor.cascade, "selector")

    def part(self, name: str) -> nn.Module:
        if name != "selector":
            return self.players.predictor.part(name)
        if self.rules.saliency:
            return self.players.readers["teacher"]
        reader = [self.players.readers["selector"]] if "selector" in self.players.readers else []
        return nn.ModuleList([self.players.head, *reader])

    def redrawn(self, seed: int) -> Rationaliser:
        """The same architecture with random weights."""
        from assay.rationales.players import assemble_players

        readers: dict[str, Reader] = {}
        for index, name in enumerate(self.players.readers):
            readers[name] = redrawn(self.players.reader(name), seed + index)
        players = assemble_players(self.rules, readers, tuple(self.players.extras), self.classes, seed)
        return type(self)(players, self.rules).to(self.device).eval()

    def embed(self, batch: Batch) -> Float[Tensor, "B T D"]:
        return self.players.predictor.embed(batch)

    def blank(self, name: str) -> Float[Tensor, " D"]:
        return self.players.predictor.blank(name)

    def forward(self, x: Float[Tensor, "B T D"], batch: Batch, edit: Edit | None = None) -> Output:
        """The prediction; an edit changes the attention to the selected words."""
        predictor = self.players.predictor
        if self.rules.reads == "all":
            output: Output = predictor(x, batch, edit)
        else:
            output = predictor(*self.play(batch, x).shown("selected", self.mask, True), edit)
        return Output(output.logits, ())

    @torch.no_grad()
    def selection(self, x: Float[Tensor, "B T D"], batch: Batch) -> Selection:
        play = self.play(batch, x)
        chance = play.grouping.expanded(play.drawn.chance)
        return Selection(play.of_mask(play.z, self.mask) > 0, play.of_mask(chance, self.mask))

    @torch.no_grad()
    def viewed(self, x: Float[Tensor, "B T D"], batch: Batch, view: str) -> Float[Tensor, "B C"]:
        """The logits for the words that were selected, for the rest, or for all of them."""
        return self.play(batch, x).read("predictor", view, self.mask).logits

    @torch.no_grad()
    def complement(self, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B C"]:
        if not self.critic:
            return super().complement(x, batch)
        return self.play(batch, x).read(CRITIC, "rest", self.mask).logits

    @property
    def critic(self) -> bool:
        return CRITIC in self.players.readers

    @property
    def reads(self) -> str:
        return self.rules.reads

    @property
    def selecting(self) -> dict[str, Any]:
        return {
            "units": asdict(self.rules.units),
            **asdict(self.rules.decoding),
            "meaning": RULES[self.rules.decoding.rule],
            "masks": self.rules.masks,
            "reading": "learnt" if "blank" in self.players.extras else self.rules.reading,
        }

    @property
    def mask(self) -> int:
        """The mask that is read."""
        return OWN if self.rules.classwise else 0

    def play(self, batch: Batch, x: Float[Tensor, "B T D"] | None = None) -> Play:
        """Deterministic forward pass of the game."""
        return Play(self.players, batch, self.rules, decoded=True, x=x)


# Classifier that decides by concepts, each shown by the words that were selected for it.


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
