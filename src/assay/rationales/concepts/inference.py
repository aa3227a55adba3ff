"""Concept inference: which concepts a text has, and how each votes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.rationales.relaxations.gumbel import GumbelStraightThrough

DRAWING = GumbelStraightThrough()


@dataclass(frozen=True)
class Inferred:
    """K concepts for each text: presence, its probability, and votes for the classes.

    `features` are what was read of its words, and `named` scores which concept they belong to.
    """

    presence: Float[Tensor, "B K"]
    chance: Float[Tensor, "B K"]
    votes: Float[Tensor, "B K C"]
    features: Float[Tensor, "B K M"]
    named: Float[Tensor, "B K K"]

    @property
    def contributions(self) -> Float[Tensor, "B K C"]:
        return self.presence[..., None] * self.votes

    @property
    def logits(self) -> Float[Tensor, "B C"]:
        """The sum of the contributions alone: a text without any concept has no class."""
        return self.contributions.sum(1)


class Concepts(nn.Module):
    """Linear layer from features to the presence of each concept, and its votes.

    The votes of a `weighted` concept are the same in all texts (Bouchacourt and Denoyer, 2019); those of another are
    what is read of its words (Antognini and Faltings, 2021).
    """

    def __init__(self, size: int, concepts: int, classes: int, weighted: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.presence = nn.Linear(size, concepts)
        nn.init.constant_(self.presence.bias, 1.0)  # a concept that is never there learns nothing
        self.naming = nn.Linear(size, concepts)
        turns = torch.arange(concepts) % classes  # each concept begins as one for a class, so that no class has none
        self.weights = nn.Parameter(torch.eye(classes)[turns]) if weighted else None

    def forward(self, features: Float[Tensor, "B K M"], read: Float[Tensor, "B K C"], decoded: bool) -> Inferred:
        """Infers concepts from features and logits of the words of each; sampled, or thresholded if `decoded`."""
        normed = self.norm(features)
        scores = (normed * self.presence.weight).sum(-1) + self.presence.bias
        chance = scores.sigmoid()
        presence = (chance > 0.5).to(chance) if decoded else self._drawn(scores)
        votes = read if self.weights is None else self.weights.expand(len(features), -1, -1)
        return Inferred(presence, chance, votes, features, self.naming(normed))

    def _drawn(self, scores: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        # differs from Bouchacourt and Denoyer (2019): a gradient passes through presence, which the score function
        # would only guess at
        drawn = DRAWING.draw(scores[..., None, None], torch.ones_like(scores[:, :1], dtype=torch.bool))
        return drawn.z[..., 0]
