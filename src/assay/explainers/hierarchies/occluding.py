"""Phrase scores by occlusion: the model's probabilities without a phrase, or with nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.errors import unknown
from assay.explainers.hierarchies.scorers import Read
from assay.explainers.hierarchies.versions import Versions
from assay.explainers.needs import demand, no_blank
from assay.models.erasure import REMOVALS
from assay.types import Batch, Model


class VersionScorer(ABC):
    """A scorer based on texts with some words removed, in the way that `removal` says."""

    removal: str

    def __post_init__(self) -> None:
        if self.removal not in REMOVALS:
            raise unknown("removal", self.removal, REMOVALS)

    def unfit(self, model: Model) -> str | None:
        return None if self.removal == "delete" else no_blank(model)

    def ready(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Read:
        demand(self.unfit(model))
        versions = Versions(model, batch, target, self.removal)
        return lambda chosen: self.scored(versions, chosen & batch.mask[:, None])

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        return self.ready(model, batch, target)(chosen)

    @abstractmethod
    def scored(self, versions: Versions, chosen: Bool[Tensor, "B S T"]) -> Float[Tensor, "B S"]:
        """The scores of sets of words, from versions of their texts."""


@dataclass(frozen=True)
class Without(VersionScorer):
    """p(class | text) − p(class | text without the phrase), signed (Li et al., 2016)."""

    removal: str = "delete"

    def scored(self, versions: Versions, chosen: Bool[Tensor, "B S T"]) -> Float[Tensor, "B S"]:
        mask = versions.batch.mask[:, None]
        answers = _worth(versions, torch.cat([mask, mask & ~chosen], dim=1))
        return answers[:, :1] - answers[:, 1:]


@dataclass(frozen=True)
class Alone(VersionScorer):
    """p(class | the phrase alone) − p(class | nothing), signed."""

    removal: str = "delete"

    def scored(self, versions: Versions, chosen: Bool[Tensor, "B S T"]) -> Float[Tensor, "B S"]:
        nothing = torch.zeros_like(versions.batch.mask)[:, None]
        answers = _worth(versions, torch.cat([nothing, chosen], dim=1))
        return answers[:, 1:] - answers[:, :1]


@dataclass(frozen=True)
class Margin(VersionScorer):
    """p(class) less the largest p of another class, given the phrase alone (Chen et al., 2020)."""

    removal: str = "delete"

    def scored(self, versions: Versions, chosen: Bool[Tensor, "B S T"]) -> Float[Tensor, "B S"]:
        texts = torch.arange(len(chosen), device=chosen.device).repeat_interleave(chosen.shape[1])
        lead = versions.lead(texts, chosen.flatten(0, 1)).reshape(chosen.shape[:2])
        return lead * chosen.any(-1)


def _worth(versions: Versions, kept: Bool[Tensor, "B N T"]) -> Float[Tensor, "B N"]:
    texts = torch.arange(len(kept), device=kept.device).repeat_interleave(kept.shape[1])
    return versions.worth(texts, kept.flatten(0, 1)).reshape(kept.shape[:2])
