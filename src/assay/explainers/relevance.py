"""Relevance propagation: a modified backward pass, gradient × input with other local multipliers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay import costs
from assay.errors import AssayError
from assay.explainers import relevance_walk as transformers
from assay.explainers.needs import demand
from assay.explainers.relevance_layers import Readable, Reading, read
from assay.explainers.relevance_rules import DEEPLIFT, Rules, attention_aware, epsilon, halves, sharing
from assay.explainers.relevance_walk import Shares, contrast
from assay.models.erasure import baseline
from assay.models.hf_body import Body
from assay.models.network import Classifier, Paired
from assay.models.projections import family, projection
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model, at_least_float32

__all__ = ["AttnLrp", "DeepLift", "Lrp", "Shares"]


# Explainers by relevance propagation: LRP, AttnLRP, DeepLIFT.


Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]

KNOWN = "flat, hierarchical and paired"


class Propagation(ABC):
    """The base class: scores are the tokens' relevance, and the conservation gap is reported."""

    story: ClassVar[Story] = Story(
        measures=(
            Measure("gap", "what the scores leave unexplained (share of the output)"),
            Measure("conserved", "relevance that is conserved (share)"),
        )
    )

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """The local rules in place of derivatives."""

    def shares(self, model: Model, batch: Batch, target: Target) -> Shares:
        """The relevance of tokens, biases, positions, types, markers and query."""
        if isinstance(model, Body):
            return transformers.propagated(model, batch, target, self.rules)
        return propagated(model, batch, target, self.rules)

    def unfit(self, model: Model) -> str | None:
        return transformers.no_rules(model, self.rules) if isinstance(model, Body) else no_rules(model)

    def attribute(self, model: Model, batch: Batch, target: Target) -> Attribution:
        shares = self.shares(model, batch, target)
        return Attribution(at_least_float32(shares.tokens), {"gap": at_least_float32(shares.gap)})

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        return self.attribute(model, batch, target).scores


@dataclass(frozen=True)
class Lrp(Propagation):
    """A token's part of the logit by layer-wise relevance propagation, gates and attention held (Arras et al., 2017).

    Of transformers, the deviations of norms are held as well (Ali et al., 2022). Without a stabiliser ε the parts of
    tokens, biases, positions, types, markers and query sum to what is explained.
    """

    # differs from Arras et al. (2017), who take ε = 0.001: they divide by sums, we multiply with ratios within [0, 1].
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        _check(self.epsilon)

    @property
    def rules(self) -> Rules:
        return epsilon(self.epsilon)


@dataclass(frozen=True)
class AttnLrp(Propagation):
    """A token's part of the logit by relevance propagation through attention weights too (Achtibat et al., 2024).

    The rule for attention weights does not conserve relevance, so the parts need not sum to what is explained.
    """

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        _check(self.epsilon)

    @property
    def rules(self) -> Rules:
        return attention_aware(self.epsilon)


@dataclass(frozen=True)
class DeepLift(Propagation):
    """A token's part of the logit's difference from a text of blanks, without remainder (Shrikumar et al., 2017).

    The baseline is one of BLANKS. Products, attention weights and layer norm are taken apart into steps that leave
    nothing over.
    """

    baseline: str = "zero"

    @property
    def rules(self) -> Rules:
        return DEEPLIFT

    def unfit(self, model: Model) -> str | None:
        if isinstance(model, Body):
            return "DeepLIFT compares each step with that of a baseline, which is done for assay's own networks only"
        return no_rules(model) or no_secants(model)

    def shares(self, model: Model, batch: Batch, target: Target) -> Shares:
        demand(self.unfit(model))
        return propagated(model, batch, target, self.rules, self.baseline)


def no_rules(model: Model) -> str | None:
    known = isinstance(model, Readable)
    return None if known else f"relevance is known for assay's own {KNOWN} classifiers and for transformers only"


def no_secants(model: Model) -> str | None:
    """Why DeepLIFT cannot pass attention weights; self-attention beneath is checked too."""
    assert isinstance(model, Readable)
    inner = projection(model.architecture.inner)
    unknown = family(model.project) is None or family(inner) is None
    return "DeepLIFT has no rule for its attention weights" if unknown else None


def propagated(model: Model, batch: Batch, target: Target, rules: Rules, blank: str | None = None) -> Shares:
    """Gradient × input under these rules; for DeepLIFT the baselines follow the texts."""
    demand(no_rules(model))
    assert isinstance(model, Readable)
    x, rows, own = model.embed(batch).detach(), torch.arange(len(batch), device=batch.ids.device), None
    if blank is not None:
        blanks, own = _blanks(model, batch)
        x, rows = torch.cat([x, baseline(model, batch[blanks], blank)]), torch.cat([rows, blanks])
    texts, markers = batch[rows], model.architecture.markers
    longer, encoded = model.surrounded(x, texts.mask) if markers else (x, texts.mask)
    wide = torch.promote_types(x.dtype, torch.float32)
    leaves = [longer.detach().to(wide), *torch.ones(3, len(x), dtype=wide, device=x.device)]
    with torch.enable_grad(), sharing(own):
        indices, *factors = (leaf.requires_grad_() for leaf in leaves)
        logits = read(replace(Reading(rules, *factors), project=model.project), model, indices, encoded, texts)
        sides = (logits,) if blank is None else halves(logits)
        barred = batch.candidates if isinstance(model, Paired) else None
        margins = [contrast(each, target, barred) for each in sides]
        found, biases, positions, query = _parts(margins[0], leaves)
        explained = _moved([margin.detach() for margin in margins])
    costs.add(forward=len(x), backward=len(batch))
    found, inside = found.sum(-1), F.pad(batch.mask, (1, 1)) if markers else batch.mask
    tokens = (found * inside)[:, 1:-1] if markers else found * inside
    types = torch.zeros_like(positions)
    return Shares(tokens, biases, positions, types, (found * ~inside).sum(-1), query, explained)


def _blanks(model: Readable, batch: Batch) -> tuple[Int[Tensor, " U"], Int[Tensor, " B"] | None]:
    """The distinct baseline texts, and the index of each text's; None where each has its own.

    Where all that a network knows of a text without words is its length, one will do for all texts of a length.
    """
    if not isinstance(model, Classifier):
        return torch.arange(len(batch), device=batch.ids.device), None
    lengths, own = torch.unique(batch.lengths, return_inverse=True)
    firsts = torch.full_like(lengths, len(batch)).scatter_reduce(
        0, own, torch.arange(len(batch), device=own.device), "amin"
    )
    return firsts, own


def _parts(margins: Float[Tensor, " B"], leaves: list[Tensor]) -> list[Float[Tensor, "B ..."]]:
    """Gradient × input, for each leaf."""
    gradients = torch.autograd.grad(margins.sum(), leaves, materialize_grads=True)
    count = len(margins)
    moves = (_moved([leaf.detach()] if len(leaf) == count else halves(leaf.detach())) for leaf in leaves)
    return [gradient[:count] * move for gradient, move in zip(gradients, moves, strict=True)]


def _moved(sides: Sequence[Float[Tensor, "B ..."]]) -> Float[Tensor, "B ..."]:
    """The difference from the baselines, if there are any, else from 0."""
    return sides[0] if len(sides) == 1 else sides[0] - sides[1]


def _check(stabiliser: float) -> None:
    if stabiliser < 0:
        raise AssayError(f"epsilon, the stabiliser of relevance propagation, must be at least 0, got {stabiliser}.")
