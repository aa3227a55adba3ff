"""Loss terms of concept models, one cost a text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.rationales.decoding import Decoding
from assay.rationales.play import Play


@dataclass(frozen=True)
class ConceptCrossEntropy:
    """The cross-entropy of the concepts' decision."""

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        return F.cross_entropy(play.concepts.logits, play.batch.labels, reduction="none")


@dataclass(frozen=True)
class Consistency:
    """How poorly a classifier recognises each present concept by its words: Σ_k s_k · CE(classifier, k) / K.

    Bouchacourt and Denoyer (2019), equation 5. It is not lowered by concepts that go away.
    """

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        found = play.concepts
        rows, concepts = found.presence.shape
        own = torch.arange(concepts, device=found.named.device).repeat(rows)
        costs = F.cross_entropy(found.named.flatten(0, 1), own, reduction="none").reshape(rows, concepts)
        return (found.presence.detach() * costs).mean(1)


@dataclass(frozen=True)
class Presence:
    """The expected share of present concepts: E‖s‖₀ / K."""

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        return play.concepts.chance.mean(1)


@dataclass(frozen=True)
class Overlap:
    """‖M Mᵀ − l I‖²_F / (K l²) for the K masks M of a text, each to have l words, those of its `rate` rounded up.

    0 for masks of l words without a word in common; Antognini and Faltings (2021), section 3.3.
    """

    # differs from Antognini and Faltings (2021): divided, so that texts and numbers of concepts of any size cost alike

    rate: float

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        return overlap(play.z, Decoding("top", self.rate).counts(play.batch.mask).to(play.z))


@dataclass(frozen=True)
class ConceptSimilarity:
    """The mean cosine of the features of two concepts; Antognini and Faltings (2021), section 3.3."""

    def __call__(self, play: Play) -> Float[Tensor, " B"]:
        return likeness(play.concepts.features)


def overlap(masks: Float[Tensor, "B K T"], words: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    concepts = masks.shape[1]
    identity = torch.eye(concepts, dtype=masks.dtype, device=masks.device)
    share = words.to(masks)[:, None, None]
    return ((masks @ masks.mT) / share - identity).square().sum((1, 2)) / concepts


def likeness(vectors: Float[Tensor, "B K M"]) -> Float[Tensor, " B"]:
    concepts = vectors.shape[1]
    directions = F.normalize(vectors, dim=-1)
    alike = (directions @ directions.mT).sum((1, 2)) - directions.square().sum((1, 2))
    return alike / max(1, concepts * (concepts - 1))
