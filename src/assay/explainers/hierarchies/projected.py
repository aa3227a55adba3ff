"""Token scores from a tree of phrases, for comparison with other explainers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from assay.errors import unknown
from assay.explainers.hierarchies.hedge import Hedge
from assay.explainers.hierarchies.scorers import TreeBuilder
from assay.explainers.needs import demand
from assay.trees import Tree
from assay.types import Batch, Model

RULES = ("mean", "strongest", "words")


@dataclass(frozen=True)
class Projected:
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

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        demand(self.unfit(model))
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
