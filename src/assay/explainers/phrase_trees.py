"""Hierarchical explanations: trees of phrases with scores and interactions."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError, unknown
from assay.explainers.choice import bare, chosen, separated
from assay.explainers.decomposition import ContextualDecomposition
from assay.explainers.needs import Choosy, Scores, Target, check_removal, demand, no_blank
from assay.explainers.phrase_sampling import SampledDecomposition, SamplingOcclusion
from assay.explainers.phrases import (
    Alone,
    Margin,
    PhraseScorer,
    PhraseShapley,
    Read,
    SummedGradients,
    TreeBuilder,
    Versions,
    Without,
    joint_gains,
    reading,
    shares,
    steps,
)
from assay.explainers.shapley import keys, uniform
from assay.metrics.erasure import cohesion
from assay.models.erasure import capacity, extents, gathered, query_lengths
from assay.trees import Phrase, Tree
from assay.types import Batch, Model

Examples = Int[Tensor, " N"]
Edges = Bool[Tensor, "B E"]

# A cache of phrase scores while a tree grows, and the finished trees.


class PhraseTable:
    """Scores of phrases by start and stop; each is computed once."""

    def __init__(self, read: Read, batch: Batch) -> None:
        if not bool((batch.lengths > 0).all()):
            raise AssayError("A text without words has no hierarchy; leave it out.")
        rows, words = batch.ids.shape
        self._read, self._words = read, words
        self.scores: Float[Tensor, "B F L"] = torch.zeros(
            rows, words + 1, words + 1, dtype=torch.float64, device=batch.ids.device
        )
        self._known = torch.zeros_like(self.scores, dtype=torch.bool)

    def ask(self, example: Examples, start: Examples, stop: Examples) -> None:
        """Computes the scores of these phrases, in one batch."""
        wanted = torch.zeros_like(self._known)
        wanted[example, start, stop] = True
        texts, starts, stops = (wanted & ~self._known).nonzero(as_tuple=True)  # those of a text one after the other
        if not len(texts):
            return
        counts = texts.bincount(minlength=len(wanted))
        slot = torch.arange(len(texts), device=texts.device) - (counts.cumsum(0) - counts)[texts]
        positions = torch.arange(self._words, device=texts.device)
        chosen = torch.zeros(len(wanted), int(counts.max()), self._words, dtype=torch.bool, device=texts.device)
        chosen[texts, slot] = (positions >= starts[:, None]) & (positions < stops[:, None])
        self.scores[texts, starts, stops] = self._read(chosen)[texts, slot].to(self.scores)
        self._known |= wanted


def edges(cuts: Edges, lengths: Int[Tensor, " B"], window: int) -> Int[Tensor, "B E K"]:
    """For each boundary, the cuts before it, itself, and the cuts after it, `window` of each.

    Where a text begins or ends, its first or last cut is repeated.
    """
    positions = torch.arange(cuts.shape[1], device=cuts.device)
    last = torch.where(cuts, positions, 0).cummax(-1).values
    before = torch.nn.functional.pad(last, (1, 0))[:, :-1]
    following = torch.where(cuts, positions, cuts.shape[1]).flip(-1).cummin(-1).values.flip(-1)
    after = torch.nn.functional.pad(following, (0, 1), value=cuts.shape[1])[:, 1:].minimum(lengths[:, None])
    found = [positions.expand_as(before)]
    for _ in range(window):
        found = [before.gather(1, found[0]), *found, after.gather(1, found[-1])]
    return torch.stack(found, dim=-1)


def trees(method: str, ranks: Int[Tensor, "B E"], table: PhraseTable, lengths: Int[Tensor, " B"]) -> list[Tree]:
    """A tree per text, from the level at which each boundary is cut and the scores of phrases."""
    return [
        _tree(method, rank[1:length], score[: length + 1, : length + 1])
        for rank, score, length in zip(ranks.tolist(), table.scores.cpu().numpy(), lengths.tolist(), strict=True)
    ]


def _tree(method: str, ranks: list[int], scores: Float[np.ndarray, "F L"]) -> Tree:
    bounds = [0, len(ranks) + 1]
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    levels = []
    for cut in [None, *order]:
        if cut is not None:
            insort(bounds, cut + 1)
        levels.append(tuple(Phrase(a, b, float(scores[a, b])) for a, b in pairwise(bounds)))
    return Tree(method, tuple(levels))


# The boundaries at which a text is split, and the interactions across all others.


CUT_TIE = 1e-5  # interactions as near as this, each weight being 1, are told apart by rounding: the first one is taken


class Cuts:
    """The boundaries cut so far, and the interaction of the parts on both sides of every other boundary."""

    def __init__(self, versions: Versions, window: int) -> None:
        lengths = versions.batch.lengths
        positions = torch.arange(versions.batch.ids.shape[1] + 1, device=lengths.device)
        self._versions, self._lengths, self._window = versions, lengths, window
        self._inside = (positions > 0) & (positions < lengths[:, None])
        self.made = (positions == 0) | (positions == lengths[:, None])
        self.around = torch.full((*self.made.shape, 2 * window + 3), -1, device=lengths.device)  # of each position
        self._gains = torch.zeros(*self.made.shape, 2 * window + 1, dtype=torch.float64, device=lengths.device)
        self._neighbours = torch.zeros_like(self.made, dtype=torch.long)
        self._shares = shares(max(len(positions), 2 * window + 1), 2 * window + 1).to(lengths.device)

    def interactions(self, players: int | None = None) -> Float[Tensor, "B E"]:
        """The Shapley interaction of the two parts at each boundary, infinite where none can be cut.

        That is Σ_S s! (n − s − 2)! / (n − 1)! times the joint gain, over sets S of the phrases around the two. The n
        players are these and the two, unless another number is given. Only positions whose surroundings have changed
        are read.
        """
        around = edges(self.made, self._lengths, self._window + 1)
        open_ = self._inside & ~self.made
        example, position = ((around != self.around).any(-1) & open_).nonzero(as_tuple=True)
        self.around = around
        if len(example):
            found = joint_gains(self._versions, example, around[example, position])
            self._gains[example, position], self._neighbours[example, position] = found
        return (self._gains * self._weights(players)).sum(-1).masked_fill(~open_, torch.inf)

    def weakest(self, players: int | None = None) -> Int[Tensor, " B"]:
        """The boundary of each text with the weakest interaction."""
        values = self.interactions(players)
        margin = CUT_TIE * self._weights(players)[..., 0].amax(-1, keepdim=True)
        return (values <= values.amin(-1, keepdim=True) + margin).int().argmax(-1)

    def _weights(self, players: int | None) -> Float[Tensor, "B E S"]:
        count = self._neighbours + 2 if players is None else torch.full_like(self._neighbours, players)
        return self._shares[count - 1]


# HEDGE: top-down trees that split phrases where their parts interact least.


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
        check_removal(self.removal)
        if self.scorer is not None and not isinstance(self.scorer, PhraseScorer):
            raise AssayError(f"{self.scorer!r} scores no phrases; give the scorer of a tree beside it, by its name.")

    def unfit(self, model: Model) -> str | None:
        return no_blank(model, self.removal) or (self.scorer.unfit(model) if self.scorer else None)

    def __call__(self, model: Model, batch: Batch, target: Target) -> list[Tree]:
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


# Agglomerative trees: adjacent phrases with the strongest interaction are merged, bottom-up.


JOIN_TIE = 1e-6  # of the largest score: joins that are as near as this are told apart by rounding alone
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

    def __call__(self, model: Model, batch: Batch, target: Target) -> list[Tree]:
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

    def _strongest(self, table: PhraseTable, around: Int[Tensor, "B E 3"], candidates: Edges) -> Int[Tensor, " B"]:
        """The boundary of each text between the two phrases to merge."""
        example, position = candidates.nonzero(as_tuple=True)
        start, _, stop = around[example, position].unbind(-1)
        table.ask(example.repeat(3), torch.cat([start, position, start]), torch.cat([position, stop, stop]))
        phrases = (start, position), (position, stop), (start, stop)
        left, right, both = (table.scores[example, *ends] for ends in phrases)
        gain = both - torch.minimum(left, right) if self.priority == "added" else (both - left - right).abs()
        gains = _spread(gain, candidates, -torch.inf)
        tolerance = JOIN_TIE * table.scores.abs().flatten(1).amax(1, keepdim=True)
        near = gains >= gains.amax(1, keepdim=True) - tolerance
        size = _spread(both.abs(), candidates, torch.inf).masked_fill(~near, torch.inf)
        return (size <= size.amin(1, keepdim=True) + tolerance).int().argmax(1)


def _spread(values: Float[Tensor, " N"], positions: Edges, other: float) -> Float[Tensor, "B E"]:
    return torch.full_like(positions, other, dtype=values.dtype).masked_scatter(positions, values)


# Token scores from a tree of phrases, for comparison with other explainers.


RULES = ("mean", "strongest", "words")


@dataclass(frozen=True)
class Projected(Choosy):
    """The score of the phrases that hold the word, in a hierarchy of phrases (Chen et al., 2020).

    That is their "mean" over the levels, so that a phrase counts as long as it holds together; that of the "strongest"
    below the whole text, by which the authors order words; or that of the "words" on the lowest level alone.
    """

    tree: TreeBuilder = field(default_factory=Hedge)
    rule: str = "mean"

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise unknown("rule", self.rule, RULES)

    def unfit(self, model: Model) -> str | None:
        return self.tree.unfit(model)

    def explain(self, model: Model, batch: Batch, target: Target) -> Scores:
        scores = torch.zeros(batch.ids.shape, device=batch.ids.device)
        texts = batch.lengths.nonzero()[:, 0]
        if len(texts):
            for text, tree in zip(texts.tolist(), self.tree(model, batch[texts], target[texts]), strict=True):
                scores[text, : tree.words] = torch.from_numpy(word_scores(tree, self.rule)).to(scores)
        return scores


def word_scores(tree: Tree, rule: str = "mean") -> Float[np.ndarray, " T"]:
    """One score per word, by one of the RULES."""
    if rule == "words" or len(tree.levels) == 1:
        return np.array(tree.scores)
    levels = tree.levels if rule == "mean" else tree.levels[1:]
    sizes = [[phrase.stop - phrase.start for phrase in level] for level in levels]
    rows = [np.repeat([phrase.score for phrase in level], size) for level, size in zip(levels, sizes, strict=True)]
    found: np.ndarray = np.mean(rows, axis=0) if rule == "mean" else np.max(rows, axis=0)
    return found


# Cohesion loss: how much a phrase's score depends on its words being adjacent.


@dataclass(frozen=True)
class Cohesion:
    """The drop in p(class) when the words of each tree's strongest phrase are scattered (Chen et al., 2020).

    Each of them is taken out and inserted anywhere in the text, `shuffles` times; the other words keep their order.
    """

    shuffles: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if self.shuffles < 1:
            raise AssayError(f"shuffles must be at least 1, got {self.shuffles}.")

    def __call__(self, model: Model, batch: Batch, target: Target, trees: Sequence[Tree]) -> Float[np.ndarray, " B"]:
        chosen = [tree.strongest or tree.levels[0][0] for tree in trees]
        start, stop = (
            batch.ids.new_tensor([getattr(each, end) for each in chosen])[:, None] for end in ("start", "stop")
        )
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        orders = scattered(batch, (positions >= start) & (positions < stop), self.shuffles, self.seed)
        whole = positions.expand(len(batch), 1, -1)
        answers = ordered_probabilities(model, batch, torch.cat([whole, orders], dim=1))
        found = answers.gather(2, target[:, None, None].expand(-1, answers.shape[1], 1))[..., 0].double().cpu().numpy()
        return cohesion(found[:, 0], found[:, 1:])


def with_cohesion(builder: TreeBuilder, model: Model, batch: Batch, target: Target) -> list[Tree]:
    """The trees of these texts with the cohesion of their strongest phrases, where there is one."""
    trees = builder(model, batch, target)
    numbers = Cohesion()(model, batch, target, trees).tolist()
    return [
        tree if tree.strongest is None else replace(tree, cohesion=number)
        for tree, number in zip(trees, numbers, strict=True)
    ]


def scattered(batch: Batch, phrase: Bool[Tensor, "B T"], count: int, seed: int = 0) -> Int[Tensor, "B N T"]:
    """Random permutations of each text that keep the order of words outside the phrase.

    Each such order is as likely as any other, as if the words were put back one by one, each anywhere.
    """
    draws = uniform(keys(batch, seed), batch.ids.shape[1], count).transpose(1, 2)  # the same with more padding
    staying = (batch.mask & ~phrase)[:, None].expand_as(draws)
    rising = torch.where(staying, draws, torch.inf).sort(-1).values
    turn = (staying.long().cumsum(-1) - 1).clamp(min=0)
    sorted_draws = torch.where(staying, rising.gather(-1, turn), draws)
    padding = ~batch.mask[:, None]
    return torch.where(padding, torch.inf, sorted_draws).argsort(dim=-1, stable=True)


@torch.no_grad()
def ordered_probabilities(model: Model, batch: Batch, orders: Int[Tensor, "B N T"]) -> Float[Tensor, "B N C"]:
    """The probabilities of each text with its words permuted; padding stays last."""
    x = model.embed(batch)
    example = torch.arange(len(batch), device=orders.device).repeat_interleave(orders.shape[1])
    longest = int((extents(batch).sum(-1) + query_lengths(batch)).max())
    at_once = max(1, capacity(model, orders.device) // max(1, longest))
    parts = []
    for rows, positions in zip(torch.split(example, at_once), torch.split(orders.flatten(0, 1), at_once), strict=True):
        moved = gathered(batch, rows, positions, batch.mask[rows])
        if batch.sentences is not None:  # words move, where sentences end stays
            moved = replace(moved, sentences=batch.sentences[rows])
        parts.append(model(x[rows[:, None], positions], moved).probabilities)
    return torch.cat(parts).reshape(*orders.shape[:2], -1)


SCORERS: dict[str, PhraseScorer] = {
    "occlusion": Without(),
    "alone": Alone(),
    "margin": Margin(),
    "integrated_gradients": SummedGradients(),
    "shapley": PhraseShapley(),
    "cd": ContextualDecomposition(),
    "soc": SamplingOcclusion(),
    "scd": SampledDecomposition(),
}
"""What can score a phrase; the last two are of use after a `fit`, or without a window."""

TREES: dict[str, TreeBuilder] = {"hedge": Hedge(), "acd": Agglomerative()}
"""What can build a hierarchy, from the top or from the bottom; each has a field `scorer`."""

SAMPLED: dict[str, Agglomerative] = {
    "soc": Agglomerative(SamplingOcclusion()),
    "scd": Agglomerative(SampledDecomposition()),
}
"""The hierarchies of Jin et al. (2020), which are of use when their scorers have been fitted."""


def tree_builders(trees: str | None, scorer: str | None = None) -> dict[str, TreeBuilder]:
    """The tree builders of a comma-separated list, by name; all with that scorer."""
    if trees is None:
        if scorer is not None:
            raise AssayError("A scorer says what a phrase of a tree counts; name a tree as well, such as hedge.")
        return {}
    every: dict[str, TreeBuilder] = {**TREES, **SAMPLED}
    found: dict[str, TreeBuilder] = {name: chosen(name, every, "tree") for name in separated(trees)}
    if not found:
        raise AssayError(f"Name a tree; there are: {', '.join(every)}.")
    if scorer is None:
        return found
    if own := next((name for name in found if bare(name) in SAMPLED), None):
        raise AssayError(f"The tree {own!r} has a scorer of its own; name the tree acd to have another.")
    given = chosen(scorer, SCORERS, "scorer")
    return {f"{name} by {scorer}": replace(cast(Any, builder), scorer=given) for name, builder in found.items()}
