"""Cohesion loss: how much a phrase's score depends on its words being adjacent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import AssayError
from assay.explainers.surrogates.coalitions import keys, uniform
from assay.metrics.erasure import cohesion
from assay.models.erasure import capacity, extents, gathered, query_lengths
from assay.trees import Phrase, Tree
from assay.types import Batch, Model


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

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], trees: Sequence[Tree]
    ) -> Float[np.ndarray, " B"]:
        chosen = [strongest(tree) for tree in trees]
        start, stop = (
            batch.ids.new_tensor([getattr(each, end) for each in chosen])[:, None] for end in ("start", "stop")
        )
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        orders = scattered(batch, (positions >= start) & (positions < stop), self.shuffles, self.seed)
        whole = positions.expand(len(batch), 1, -1)
        answers = ordered_probabilities(model, batch, torch.cat([whole, orders], dim=1))
        found = answers.gather(2, target[:, None, None].expand(-1, answers.shape[1], 1))[..., 0].double().cpu().numpy()
        return cohesion(found[:, 0], found[:, 1:])


def strongest(tree: Tree) -> Phrase:
    """The phrase of the highest score with several words that is not the whole text, if there is one."""
    phrases = {each for level in tree.levels for each in level}
    several = [each for each in phrases if 1 < each.stop - each.start < tree.words]
    return max(several, key=lambda each: (each.score, -each.start, each.stop), default=tree.levels[0][0])


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
