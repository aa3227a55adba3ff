"""Training objectives: the loss of each text with its regularisers, and the dev score for early stopping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from assay.data.batches import Tokenised
from assay.data.text import SPECIAL, UNKNOWN
from assay.models import store
from assay.models.config import Training
from assay.models.erasure import gathered, left
from assay.models.network import Network
from assay.models.textmodel import TextModel, evaluating, graded, groups
from assay.types import (
    Batch,
    Edit,
    Embeddings,
    ItemStates,
    ItemWeights,
    Mask,
    Output,
    TextScores,
    TokenWeights,
    attended,
    over_tokens,
)

# Regularisers: one number per text, the mean over its words, added to the text's loss.


MASKED = 0.15  # of the words, as Devlin et al. (2019)
Numbers = TextScores


@dataclass(frozen=True)
class Read:
    """The forward pass of a batch: embeddings, hidden states and attention weights."""

    network: Network
    x: Embeddings
    batch: Batch
    states: ItemStates
    weights: ItemWeights

    @cached_property
    def encodings(self) -> Float[Tensor, "B T H"]:
        """The encoder's hidden state for each word."""
        return self.network.encodings(self.x, self.batch, self.states)

    def reread(self, x: Embeddings) -> Float[Tensor, "B T H"]:
        """The encoder's hidden states for other embeddings of the words."""
        return self.network.encodings(x, self.batch, self.network.states(x, self.batch))


def tying(read: Read) -> Numbers:
    """‖h_t − e_t‖₂ (Tutek and Šnajder, 2020), with e_t detached: hidden states are pulled towards embeddings."""
    # differs from Tutek and Šnajder (2020): if embeddings learnt from it as targets they would all become one, and if
    # only as what is read they would run away from the states; both leave words that the states do not tell
    x = read.x.detach()
    encodings = read.reread(x) if read.x.requires_grad else read.encodings
    return _mean((encodings - x).norm(dim=-1), read.batch.mask)


def conicity(read: Read) -> Numbers:
    """cos(h_t, mean of all h): how narrow the cone of the states is (Mohankumar et al., 2020, section 3).

    With it as an objective they train what they call the diversity-driven LSTM.
    """
    encodings, mask = read.encodings, read.batch.mask
    centre = (encodings * mask[..., None]).sum(1, keepdim=True) / mask.sum(-1).clamp(min=1)[:, None, None]
    return _mean(F.cosine_similarity(encodings, centre, dim=-1), mask)


def diversity(read: Read) -> Numbers:
    """The mean of cos(h_s, h_t)² over pairs of words: how far the states are from being orthogonal.

    It asks softly for what the orthogonal LSTM of Mohankumar et al. (2020) is built to have.
    """
    mask = read.batch.mask
    directions = F.normalize(read.encodings, dim=-1) * mask[..., None]
    long = directions.shape[1] > directions.shape[2]
    products = directions.mT @ directions if long else directions @ directions.mT  # both have the same sum of squares
    alike = products.square().sum((1, 2)) - directions.square().sum(-1).square().sum(-1)
    count = mask.sum(-1)
    return alike / (count * (count - 1)).clamp(min=1)


def masked_words(read: Read, head: nn.Module) -> Numbers:
    """−log p(x_t | h_t) for masked words, a masked language model's loss; 0 where no word is masked.

    The output shares the embeddings. Nothing but words is masked or guessed: the markers, the padding and the unknown
    word, which stands for the mask, keep their embeddings.
    """
    network, batch, special = read.network, read.batch, len(SPECIAL)
    drawn = torch.rand(batch.ids.shape, device=batch.ids.device) < MASKED
    hidden = drawn & batch.mask & (batch.ids >= special)
    blank = network.embedding.weight[SPECIAL.index(UNKNOWN)]
    x = torch.where(hidden[..., None], blank, read.x)
    guessed = head(read.reread(x)[hidden]) @ network.embedding.weight[special:].T
    losses = F.cross_entropy(guessed, batch.ids[hidden] - special, reduction="none")
    return _mean(torch.zeros_like(read.x[..., 0]).masked_scatter(hidden, losses), hidden)


def avoidance(read: Read, avoided: tuple[int, ...]) -> Numbers:
    """−log(1 − the attention to the words of these ids) (Pruthi et al., 2020, section 3)."""
    within = read.network.within(read.x, read.batch)
    shown = over_tokens(read.network, read.weights, read.batch) * within
    others = ~torch.isin(read.batch.ids, torch.tensor(avoided).to(read.batch.ids))
    left = (shown * others).sum(-1)  # 1 − mass, without loss of digits where little is left
    return -left.clamp(min=torch.finfo(left.dtype).eps ** 2, max=1).log()  # nothing may be left of a short text


REGULARISERS: dict[str, Callable[[Read], Numbers]] = {"tying": tying, "conicity": conicity, "diversity": diversity}
"""By the name of the option that says how much each counts."""


def regularised(read: Read, options: Training, heads: nn.ModuleDict) -> Numbers | float:
    """The sum of all regularisers that the options name, each times its strength."""
    asked = {name: getattr(options, name) for name in REGULARISERS}
    total: Numbers | float = sum(
        (strength * REGULARISERS[name](read) for name, strength in asked.items() if strength), 0.0
    )
    if options.mlm:
        total = total + options.mlm * masked_words(read, heads["mlm"])
    if options.penalty and (own := read.network.penalty(read.states, read.batch)) is not None:
        total = total + options.penalty * own
    return total


def heads(network: TextModel, options: Training) -> nn.ModuleDict:
    """Auxiliary heads, trained with the network and then dropped: for masked words, a map from states to embeddings."""
    if not options.mlm:
        return nn.ModuleDict()
    assert isinstance(network, Network)
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        head = nn.Linear(network.words_encoder.size, network.architecture.embedding)
    return nn.ModuleDict({"mlm": head}).to(network.decoder.weight)


def _mean(values: TokenWeights, mask: Mask) -> Numbers:
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)


SMALLEST = 1e-10  # of a weight in a logarithm: where attention is sparse, some are 0
CHANCE = 0.6  # some tasks stay at chance, an AUC of 0.5, for several epochs before they are learnt


@runtime_checkable
class Objective(Protocol):
    """A training objective: a loss per text, and a dev score per epoch.

    Early stopping counts epochs above the dev score `begun`; below it, learning has not begun.
    """

    begun: ClassVar[float] = CHANCE

    @property
    def identity(self) -> dict[str, Any]:
        """JSON of all that decides the loss besides the recipe and the texts; part of a checkpoint's identity."""
        return {}

    def losses(self, network: Any, batch: Batch, learning: Learning) -> TextScores:
        """The loss of each text; the training loop sums them, weighted by class."""

    def judged(self, network: Any, rows: Sequence[Tokenised]) -> tuple[float, float]:
        """The dev score, higher is better, and the dev loss that decides between equal scores."""
        return graded(network, rows)


@dataclass(frozen=True)
class Learning:
    """What an objective may use beside the network: the training options, and auxiliary heads trained with it."""

    options: Training
    heads: nn.ModuleDict


@dataclass(frozen=True)
class Labels(Objective):
    """Cross-entropy of the labels, with the regularisers of the options, and a penalty on attention to some words."""

    avoided: tuple[int, ...] = ()  # their ids

    def losses(self, network: Network, batch: Batch, learning: Learning) -> TextScores:
        read, losses = _forward(network, batch, learning)
        return losses + learning.options.deceive * avoidance(read, self.avoided) if self.avoided else losses


@dataclass(frozen=True)
class Guided(Objective):
    """Cross-entropy of the labels under the frozen attention of a teacher network.

    Wiegreffe and Pinter (2019): what an attention is worth to a model that learns with it.
    """

    teacher: Network = field(repr=False)

    @property
    def identity(self) -> dict[str, Any]:
        return {"guided": store.fingerprint(self.teacher)}

    def losses(self, network: Network, batch: Batch, learning: Learning) -> TextScores:
        return _forward(network, batch, learning, self.teacher_edit(batch))[1]

    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        return graded(network, rows, self.teacher_edit)

    def teacher_edit(self, batch: Batch) -> Edit:
        """The edit that gives a batch the teacher's attention."""
        shown = teacher_output(self.teacher, batch).attention[-1]
        return lambda weights, mask: shown.to(weights)


@dataclass(frozen=True)
class Imitated(Objective):
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

    def losses(self, network: Network, batch: Batch, learning: Learning) -> TextScores:
        base, output = teacher_output(self.teacher, batch), network(network.embed(batch), batch)
        apart = (base.probabilities - output.probabilities).abs().sum(-1) / 2
        theirs, own = (found.attention[-1].clamp(min=SMALLEST) for found in (base, output))
        divergence = base.attention[-1] * (theirs.log() - own.log())  # nothing where the teacher's weight is 0
        losses: Tensor = apart - self.strength * divergence.sum(-1)
        return losses

    @torch.no_grad()
    def judged(self, network: Network, rows: Sequence[Tokenised]) -> tuple[float, float]:
        learning = Learning(Training(), nn.ModuleDict())
        with evaluating(network):
            found = [self.losses(network, batch, learning).double().cpu().numpy() for _, batch in groups(network, rows)]
        loss = float(np.concatenate(found).mean())
        return -loss, loss


@dataclass(frozen=True)
class Without(Objective):
    """Cross-entropy of the labels of texts from which some words are deleted."""

    words: tuple[int, ...]  # their ids

    @property
    def identity(self) -> dict[str, Any]:
        return {"without": list(self.words)}

    def losses(self, network: Network, batch: Batch, learning: Learning) -> TextScores:
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


def _forward(network: Network, batch: Batch, learning: Learning, edit: Edit | None = None) -> tuple[Read, TextScores]:
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
    with evaluating(teacher.to(batch.ids.device)):
        output: Output = teacher(teacher.embed(batch), batch)
    return output
