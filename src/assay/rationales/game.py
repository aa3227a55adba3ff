"""Game: its forward pass on one batch, the moves of its players, and the stages of a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers import EXPLAINERS
from assay.models.erasure import baseline, gathered, left
from assay.rationales.players import Inferred, Players, Reader, Rules
from assay.rationales.relaxations import Drawn
from assay.rationales.units import Grouping
from assay.types import Batch

Embedded = Float[Tensor, "B T D"]
Weights = Float[Tensor, "B T"]  # how far each word is selected, or its score
Costs = Float[Tensor, " B"]
Left = tuple[Float[Tensor, "B W D"], Batch]  # what is left of texts, as embeddings and a batch

OWN = -1  # as the number of a mask: that of the class which each text is conditioned on
DECAY = 0.95  # of the mean cost so far, at each step


def compacted(x: Embedded, batch: Batch, z: Weights) -> Left:
    """Deletes unselected words and closes the gaps; a text without selected words is only padding."""
    kept = (z > 0) & batch.mask
    width = max(1, int(kept.sum(-1).max()))
    positions: Int[Tensor, "B W"] = left(kept)[:, :width]
    rows = positions.new_tensor(range(len(batch)))
    return x[rows[:, None], positions], gathered(batch, rows, positions, kept)


@torch.no_grad()
def saliency(name: str, players: Players, x: Embedded, batch: Batch) -> Weights:
    """Scores of an explainer for the class that the teacher predicts from these embeddings; labels are not used."""
    numbered = replace(batch, labels=torch.arange(len(batch), device=x.device))  # explainers ask for some of the rows
    teacher = given(players.reader("teacher"), players.predictor, x.detach(), numbered)
    guess = teacher(x, batch).logits.argmax(-1)
    return EXPLAINERS[name](teacher, numbered, guess).detach().to(x.dtype)


def given(reader: Reader, owner: Reader, x: Embedded, numbered: Batch) -> Reader:
    """The reader as a model whose embeddings are those given for the batch.

    The labels of the batch are the numbers of its rows.
    """

    def embed(asked: Batch) -> Tensor:
        width = asked.ids.shape[1]
        if not torch.equal(asked.ids, numbered.ids[asked.labels, :width]):
            raise AssayError("An explainer that writes other texts cannot select words; choose another saliency.")
        return x[asked.labels, :width]

    model = copy(reader)  # of the same kind, with the same weights
    model.__dict__ |= {"embed": embed, "blank": owner.blank}
    return model


@dataclass(frozen=True)
class Read:
    """Logits of a reader, and the mean hidden state that they are linear in."""

    logits: Float[Tensor, "B C"]
    features: Float[Tensor, "B M"]


class Play:
    """Masks for a batch, sampled or `decoded`, and what the readers compute from them, lazily and once."""

    def __init__(
        self, players: Players, batch: Batch, rules: Rules, decoded: bool = False, x: Embedded | None = None
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
            self._read[key] = self._reading(player, *self.shown(view, mask, stopped))
        return self._read[key]

    def shown(self, view: str, mask: int, stopped: bool) -> Left:
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

    def left(self, x: Embedded, batch: Batch, z: Weights) -> Left:
        """The masked embeddings: unselected words are deleted, or interpolated towards a blank, z x + (1 − z) blank."""
        reading, extras = self.rules.reading, self.players.extras
        if reading == "delete":
            return compacted(x, batch, z)
        if "blank" in extras:
            learnt: Tensor = next(extras["blank"].parameters())
            blank = learnt.repeat(x.shape[-1] // len(learnt))
        else:
            blank = baseline(self.players.predictor, batch, reading)[0, 0]
        share = z[..., None].to(x.dtype)
        return share * x + (1 - share) * blank, batch

    @cached_property
    def concepts(self) -> Inferred:
        """Concepts inferred from the words of each mask, all in one forward pass."""
        masks = self.z.shape[1]
        rows = torch.arange(len(self.batch), device=self.x.device).repeat_interleave(masks)
        read = self._reading("predictor", *self.left(self.x[rows], self.batch[rows], self.z.flatten(0, 1)))
        features, logits = (each.reshape(-1, masks, each.shape[-1]) for each in (read.features, read.logits))
        inferred: Inferred = self.players.extras["concepts"](features, logits, self.decoded)
        return inferred

    def _reading(self, player: str, x: Float[Tensor, "B W D"], batch: Batch) -> Read:
        reader = self.players.reader(player)
        states = reader.states(x, batch)
        weights = reader.attend(states, batch)
        return Read(reader.decode(states, weights), (weights[:, None] @ states).squeeze(1))


Term = Callable[[Play], Costs]
"""A loss term: the cost of each text; one of a whole batch is the same for all its texts."""

Terms = tuple[tuple[float, Term], ...]
"""Loss terms with their weights."""


@dataclass(frozen=True)
class Move:
    """One gradient update of some players on a weighted sum of loss terms."""

    players: tuple[str, ...]
    terms: Terms

    def costs(self, play: Play) -> Costs:
        """The cost of each text."""
        total = play.x.new_zeros(len(play.batch))
        for weight, term in self.terms:
            total = total + weight * term(play)
        return total

    def loss(self, play: Play, weights: Costs) -> Float[Tensor, ""]:
        """The differentiable loss: the mean cost, and the score function (REINFORCE) where masks have no gradient.

        Its baseline is a running mean of costs, which leaves its expectation as it is (Williams, 1992).
        """
        costs = self.costs(play)
        shares = weights / weights.sum()
        loss = (costs * shares).sum()
        likely = play.drawn.log_probability if "selector" in self.players else None
        if likely is not None:
            sums = play.players.baseline
            expected = sums[0] / sums[1].clamp(min=1e-9) if sums[1] > 0 else loss.detach()
            loss = loss + ((costs.detach() - expected) * likely * shares).sum()
            with torch.no_grad():
                sums.mul_(DECAY).add_(torch.stack([(costs * shares).sum(), torch.ones_like(sums[1])]) * (1 - DECAY))
        return loss


@dataclass(frozen=True)
class Stage:
    """Moves made in turn on each batch, for a `share` of all epochs.

    Masks are drawn anew for each move, or `decoded` without chance. Rates of learning are those of the training times
    the `pace` of each player; with `measured`, that of the predictor is also multiplied by the share of words that it
    gets to read, as Liu et al. (2023) ask of it, but by no less than .05.
    """

    moves: tuple[Move, ...]
    share: float = 1.0
    decoded: bool = False
    pace: Mapping[str, float] = field(default_factory=dict)
    measured: bool = False

    @property
    def players(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(player for move in self.moves for player in move.players))
