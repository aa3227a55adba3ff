"""Owen values: hierarchical Shapley values over recursive halves of the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.explainers.surrogates.coalitions import Surrogate, worth
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model


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

    def explain(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Attribution:
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

    def shares(self) -> Float[Tensor, "B T"]:
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
