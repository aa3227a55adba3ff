"""Forward pass of a game on one batch; every player's result is computed lazily and cached."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.rationales.concepts.inference import Inferred
from assay.rationales.masking import blank_of, blended, compacted
from assay.rationales.players import Players
from assay.rationales.relaxations import Drawn
from assay.rationales.rules import Rules
from assay.rationales.saliency import saliency
from assay.rationales.units import Grouping
from assay.types import Batch

OWN = -1  # as the number of a mask: that of the class which each text is conditioned on


@dataclass(frozen=True)
class Read:
    """Logits of a reader, and the mean hidden state that they are linear in."""

    logits: Float[Tensor, "B C"]
    features: Float[Tensor, "B M"]


class Play:
    """Masks for a batch, sampled or `decoded`, and what the readers compute from them."""

    def __init__(
        self,
        players: Players,
        batch: Batch,
        rules: Rules,
        decoded: bool = False,
        x: Float[Tensor, "B T D"] | None = None,
    ) -> None:
        self.players, self.batch, self.rules, self.decoded = players, batch, rules, decoded
        self.x: Tensor = players.predictor.embed(batch) if x is None else x
        self._read: dict[tuple[str, str, int, bool], Read] = {}

    @cached_property
    def grouping(self) -> Grouping:
        return self.rules.units(self.batch)

    @cached_property
    def condition(self) -> Int[Tensor, " B"] | None:
        """The class that the masks depend on."""
        if self.rules.condition == "none":
            return None
        if self.rules.condition == "label" and not self.decoded:
            return self.batch.labels
        guide = "guide" if "guide" in self.players.readers else "predictor"
        return self.read(guide, "all").logits.argmax(-1)

    @cached_property
    def theta(self) -> Float[Tensor, "B K U P"]:
        if self.rules.saliency:
            return self.salient(self.rules.saliency)
        return self.players.theta(self.x, self.batch, self.grouping, self.condition)

    def salient(self, explainer: str) -> Float[Tensor, "B 1 U 1"]:
        """The saliency of each unit for the teacher's prediction on all words, by the named explainer."""
        return self.grouping.pooled(saliency(explainer, self.players, self.x, self.batch)[..., None])[:, None]

    @cached_property
    def drawn(self) -> Drawn:
        mask = self.grouping.mask
        if not self.decoded:
            return self.rules.relaxation.draw(self.theta, mask)
        chance = self.rules.relaxation.chance(self.theta, mask)
        return Drawn(self.rules.decoding(chance, mask), chance)

    @cached_property
    def z(self) -> Float[Tensor, "B K T"]:
        """The token masks."""
        return self.grouping.expanded(self.drawn.z)

    @property
    def share(self) -> float:
        """The mean share of words that the masks select; 1 before any mask is sampled."""
        if "drawn" not in self.__dict__:
            return 1.0
        return float(self.z.detach().mean(1).sum() / self.batch.mask.sum())

    def of_mask(self, values: Float[Tensor, "B K N"], mask: int) -> Float[Tensor, "B N"]:
        """The entries of one mask; OWN is that of the class that each text is conditioned on."""
        if mask != OWN:
            return values[:, mask]
        assert self.condition is not None
        return values[torch.arange(len(values), device=values.device), self.condition]

    def read(self, player: str, view: str, mask: int = 0, stopped: bool = False) -> Read:
        """A reader's output on the selected words, the rest, or all of them.

        With `stopped`, nothing is learnt through the mask.
        """
        key = player, view, 0 if view == "all" else mask, stopped or view == "all"
        if key not in self._read:
            self._read[key] = self._answer(player, view, mask, stopped)
        return self._read[key]

    def shown(self, view: str, mask: int, stopped: bool) -> tuple[Float[Tensor, "B W D"], Batch]:
        """The embeddings that a reader gets."""
        if view == "all":
            return self.x, self.batch
        z = self.of_mask(self.z.detach() if stopped else self.z, mask)
        z = z if view == "selected" else (1 - z) * self.batch.mask
        x, batch = self.left(self.x, self.batch, z)
        if "paths" not in self.players.extras:
            return x, batch
        chosen = self.condition if mask == OWN else torch.full_like(batch.labels, mask)
        path: Tensor = self.players.extras["paths"](chosen)
        return x + path.repeat(1, x.shape[-1] // path.shape[-1])[:, None], batch

    def left(
        self, x: Float[Tensor, "B T D"], batch: Batch, z: Float[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B W D"], Batch]:
        """The masked embeddings."""
        if self.rules.reading == "delete":
            return compacted(x, batch, z)
        if "blank" in self.players.extras:
            blank: Tensor = next(self.players.extras["blank"].parameters())
            return blended(x, z, blank.repeat(x.shape[-1] // len(blank))), batch
        return blended(x, z, blank_of(self.players.predictor, batch, self.rules.reading)), batch

    @cached_property
    def concepts(self) -> Inferred:
        """Concepts inferred from the words of each mask, all in one forward pass."""
        masks = self.z.shape[1]
        rows = torch.arange(len(self.batch), device=self.x.device).repeat_interleave(masks)
        found = self._reading("predictor", *self.left(self.x[rows], self.batch[rows], self.z.flatten(0, 1)))
        features, logits = (each.reshape(-1, masks, each.shape[-1]) for each in (found.features, found.logits))
        inferred: Inferred = self.players.extras["concepts"](features, logits, self.decoded)
        return inferred

    def _answer(self, player: str, view: str, mask: int, stopped: bool) -> Read:
        return self._reading(player, *self.shown(view, mask, stopped))

    def _reading(self, player: str, x: Float[Tensor, "B W D"], batch: Batch) -> Read:
        reader = self.players.reader(player)
        states = reader.states(x, batch)
        weights = reader.attend(states, batch)
        return Read(reader.decode(states, weights), (weights[:, None] @ states).squeeze(1))
