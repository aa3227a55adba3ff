"""Training objectives: the loss of each text, and the score on dev texts that early stopping goes by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from assay.data.batches import Tokenised
from assay.data.text import SPECIAL, UNKNOWN
from assay.models import store
from assay.models.erasure import gathered, left
from assay.models.network import Network
from assay.models.options import Training
from assay.models.predictions import graded, groups
from assay.models.regularisers import Read, avoidance, regularised
from assay.types import Batch, Edit, Output, attended

SMALLEST = 1e-10  # of a weight in a logarithm: where attention is sparse, some are 0
CHANCE = 0.6  # some tasks stay at chance, an AUC of 0.5, for several epochs before they are learnt


@runtime_checkable
class Objective(Protocol):
    """A training objective: a loss per text, and a dev score per epoch."""

    @property
    def identity(self) -> dict[str, Any]:
        """JSON of all that decides the loss besides the recipe and the texts; part of a checkpoint's identity."""

    @property
    def begun(self) -> float:
        """The dev score above which early stopping counts epochs; below it, learning has not begun."""

    def losses(self, network: Any, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        """The loss of each text; the training loop sums them, weighted by class."""

    def judged(self, network: Any, rows: Sequence[Tokenised]) -> tuple[float, float]:
        """The dev score, higher is better, and the dev loss that decides between equal scores."""


@dataclass(frozen=True)
class Learning:
    """What an objective may use beside the network: the training options, and auxiliary heads trained with it."""

    options: Training
    heads: nn.ModuleDict


@dataclass(frozen=True)
class Labels:
    """Cross-entropy of the labels, with the regularisers of the options, and a penalty on attention to some words."""

    begun: ClassVar[float] = CHANCE
    avoided: tuple[int, ...] = ()  # their ids

    @property
    def identity(self) -> dict[str, Any]:
        return {}

    def losses(self, network: Network, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        read, losses = _forward(network, batch, learning)
        return losses + learning.options.deceive * avoidance(read, self.avoided) if self.avoided else losses

    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, rows)


@dataclass(frozen=True)
class Guided:
    """Cross-entropy of the labels under the frozen attention of a teacher network.

    Wiegreffe and Pinter (2019): what an attention is worth to a model that learns with it.
    """

    begun: ClassVar[float] = CHANCE
    teacher: Network = field(repr=False)

    @property
    def identity(self) -> dict[str, Any]:
        return {"guided": store.fingerprint(self.teacher)}

    def losses(self, network: Network, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        return _forward(network, batch, learning, self.teacher_edit(batch))[1]

    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, rows, self.teacher_edit)

    def teacher_edit(self, batch: Batch) -> Edit:
        """The edit that gives a batch the teacher's attention."""
        shown = teacher_output(self.teacher, batch).attention[-1]
        return lambda weights, mask: shown.to(weights)


@dataclass(frozen=True)
class Imitated:
    """The trained adversary: a teacher's predictions, with attention as different from the teacher's as possible.

    TVD(ŷ_a, ŷ_b) − λ KL(α_a ‖ α_b) for the teacher a and the network b; Wiegreffe and Pinter (2019), section 4.
    A weight counts as at least SMALLEST in a logarithm, so the divergence is bounded and nothing is gained below.
    """

    begun: ClassVar[float] = -float("inf")
    teacher: Network = field(repr=False)
    strength: float  # λ

    @property
    def identity(self) -> dict[str, Any]:
        return {"imitated": store.fingerprint(self.teacher), "strength": self.strength}

    def losses(self, network: Network, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        base, output = teacher_output(self.teacher, batch), network(network.embed(batch), batch)
        apart = (base.probabilities - output.probabilities).abs().sum(-1) / 2
        theirs, own = (found.attention[-1].clamp(min=SMALLEST) for found in (base, output))
        divergence = base.attention[-1] * (theirs.log() - own.log())  # nothing where the teacher's weight is 0
        losses: Tensor = apart - self.strength * divergence.sum(-1)
        return losses

    @torch.no_grad()
    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        learning = Learning(Training(), nn.ModuleDict())
        was_training = network.training
        network.eval()
        found = [self.losses(network, batch, learning).double().cpu().numpy() for _, batch in groups(network, rows)]
        network.train(was_training)
        loss = float(np.concatenate(found).mean())
        return -loss, loss


@dataclass(frozen=True)
class Without:
    """Cross-entropy of the labels of texts from which some words are deleted."""

    begun: ClassVar[float] = CHANCE
    words: tuple[int, ...]  # their ids

    @property
    def identity(self) -> dict[str, Any]:
        return {"without": list(self.words)}

    def losses(self, network: Network, batch: Batch, learning: Learning) -> Float[Tensor, " B"]:
        return _forward(network, self.left(batch), learning)[1]

    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, [self._shortened(row) for row in rows])

    def _shortened(self, row: Tokenised) -> Tokenised:
        kept = ~torch.isin(row.ids, torch.tensor(self.words))
        ids = row.ids if kept.any() else torch.full_like(row.ids, SPECIAL.index(UNKNOWN))
        kept[0] |= not kept.any()
        return replace(row, ids=ids[kept], spans=row.spans[kept], sentences=row.sentences[kept], truth=None)

    def left(self, batch: Batch) -> Batch:
        """The texts without the words; one that has no other is one unknown word."""
        gone = torch.isin(batch.ids, torch.tensor(self.words).to(batch.ids))
        kept = batch.mask & ~gone
        first = torch.zeros_like(kept)
        first[:, 0] = ~kept.any(-1)
        blank = replace(batch, ids=batch.ids.masked_fill(first, SPECIAL.index(UNKNOWN)))
        kept = kept | first
        width = int(kept.sum(-1).max())
        return gathered(blank, torch.arange(len(batch), device=kept.device), left(kept)[:, :width], kept)


def _forward(
    network: Network, batch: Batch, learning: Learning, edit: Edit | None = None
) -> tuple[Read, Float[Tensor, " B"]]:
    """The forward pass of a batch, and the cross-entropy of each text plus all regularisers."""
    x = network.embed(batch)
    states = network.states(x, batch)
    weights = network.attend(states, batch)
    if edit is not None:
        weights = edit(weights, attended(network, batch))
    read = Read(network, x, batch, states, weights)
    losses = nn.functional.cross_entropy(network.decode(states, weights), batch.labels, reduction="none")
    return read, losses + regularised(read, learning.options, learning.heads)


@torch.no_grad()
def teacher_output(teacher: Network, batch: Batch) -> Output:
    """The teacher's output for a batch, logits and attention, without dropout."""
    was_training = teacher.training
    teacher.eval().to(batch.ids.device)
    output: Output = teacher(teacher.embed(batch), batch)
    teacher.train(was_training)
    return output
