"""Scores of phrases: occlusion, Shapley values and interactions, summed gradients."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay import progress
from assay.errors import AssayError
from assay.explainers.integrated import IntegratedGradients
from assay.explainers.needs import Removing, Target, check_removal, demand
from assay.explainers.shapley import every
from assay.models.erasure import version_probabilities
from assay.trees import Tree
from assay.types import Batch, Model

Sets = Bool[Tensor, "B S T"]
SetScores = Float[Tensor, "B S"]
Examples = Int[Tensor, " N"]
Kept = Bool[Tensor, "N T"]
Worth = Float[Tensor, " N"]
Read = Callable[[Sets], SetScores]
"""One score for each of S sets of tokens of texts that were given before."""


@runtime_checkable
class PhraseScorer(Protocol):
    """Scores sets of tokens, such as phrases, for a class; the sets need not be contiguous."""

    def unfit(self, model: Model) -> str | None:
        """Why the model does not fit, as the end of a sentence, or None."""

    def __call__(self, model: Model, batch: Batch, target: Target, chosen: Sets) -> SetScores:
        """One score for each of S sets of tokens; 0 for an empty one."""


@runtime_checkable
class ReadyScorer(PhraseScorer, Protocol):
    """A scorer that can cache what it has computed for a batch, for repeated queries."""

    def ready(self, model: Model, batch: Batch, target: Target) -> Read:
        """The same scores as a function of word sets, with a cache."""


def reading(scorer: PhraseScorer, model: Model, batch: Batch, target: Target) -> Read:
    """The scorer over these texts, with a cache where it has one."""
    if isinstance(scorer, ReadyScorer):
        return scorer.ready(model, batch, target)
    return partial(scorer, model, batch, target)


@runtime_checkable
class TreeBuilder(Protocol):
    """Builds a tree of phrases for each text."""

    def unfit(self, model: Model) -> str | None:
        """Why the model does not fit, as the end of a sentence, or None."""

    def __call__(self, model: Model, batch: Batch, target: Target) -> list[Tree]:
        """A tree for each text, which has at least one word."""


# A cache of the probabilities of versions of a few texts.


class Versions:
    """The cached probabilities of versions of texts, each text with the class to explain."""

    def __init__(self, model: Model, batch: Batch, target: Target, removal: str = "delete") -> None:
        self.model, self.batch, self.target, self.removal = model, batch, target, removal
        self._numbers: dict[bytes, int] = {}
        self._answers: Float[Tensor, "K C"] | None = None

    def __len__(self) -> int:
        """The number of versions computed."""
        return len(self._numbers)

    def probabilities(self, example: Examples, kept: Kept) -> Float[Tensor, "N C"]:
        """The probabilities, in float64, of versions of the texts `example` with only the `kept` words left."""
        kept = kept & self.batch.mask[example]
        before = len(self._numbers)
        numbers = np.array(
            [self._numbers.setdefault(name, len(self._numbers)) for name in _names(example, kept)], dtype=np.int64
        )
        asked, first = np.unique(numbers, return_index=True)
        new = torch.as_tensor(first[asked >= before], device=kept.device)
        if len(new):
            read = version_probabilities(self.model, self.batch, example[new], kept[new], self.removal).double()
            self._answers = read if self._answers is None else torch.cat([self._answers, read])
        assert self._answers is not None
        return self._answers[torch.as_tensor(numbers, device=kept.device)]

    def worth(self, example: Examples, kept: Kept) -> Worth:
        """v(S) = p(class | only the words S are left)."""
        return self.probabilities(example, kept).gather(1, self.target[example, None])[:, 0]

    def lead(self, example: Examples, kept: Kept) -> Worth:
        """p(class) minus the largest p of another class, with only these words left."""
        answers, column = self.probabilities(example, kept), self.target[example, None]
        return (answers.gather(1, column) - answers.scatter(1, column, 0.0).amax(1, keepdim=True))[:, 0]


def _names(example: Examples, kept: Kept) -> list[bytes]:
    """A byte string per version, as the cache key."""
    texts = example.cpu().numpy().astype(np.int32)[:, None].view(np.uint8)
    packed = np.concatenate([texts, np.packbits(kept.cpu().numpy(), axis=1)], axis=1)
    return packed.view(f"V{packed.shape[1]}")[:, 0].tolist() if len(packed) else []


# Shapley interaction of two adjacent phrases, among the phrases around them.


def joint_gains(
    versions: Versions, example: Examples, edges: Int[Tensor, "N E"]
) -> tuple[Float[Tensor, "N K"], Examples]:
    """The summed joint gains of the two middle phrases, over the sets of k phrases around them, for each k.

    A gain is v(S+l+r) − v(S+l) − v(S+r) + v(S) (Chen et al., 2020). The `edges` are where phrases begin, and
    last where the last one ends: of as many on each side of the two; an empty one is none. Also told is how many
    there are around the two.
    """
    at_once = max(1, (1 << 24) // (versions.batch.ids.shape[1] << edges.shape[1] - 1))
    parts = [
        _gains(versions, *each) for each in zip(torch.split(example, at_once), torch.split(edges, at_once), strict=True)
    ]
    gains, counts = zip(*parts, strict=True)
    return torch.cat(gains), torch.cat(counts)


def _gains(versions: Versions, example: Examples, edges: Int[Tensor, "N E"]) -> tuple[Float[Tensor, "N K"], Examples]:
    middle = (edges.shape[1] - 1) // 2  # the number of the right one of the two
    there = edges.diff(dim=-1) > 0
    there = torch.cat([there[:, : middle - 1], there[:, middle + 1 :]], dim=-1)  # [N, 2w]
    sets = every(there.shape[1], edges.device)  # [P, 2w]
    possible = ~(sets & ~there[:, None]).any(-1)
    case, number = possible.nonzero(as_tuple=True)
    pairs = every(2, edges.device)[[3, 1, 2, 0]]  # both, left, right, neither
    left, right = (half[:, None].expand(-1, 4, -1) for half in (sets[:, : middle - 1], sets[:, middle - 1 :]))
    present = torch.cat([left, pairs.expand(len(sets), -1, -1), right], dim=-1)  # [P, 4, E - 1]
    present = torch.nn.functional.pad(present, (1, 1))  # before the first edge, and behind the last
    words = torch.arange(versions.batch.ids.shape[1], device=edges.device)
    segment = (edges[:, :, None] <= words).sum(1)  # [N, T]
    kept = present[number].gather(2, segment[case][:, None].expand(-1, 4, -1))  # [M, 4, T]
    worth = versions.worth(example[case].repeat_interleave(4), kept.flatten(0, 1)).reshape(-1, 4)
    together = worth[:, 0] - worth[:, 1] - worth[:, 2] + worth[:, 3]
    gains = together.new_zeros(len(edges), sets.shape[1] + 1)
    gains.index_put_((case, sets.sum(-1)[number]), together, accumulate=True)
    return gains, there.sum(-1)


def shares(players: int, sizes: int) -> Float[Tensor, "N S"]:
    """The Shapley weight s! (n − s − 1)! / n! of sets of s out of n players."""
    table = torch.zeros(players + 1, sizes, dtype=torch.float64)
    for count in range(1, players + 1):
        for size in range(min(count, sizes)):
            table[count, size] = 1 / (count * math.comb(count - 1, size))
    return table


# Phrase scores by occlusion: the model's probabilities without a phrase, or with nothing else.


class CachedScorer(ABC):
    """A scorer that computes something of the texts once, for repeated queries."""

    @abstractmethod
    def ready(self, model: Model, batch: Batch, target: Target) -> Read:
        """The scores as a function of word sets."""

    def __call__(self, model: Model, batch: Batch, target: Target, chosen: Sets) -> SetScores:
        return self.ready(model, batch, target)(chosen)


class VersionScorer(Removing, CachedScorer):
    """A scorer based on texts with some words removed, in the way that `removal` says."""

    def __post_init__(self) -> None:
        check_removal(self.removal)

    def ready(self, model: Model, batch: Batch, target: Target) -> Read:
        demand(self.unfit(model))
        versions = Versions(model, batch, target, self.removal)
        return lambda chosen: self.scored(versions, chosen & batch.mask[:, None])

    @abstractmethod
    def scored(self, versions: Versions, chosen: Sets) -> SetScores:
        """The scores of sets of words, from versions of their texts."""


@dataclass(frozen=True)
class Without(VersionScorer):
    """p(class | text) − p(class | text without the phrase), signed (Li et al., 2016)."""

    removal: str = "delete"

    def scored(self, versions: Versions, chosen: Sets) -> SetScores:
        mask = versions.batch.mask[:, None]
        answers = _worth(versions, torch.cat([mask, mask & ~chosen], dim=1))
        return answers[:, :1] - answers[:, 1:]


@dataclass(frozen=True)
class Alone(VersionScorer):
    """p(class | the phrase alone) − p(class | nothing), signed."""

    removal: str = "delete"

    def scored(self, versions: Versions, chosen: Sets) -> SetScores:
        nothing = torch.zeros_like(versions.batch.mask)[:, None]
        answers = _worth(versions, torch.cat([nothing, chosen], dim=1))
        return answers[:, 1:] - answers[:, :1]


@dataclass(frozen=True)
class Margin(VersionScorer):
    """p(class) less the largest p of another class, given the phrase alone (Chen et al., 2020)."""

    removal: str = "delete"

    def scored(self, versions: Versions, chosen: Sets) -> SetScores:
        texts = torch.arange(len(chosen), device=chosen.device).repeat_interleave(chosen.shape[1])
        lead = versions.lead(texts, chosen.flatten(0, 1)).reshape(chosen.shape[:2])
        return lead * chosen.any(-1)


def _worth(versions: Versions, kept: Bool[Tensor, "B N T"]) -> Float[Tensor, "B N"]:
    texts = torch.arange(len(kept), device=kept.device).repeat_interleave(kept.shape[1])
    return versions.worth(texts, kept.flatten(0, 1)).reshape(kept.shape[:2])


# Phrase scores by Shapley values: a phrase is one player among the words around it.


QUIET = 24  # levels; more of them can take long enough to be watched
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

    def scored(self, versions: Versions, chosen: Sets) -> SetScores:
        texts, number = chosen.any(-1).nonzero(as_tuple=True)
        scores = versions.target.new_zeros(chosen.shape[:2], dtype=torch.double)
        at_once = max(1, (1 << 24) // (chosen.shape[-1] << 2 * self.window + 1))
        for example, position in zip(torch.split(texts, at_once), torch.split(number, at_once), strict=True):
            scores[example, position] = self._values(versions, example, chosen[example, position])
        return scores

    def _values(self, versions: Versions, example: Examples, phrase: Kept) -> Worth:
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


def around(phrase: Kept, mask: Kept, window: int) -> tuple[Int[Tensor, "N K"], Bool[Tensor, "N K"]]:
    """The positions of the words nearest to a phrase, up to two windows, and their mask."""
    positions = torch.arange(phrase.shape[1], device=phrase.device)
    apart = (positions[:, None] - positions).abs()
    distance = torch.where(phrase[:, None], apart, len(positions)).amin(-1)  # [N, T]
    near = mask & ~phrase & (distance <= window)
    order = torch.where(near, distance, len(positions) + 1).argsort(dim=-1, stable=True)[:, : 2 * window]
    return order, near.gather(1, order)


# Phrase scores as sums of token scores.


@dataclass(frozen=True)
class SummedGradients(CachedScorer):
    """Integrated gradients summed over a phrase's words: of the whole text p(text) − p(baseline).

    No phrase is more than its words, so words never work together here.
    """

    baseline: str = "zero"
    tolerance: float = 1e-2

    def __post_init__(self) -> None:
        _ = self._words  # refuses options that mean nothing

    @property
    def _words(self) -> IntegratedGradients:
        return IntegratedGradients(self.baseline, self.tolerance)

    def unfit(self, model: Model) -> str | None:
        return self._words.unfit(model)

    def ready(self, model: Model, batch: Batch, target: Target) -> Read:
        words = self._words(model, batch, target).detach().double() * batch.mask
        return lambda chosen: (chosen.to(words) @ words[..., None])[..., 0]


def steps(count: int, title: str) -> Iterator[int]:
    """Step numbers, with a progress bar if they are many."""
    if count <= QUIET:
        yield from range(count)
        return
    with progress.bar() as shown:
        task = shown.add_task(title, total=count)
        for step in range(count):
            yield step
            shown.advance(task)
