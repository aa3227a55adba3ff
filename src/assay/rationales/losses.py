"""Loss terms of the players: a cost for each text of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from assay.errors import AssayError, unknown
from assay.rationales.game import Costs, Play, Term
from assay.rationales.players import LagrangeMultiplier
from assay.rationales.relaxations import Saliency
from assay.rationales.units import Decoding

COUNTS = ("z", "chance")
KINDS = ("text", "batch", "plain")
LEAST = 1e-6  # added to a norm, so that nothing at all has a logarithm

# What a reader answers


@dataclass(frozen=True)
class AnswerCrossEntropy:
    """The cross-entropy of a reader on a view; with `stopped`, no gradient reaches the mask.

    The right answer is the label, or where it is `guessed`, the class that masks depend on (Yu et al., 2019).
    """

    player: str = "predictor"
    view: str = "selected"
    mask: int = 0
    stopped: bool = False
    guessed: bool = False

    def __call__(self, play: Play) -> Costs:
        logits = play.read(self.player, self.view, self.mask, self.stopped).logits
        wanted = play.condition if self.guessed else play.batch.labels
        assert wanted is not None
        return F.cross_entropy(logits, wanted, reduction="none")


@dataclass(frozen=True)
class AllMasksCrossEntropy:
    """The mean cross-entropy over all masks: the true class is the target whatever the mask's class."""

    def __call__(self, play: Play) -> Costs:
        costs = [AnswerCrossEntropy(mask=mask, stopped=True)(play) for mask in range(play.rules.masks)]
        return torch.stack(costs).mean(0)


@dataclass(frozen=True)
class Convincing:
    """Minus the mean probability of class t given mask t, over all t (Chang et al., 2019)."""

    def __call__(self, play: Play) -> Costs:
        masks = range(play.rules.masks)
        believed = [play.read("predictor", "selected", mask).logits.softmax(-1)[:, mask] for mask in masks]
        return -torch.stack(believed).mean(0)


@dataclass(frozen=True)
class CriticMargin:
    """Hinge loss max(0, cost of the predictor − cost of the critic + margin), the critic reading the rest.

    Yu et al. (2019).
    """

    margin: float = 2.0

    def __call__(self, play: Play) -> Costs:
        known, left = AnswerCrossEntropy()(play), AnswerCrossEntropy("critic", "rest")(play)
        return (known - left + self.margin).relu()


# Distances from what is read of all words


@dataclass(frozen=True)
class Distillation:
    """The cross-entropy with the teacher's prediction on all words, softened by a temperature."""

    temperature: float = 2.0

    def __call__(self, play: Play) -> Costs:
        soft = (play.read("teacher", "all").logits.detach() / self.temperature).softmax(-1)
        logits = play.read("predictor", "selected").logits / self.temperature
        return -(soft * logits.log_softmax(-1)).sum(-1)


@dataclass(frozen=True)
class FullTextDivergence:
    """KL(P(all) ‖ P(view)) of the predictor; no gradient through P(all).

    Of the words that are selected it is the cost of MCD (Liu et al., 2023, equation 8); of the rest, with a weight
    below 0, it is what MRD (Liu et al., 2024) makes large.
    """

    view: str = "selected"

    def __call__(self, play: Play) -> Costs:
        whole = play.read("predictor", "all").logits.detach().log_softmax(-1)
        seen = play.read("predictor", self.view).logits.log_softmax(-1)
        return (whole.exp() * (whole - seen)).sum(-1)


@dataclass(frozen=True)
class Moments:
    """The central moment discrepancy between hidden states on the selected words and a teacher's on all words.

    Of the whole batch, the same for each of its texts; Huang et al. (2021).
    """

    # differs from the code of Huang et al. (2021): moments are powers, not multiples, so that more than means count,
    # and the gradient goes on to the selector
    highest: int = 5
    width: float = 2.0

    def __post_init__(self) -> None:
        if self.highest < 1 or not self.width > 0:
            raise AssayError("Moments are compared from the first on, of features between bounds with some width.")

    def __call__(self, play: Play) -> Costs:
        wanted = play.read("teacher", "all").features.detach()
        seen = play.read("predictor", "selected").features
        return discrepancy(seen, wanted, self.highest, self.width).expand(len(play.batch))


def discrepancy(
    first: Float[Tensor, "N M"], second: Float[Tensor, "P M"], highest: int = 5, width: float = 2.0
) -> Float[Tensor, ""]:
    """‖E x − E y‖ / w + Σ_k ‖E (x − E x)ᵏ − E (y − E y)ᵏ‖ / wᵏ for k from 2, w being the width between bounds.

    Zellinger et al. (2017).
    """
    means = [each.mean(0) for each in (first, second)]
    total: Tensor = torch.linalg.vector_norm(means[0] - means[1]) / width
    centred = [(each - mean) / width for each, mean in zip((first, second), means, strict=True)]
    for power in range(2, highest + 1):
        moments = [(each**power).mean(0) for each in centred]
        total = total + torch.linalg.vector_norm(moments[0] - moments[1])
    return total


@dataclass(frozen=True)
class NegativeLogNorm:
    """−log ‖f‖ of the predictor's hidden state f: words that it was trained to use make it large.

    N2R (Liu et al., 2025).
    """

    def __call__(self, play: Play) -> Costs:
        length: Tensor = torch.linalg.vector_norm(play.read("predictor", "selected").features, dim=-1)
        return -(length + LEAST).log()


# Masks themselves


@dataclass(frozen=True)
class Imitation:
    """The mean binary cross-entropy of probabilities with the decoded saliency of the teacher (Jain et al., 2020)."""

    saliency: str = "attention"
    decoding: Decoding = field(default_factory=Decoding)

    def __call__(self, play: Play) -> Costs:
        mask = play.grouping.mask
        wanted = self.decoding(Saliency().chance(play.salient(self.saliency), mask), mask)
        costs = F.binary_cross_entropy(play.drawn.chance, wanted.expand_as(play.drawn.chance), reduction="none")
        return (costs * mask[:, None]).mean(1).sum(-1) / mask.sum(-1)


@dataclass(frozen=True)
class Prior:
    """The mean over units of KL(Bernoulli(chance) ‖ Bernoulli(rate)); Paranjape et al. (2020)."""

    rate: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise AssayError(f"The rate of a prior must be between 0 and 1, got {self.rate:g}.")

    def __call__(self, play: Play) -> Costs:
        mask = play.grouping.mask[:, None]
        costs = divergence(play.drawn.chance, self.rate) * mask
        return costs.mean(1).sum(-1) / mask.sum((1, 2))


def divergence(chance: Float[Tensor, "*N"], rate: float) -> Float[Tensor, "*N"]:
    """KL(Bernoulli(chance) ‖ Bernoulli(rate)), with a finite gradient at 0 and 1."""
    edge = torch.finfo(chance.dtype).eps
    yes = chance.clamp(edge, 1 - edge)
    return yes * (yes / rate).log() + (1 - yes) * ((1 - yes) / (1 - rate)).log()


@dataclass(frozen=True)
class Size:
    """Sparsity: the distance of the share of selected words from the `rate`, of each `text` or of the `batch`.

    `plain` is the share itself. What is counted is the mask `z`, or the `chance` of each word to be read at all, of
    all masks together.
    """

    rate: float = 0.2
    kind: str = "batch"
    of: str = "z"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of size", self.kind, KINDS)
        if self.of not in COUNTS:
            raise unknown("count of words", self.of, COUNTS)

    def __call__(self, play: Play) -> Costs:
        counted = play.z if self.of == "z" else play.grouping.expanded(play.drawn.chance)
        lengths = play.batch.lengths
        total = counted.mean(1).sum(-1)
        if self.kind == "batch":
            return ((total.sum() / lengths.sum()) - self.rate).abs().expand(len(lengths))
        share = total / lengths
        return share if self.kind == "plain" else (share - self.rate).abs()


@dataclass(frozen=True)
class Sizes:
    """The mean of |share − rate| over masks, with the shares of a whole batch."""

    rate: float = 0.2

    def __call__(self, play: Play) -> Costs:
        shares = play.z.sum((0, 2)) / play.batch.lengths.sum()
        return (shares - self.rate).abs().mean().expand(len(play.batch))


@dataclass(frozen=True)
class Continuity:
    """The mean of |z_t − z_t−1| over the words of a text (total variation): few and long spans are cheap.

    Of the `chance`, it is the expected number of changes between read and not read (Bastings et al., 2019).
    """

    of: str = "z"

    def __post_init__(self) -> None:
        if self.of not in COUNTS:
            raise unknown("count of words", self.of, COUNTS)

    def __call__(self, play: Play) -> Costs:
        if self.of == "z":
            steps = (play.z[..., 1:] - play.z[..., :-1]).abs()
        else:
            chance, owner = play.grouping.expanded(play.drawn.chance), play.grouping.owner
            here, before = chance[..., 1:], chance[..., :-1]
            steps = (here + before - 2 * here * before) * (owner[:, None, 1:] != owner[:, None, :-1])
        return (steps * play.batch.mask[:, None, 1:]).mean(1).sum(-1) / play.batch.lengths


@dataclass(frozen=True)
class Constraint:
    """Lagrangian α (cost − limit): selectors minimise it, while the multiplier α, a player too, maximises it.

    All of them move at once: the value is 0, its gradient is that of either side with the other held fixed.
    """

    term: Term
    limit: float

    def __call__(self, play: Play) -> Costs:
        multiplier = play.players.extras["multiplier"]
        assert isinstance(multiplier, LagrangeMultiplier)
        with torch.no_grad():
            multiplier.value.clamp_(0, multiplier.most)  # where the last step may have led it out
        excess = self.term(play) - self.limit
        return multiplier.value.detach() * excess - multiplier.value * excess.detach()


# Concepts that masks stand for


@dataclass(frozen=True)
class ConceptCrossEntropy:
    """The cross-entropy of the concepts' decision."""

    def __call__(self, play: Play) -> Costs:
        return F.cross_entropy(play.concepts.logits, play.batch.labels, reduction="none")


@dataclass(frozen=True)
class Consistency:
    """How poorly a classifier recognises each present concept by its words: Σ_k s_k · CE(classifier, k) / K.

    Bouchacourt and Denoyer (2019), equation 5. It is not lowered by concepts that go away.
    """

    def __call__(self, play: Play) -> Costs:
        inferred = play.concepts
        rows, concepts = inferred.presence.shape
        own = torch.arange(concepts, device=inferred.named.device).repeat(rows)
        costs = F.cross_entropy(inferred.named.flatten(0, 1), own, reduction="none").reshape(rows, concepts)
        return (inferred.presence.detach() * costs).mean(1)


@dataclass(frozen=True)
class Presence:
    """The expected share of present concepts: E‖s‖₀ / K."""

    def __call__(self, play: Play) -> Costs:
        return play.concepts.chance.mean(1)


@dataclass(frozen=True)
class Overlap:
    """‖M Mᵀ − l I‖²_F / (K l²) for the K masks M of a text, each to have l words, those of its `rate` rounded up.

    0 for masks of l words without a word in common; Antognini and Faltings (2021), section 3.3.
    """

    # differs from Antognini and Faltings (2021): divided, so that texts and numbers of concepts of any size cost alike

    rate: float

    def __call__(self, play: Play) -> Costs:
        return overlap(play.z, Decoding("top", self.rate).counts(play.batch.mask).to(play.z))


@dataclass(frozen=True)
class ConceptSimilarity:
    """The mean cosine of the features of two concepts; Antognini and Faltings (2021), section 3.3."""

    def __call__(self, play: Play) -> Costs:
        return likeness(play.concepts.features)


def overlap(masks: Float[Tensor, "B K T"], words: Costs) -> Costs:
    concepts = masks.shape[1]
    identity = torch.eye(concepts, dtype=masks.dtype, device=masks.device)
    share = words.to(masks)[:, None, None]
    return ((masks @ masks.mT) / share - identity).square().sum((1, 2)) / concepts


def likeness(vectors: Float[Tensor, "B K M"]) -> Costs:
    concepts = vectors.shape[1]
    directions = F.normalize(vectors, dim=-1)
    alike = (directions @ directions.mT).sum((1, 2)) - directions.square().sum((1, 2))
    return alike / max(1, concepts * (concepts - 1))
