"""Classifiers that decide by the words they select (a rationale), or by concepts with words of their own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from assay.data.text import SPECIAL
from assay.errors import AssayError
from assay.models.textmodel import TextModel
from assay.rationales.game import OWN, Embedded, Left, Play, Weights, compacted
from assay.rationales.players import Players, Reader, Rules, assemble_players, redrawn
from assay.rationales.selection_stories import RULES
from assay.types import Batch, Edit, Output, Selection

VIEWS = ("selected", "rest", "all")
Logits = Float[Tensor, "B C"]


@dataclass(frozen=True)
class Stored:
    """Content of a model folder: card, tensors, vocabulary size and reader factory.

    A `reader` is untrained and knows that many words; a pretrained encoder is the stored one, and knows its own.
    """

    card: dict[str, Any]
    tensors: dict[str, Tensor]
    words: int
    reader: Callable[[int], Reader]

    @property
    def classes(self) -> int:
        return len(self.card["classes"])


class Selecting(TextModel):
    """Classifier with a selection of words, and logits for these alone and for the others."""

    kind: ClassVar[str]
    """Its name in a folder."""

    inner: ClassVar[str] = ""
    """How the names of the tensors begin that a pretrained encoder stores by itself."""

    attends = False

    critic = False
    """Whether a critic was trained on the unselected words."""

    @property
    @abstractmethod
    def selecting(self) -> dict[str, Any]:
        """The rule of selection, and what replaces unselected words, as JSON values."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """The words that the decision depends on: "selected", or "all" where the selection only explains."""

    @property
    @abstractmethod
    def base(self) -> Any:
        """The network that reads texts as they are tokenised."""

    @property
    def body(self) -> nn.Module:
        """The module whose weights are stored."""
        return self

    @property
    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Its options, besides those of the base, as JSON values."""

    @classmethod
    @abstractmethod
    def of(cls, stored: Stored) -> Selecting:
        """A model with stored options; its weights are still to be loaded."""

    @abstractmethod
    def selection(self, x: Embedded, batch: Batch) -> Selection:
        """The deterministic selection, and each word's probability."""

    @torch.no_grad()
    def viewed(self, x: Embedded, batch: Batch, view: str) -> Logits:
        """The logits for the selected words, for the rest, or for all of them: one of VIEWS."""
        if view != "all":
            kept = self.selection(x, batch).kept
            x, batch = self.left(x, batch, (kept if view == "selected" else batch.mask & ~kept).to(x))
        answer: Output = self(x, batch)
        return answer.logits

    def left(self, x: Embedded, batch: Batch, z: Weights) -> Left:
        """The texts with only the words that the mask selects, gaps closed."""
        return compacted(x, batch, z)

    def complement(self, x: Embedded, batch: Batch) -> Logits:
        """Logits from the complement, by the critic if one was trained."""
        return self.viewed(x, batch, "rest")

    def accounts(self, x: Embedded, batch: Batch) -> list[dict[str, Any]]:
        """Further explanation of each decision as JSON values, where there is more than the selected words."""
        return [{} for _ in range(len(batch))]


class OverReader(Selecting):
    """A selecting classifier around a reader, whose embeddings and classes are its own."""

    @property
    @abstractmethod
    def base(self) -> Reader:
        """The reader."""

    @property
    def embedding(self) -> nn.Module:  # type: ignore[override]
        return self.base.embedding

    @property
    def classes(self) -> int:
        return self.base.classes

    @property
    def paired(self) -> bool:
        return self.base.paired

    @property
    def ordinary(self) -> int:
        return self.base.ordinary

    def embed(self, batch: Batch) -> Embedded:
        return self.base.embed(batch)

    def blank(self, name: str) -> Float[Tensor, " D"]:
        return self.base.blank(name)


class Rationaliser(OverReader):
    """Selects words deterministically, and lets the predictor read nothing else; the selection is its explanation."""

    kind = "game"
    inner = "readers.predictor.inner."

    def __init__(self, players: Players, rules: Rules) -> None:
        super().__init__()
        self.players, self.rules = players, rules
        self.critic = "critic" in players.readers

    @property
    def base(self) -> Reader:
        return self.players.predictor

    @property
    def body(self) -> nn.Module:
        return self.players

    @property
    def described(self) -> dict[str, Any]:
        players = self.players
        return {"rules": self.rules.json(), "readers": list(players.readers), "extras": list(players.extras)}

    @classmethod
    def of(cls, stored: Stored) -> Rationaliser:
        """As declared; all players but the predictor have a table of markers only."""
        card, rules = stored.card, Rules.of(stored.card["rules"])
        sizes = {name: stored.words if name == "predictor" else len(SPECIAL) for name in card["readers"]}
        readers = {name: stored.reader(words) for name, words in sizes.items()}
        return answering(assemble_players(rules, readers, tuple(card["extras"]), stored.classes), rules)

    @property
    def facts(self) -> dict[str, str]:
        description = f"selection of {self.rules.units.kind}s for: {self.base.facts['description']}"
        return {"description": description, "shape": "rationale", "items": "words"}

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.base.cascade, "selector")

    def part(self, name: str) -> nn.Module:
        if name != "selector":
            return self.base.part(name)
        if self.rules.saliency:
            return self.players.readers["teacher"]
        reader = [self.players.readers["selector"]] if "selector" in self.players.readers else []
        return nn.ModuleList([self.players.head, *reader])

    def redrawn(self, seed: int) -> Rationaliser:
        """The same architecture with random weights."""
        names = enumerate(self.players.readers)
        readers = {name: redrawn(self.players.reader(name), seed + index) for index, name in names}
        players = assemble_players(self.rules, readers, tuple(self.players.extras), self.classes, seed)
        return type(self)(players, self.rules).to(self.device).eval()

    def forward(self, x: Embedded, batch: Batch, edit: Edit | None = None) -> Output:
        """The prediction; an edit changes the attention to the selected words."""
        read = (x, batch) if self.rules.reads == "all" else self.play(batch, x).shown("selected", self.mask, True)
        output: Output = self.base(*read, edit)
        return Output(output.logits, ())

    @torch.no_grad()
    def selection(self, x: Embedded, batch: Batch) -> Selection:
        play = self.play(batch, x)
        chance = play.grouping.expanded(play.drawn.chance)
        return Selection(play.of_mask(play.z, self.mask) > 0, play.of_mask(chance, self.mask))

    @torch.no_grad()
    def viewed(self, x: Embedded, batch: Batch, view: str) -> Logits:
        """The logits of the predictor for the selected words, for the rest, or for all of them."""
        return self.play(batch, x).read("predictor", view, self.mask).logits

    @torch.no_grad()
    def complement(self, x: Embedded, batch: Batch) -> Logits:
        """Logits from the complement, by the critic if one was trained."""
        return self.play(batch, x).read("critic" if self.critic else "predictor", "rest", self.mask).logits

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

    def play(self, batch: Batch, x: Embedded | None = None) -> Play:
        """Deterministic forward pass of the game."""
        return Play(self.players, batch, self.rules, decoded=True, x=x)


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
        units = f"{self.rules.units.kind}s of each, for: {self.base.facts['description']}"
        return {"description": f"{self.rules.masks} concepts, {units}", "shape": "concepts", "items": "words"}

    @property
    def cascade(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("concepts", *super().cascade)

    def part(self, name: str) -> nn.Module:
        return self.players.extras["concepts"] if name == "concepts" else super().part(name)

    def forward(self, x: Embedded, batch: Batch, edit: Edit | None = None) -> Output:
        """The prediction; there is no attention that an edit could change."""
        if edit is not None:
            raise AssayError(self.unedited)
        return self.counted(Output(self.play(batch, x).concepts.logits, ()))

    @torch.no_grad()
    def concepts(self, x: Embedded, batch: Batch) -> ConceptResult:
        """Presence, words and contributions of each concept."""
        play = self.play(batch, x)
        inferred = play.concepts
        return ConceptResult(inferred.presence > 0, inferred.chance, play.z > 0, inferred.contributions)

    @torch.no_grad()
    def selection(self, x: Embedded, batch: Batch) -> Selection:
        """The words of all present concepts; a word's probability is its highest over concepts."""
        play = self.play(batch, x)
        there = play.concepts.presence[..., None]
        chance = play.grouping.expanded(play.drawn.chance) * play.concepts.chance[..., None]
        return Selection((play.z * there > 0).any(1), chance.amax(1))

    @torch.no_grad()
    def relevance(self, x: Embedded, batch: Batch) -> Float[Tensor, "B T C"]:
        """The contribution of each word to each logit: a concept's is split evenly among its words."""
        result = self.concepts(x, batch)
        masks = result.masks.to(result.contributions)
        shares = masks / masks.sum(-1, keepdim=True).clamp(min=1)
        return shares.mT @ result.contributions

    def viewed(self, x: Embedded, batch: Batch, view: str) -> Logits:
        """The logits that the concepts decide, from the selected words, from the rest, or from all of them."""
        return Selecting.viewed(self, x, batch, view)

    def left(self, x: Embedded, batch: Batch, z: Weights) -> Left:
        """The texts with only the words that the mask selects; others are read as the rules say."""
        return self.play(batch, x).left(x, batch, z)

    complement = Selecting.complement


def answering(players: Players, rules: Rules) -> Rationaliser:
    """A model whose predictor decides, or whose concepts do, as the rules say."""
    return ConceptModel(players, rules) if rules.answers != "reader" else Rationaliser(players, rules)
