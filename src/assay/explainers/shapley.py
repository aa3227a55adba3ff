"""Shapley and Owen values: the marginal contribution of tokens to coalitions of others."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.baselines import mixed, text_numbers
from assay.explainers.needs import Detailed, Removing, Scores, Target
from assay.models.erasure import kept_probabilities
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model, at_least_float32

# Token coalitions: sampling, and the model's probabilities when only a coalition is left.


TOKENS = 2048  # of texts that are explained together; each of them is read some hundred times
BITS = 53  # of a random number: all that a double holds

Explain = Callable[[Model, Batch, Int[Tensor, " B"]], Attribution]


class Surrogate(Removing, Detailed):
    """The base class of explainers that query subsets of tokens; `removal` says how the others are removed."""

    def explain(self, model: Model, batch: Batch, target: Target) -> Attribution:
        return by_length(self.of_length, model, batch, target)

    @abstractmethod
    def of_length(self, model: Model, batch: Batch, target: Target) -> Attribution:
        """The scores and diagnostics of texts of one length, without padding."""


def by_length(explain: Explain, model: Model, batch: Batch, target: Target) -> Attribution:
    """Applies `explain` to groups of texts of one length, without padding.

    So nothing below has to know of padding, no text is read more often because a longer one stands beside it, and
    texts of one length share the plan of what is read.
    """
    scores = at_least_float32(model.embed(batch[:1])).new_zeros(batch.ids.shape)
    numbers: dict[str, Tensor] = {}
    errors: Tensor | None = None
    for rows, length in _alike(batch):
        found = explain(model, batch[rows].narrowed(length), target[rows])
        scores[rows, :length] = found.scores.to(scores.dtype)
        for name, values in found.numbers.items():
            numbers.setdefault(name, scores.new_zeros(len(batch)))[rows] = values.to(scores.dtype)
        if found.errors is not None:
            errors = torch.zeros_like(scores) if errors is None else errors
            errors[rows, :length] = found.errors.to(scores.dtype)
    return Attribution(scores, numbers, errors)


def _alike(batch: Batch) -> Iterator[tuple[Int[Tensor, " N"], int]]:
    """Rows of one length, with that length; empty texts are skipped."""
    for length in sorted(set(batch.lengths.tolist())):
        rows = (batch.lengths == length).nonzero()[:, 0]
        for part in rows.split(max(1, TOKENS // max(1, length))) if length else ():
            yield part, length


def worth(
    model: Model, batch: Batch, target: Target, kept: Bool[Tensor, "B N T"], removal: str
) -> Float[Tensor, "B N"]:
    """v(S) = p(target | only the tokens S are left) for N coalitions of each text, in float64."""
    answers = kept_probabilities(model, batch, kept, removal)
    return answers.gather(2, target[:, None, None].expand(-1, kept.shape[1], 1))[..., 0].double()


def keys(batch: Batch, seed: int) -> Int[Tensor, " B"]:
    """A random key per text that depends on its words, their order and the seed alone."""
    return mixed(mixed(text_numbers(batch) + seed) + 1)


def uniform(keys: Int[Tensor, " B"], *shape: int) -> Float[Tensor, "B ..."]:
    """Random numbers in [0, 1) per key; a prefix does not depend on how many are drawn."""
    counters = torch.arange(torch.Size(shape).numel(), device=keys.device)
    bits = mixed(keys[:, None] + mixed(counters + 1)) & ((1 << BITS) - 1)
    return (bits.double() / (1 << BITS)).reshape(len(keys), *shape)


def permutations(keys: Int[Tensor, " B"], count: int, tokens: int) -> Int[Tensor, "B N T"]:
    """Random permutations of the tokens, as ranks."""
    return uniform(keys, count, tokens).argsort(-1)


def every(tokens: int, device: torch.device) -> Bool[Tensor, "N T"]:
    """All subsets of tokens; token t is in set n if bit t of n is set."""
    positions = torch.arange(tokens, device=device)
    return (torch.arange(1 << tokens, device=device)[:, None] >> positions & 1).bool()


# Shapley values: a token's marginal contribution, averaged over all orders of the tokens.


PAIRS = 4  # of orders at least: with fewer, the standard errors mean little


@dataclass(frozen=True)
class Shapley(Surrogate):
    """The token's Shapley value: its mean contribution over all orders of the tokens (Shapley, 1953).

    Texts of at most `exact` tokens are read in all 2^T parts. Of longer ones, random orders are followed, each also
    backwards (antithetic; Mitchell et al., 2022): as many as `samples` versions of the text allow, at least PAIRS
    pairs. Either way the scores sum to v(all) − v(none).
    `attribute` tells standard errors, the mean of those over a text, and whether the values are `exact`.
    """

    story: ClassVar[Story] = Story(
        measures=(
            Measure("standard_error", "standard error of a score"),
            Measure("exact", "texts without sampling (share)"),
        )
    )

    exact: int = 10
    samples: int = 512
    removal: str = "delete"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.exact > 20:
            raise AssayError("Exact Shapley values are for at most 20 tokens: a text of 21 would be read 2^21 times.")

    def of_length(self, model: Model, batch: Batch, target: Target) -> Attribution:
        exact = batch.ids.shape[1] <= max(1, self.exact)  # one token has one order
        scores, errors = (self._enumerated if exact else self._sampled)(model, batch, target)
        numbers = {"standard_error": errors.mean(-1), "exact": torch.full_like(errors[:, 0], float(exact))}
        return Attribution(scores, numbers, errors)

    def _enumerated(self, model: Model, batch: Batch, target: Target) -> tuple[Scores, Scores]:
        parts = every(batch.ids.shape[1], batch.ids.device)
        answers = worth(model, batch, target, parts.expand(len(batch), -1, -1), self.removal)
        values = answers @ weights(batch.ids.shape[1]).to(answers)
        return values, torch.zeros_like(values)

    def _sampled(self, model: Model, batch: Batch, target: Target) -> tuple[Scores, Scores]:
        rows, tokens = batch.ids.shape
        pairs = max(PAIRS, self.samples // (2 * (tokens - 1)))
        ahead = permutations(keys(batch, self.seed), pairs, tokens)
        ranks = torch.cat([ahead, tokens - 1 - ahead], dim=1)
        sizes = torch.arange(1, tokens, device=ranks.device)
        between = (ranks[:, :, None] < sizes[:, None]).flatten(1, 2)
        ends = torch.stack([torch.zeros_like(batch.mask), batch.mask], dim=1)
        answers = worth(model, batch, target, torch.cat([ends, between], dim=1), self.removal)
        none, whole = (end[:, None, None].expand(-1, 2 * pairs, 1) for end in (answers[:, 0], answers[:, 1]))
        path = torch.cat([none, answers[:, 2:].reshape(rows, 2 * pairs, tokens - 1), whole], dim=-1)
        gains = path.diff(dim=-1).gather(-1, ranks)  # what each token added when its turn came
        both = gains.reshape(rows, 2, pairs, tokens).mean(1)
        return both.mean(1), both.std(1) / math.sqrt(pairs)


def weights(tokens: int) -> Float[Tensor, "N T"]:
    """φ_i = Σ_S weights[S, i] v(S): (s − 1)! (T − s)! / T! for sets with i, −s! (T − s − 1)! / T! for those without."""
    parts = every(tokens, torch.device("cpu"))
    added = torch.tensor(
        [1 / (tokens * math.comb(tokens - 1, size)) for size in range(tokens)], dtype=torch.float64
    )  # the share of orders in which a token comes right after `size` given others
    sizes = parts.sum(-1, keepdim=True)
    return torch.where(parts, added[(sizes - 1).clamp(min=0)], -added[sizes.clamp(max=tokens - 1)])


# Owen values: hierarchical Shapley values over recursive halves of the text.


@dataclass(frozen=True)
class Owen(Surrogate):
    """The token's Owen value over the text halved again and again (Owen, 1977; partition SHAP).

    As a Shapley value, but only over those orders in which the tokens of a node come one right after the other, for
    every node of a balanced binary tree over the positions. Level by level, each node is split in each context that
    its ancestors' siblings, present or absent, make: some ⅔ T² versions of the text. With no more than `reads` of
    them, the nodes of largest absolute value are split first, and tokens of a node that was not split share its value
    equally. The scores sum to v(all) − v(none) in any case.
    `attribute` tells whether it is `exact`: 1 where every node was split.
    """

    story: ClassVar[Story] = Story(measures=(Measure("exact", "texts without sampling (share)"),))

    reads: int = 1024
    removal: str = "delete"

    def of_length(self, model: Model, batch: Batch, target: Target) -> Attribution:
        ends = torch.stack([torch.zeros_like(batch.mask), batch.mask], dim=1)
        answers = worth(model, batch, target, ends, self.removal)
        level = Level(batch.mask[:, None], ends[:, None, :1], answers[:, None, :1], answers[:, None, 1:])
        left = self.reads - 2
        scores, exact = answers.new_zeros(batch.ids.shape), torch.ones_like(batch.mask[:, 0])
        while True:
            contexts = level.contexts.shape[2]
            count = min(left // (2 * contexts), int((level.nodes.sum(-1) > 1).sum(-1).max()))
            split, unsplit = level.parted(max(0, count))
            scores += unsplit.shares()
            exact &= (unsplit.nodes.sum(-1) == 1).all(-1)
            if count <= 0:
                break
            halves = split.halves()
            joined = (split.contexts[:, None] | halves[:, :, :, None]).flatten(1, 3)
            answers = worth(model, batch, target, joined, self.removal)
            level = split.children(halves, answers.reshape(len(batch), 2, count, contexts))
            left -= 2 * count * contexts
        return Attribution(scores, {"exact": exact.double()})


@dataclass(frozen=True)
class Level:
    """M nodes of each text at one depth, in K contexts each, with outputs without and with the node."""

    nodes: Bool[Tensor, "B M T"]
    contexts: Bool[Tensor, "B M K T"]
    without: Float[Tensor, "B M K"]
    joined: Float[Tensor, "B M K"]

    @property
    def values(self) -> Float[Tensor, "B M"]:
        return (self.joined - self.without).mean(-1)

    def shares(self) -> Scores:
        """The nodes' values, divided equally among their tokens."""
        share = self.values / self.nodes.sum(-1)
        return (share[..., None] * self.nodes).sum(1)

    def parted(self, count: int) -> tuple[Level, Level]:
        """The `count` nodes of several tokens with the largest absolute values, and the others."""
        size = self.values.abs().masked_fill(self.nodes.sum(-1) == 1, -1)
        order = size.argsort(dim=-1, descending=True, stable=True)
        return self._chosen(order[:, :count]), self._chosen(order[:, count:])

    def _chosen(self, order: Int[Tensor, "B N"]) -> Level:
        rows = torch.arange(len(order), device=order.device)[:, None]
        return Level(
            self.nodes[rows, order], self.contexts[rows, order], self.without[rows, order], self.joined[rows, order]
        )

    def halves(self) -> Bool[Tensor, "B 2 M T"]:
        """Each node's first and second half; the first has one more token if the number is odd."""
        first = self.nodes & (2 * self.nodes.cumsum(-1) <= self.nodes.sum(-1, keepdim=True) + 1)
        return torch.stack([first, self.nodes & ~first], dim=1)

    def children(self, halves: Bool[Tensor, "B 2 M T"], answers: Float[Tensor, "B 2 M K"]) -> Level:
        """The next level: each half in the contexts of its node, without and with the other half."""
        others, beside = halves.flip(1), answers.flip(1)
        without = torch.cat([self.without[:, None].expand_as(beside), beside], dim=-1)
        joined = torch.cat([answers, self.joined[:, None].expand_as(answers)], dim=-1)
        contexts = self.contexts[:, None].expand(-1, 2, -1, -1, -1)
        contexts = torch.cat([contexts, contexts | others[..., None, :]], dim=-2)
        return Level(halves.flatten(1, 2), contexts.flatten(1, 2), without.flatten(1, 2), joined.flatten(1, 2))
