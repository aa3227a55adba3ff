"""Classifier that decides by the words it selects (a rationale)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.rationales.play import OWN, Play
from assay.rationales.players import Players, Reader, redrawn
from assay.rationales.rules import Rules
from assay.rationales.selecting import Selecting
from assay.rationales.stories import RULES
from assay.types import Batch, Edit, Output, Selection

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
        from assay.rationales.player_building import assemble_players  # which knows what all this is made of

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
