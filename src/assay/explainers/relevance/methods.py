"""Explainers that propagate relevance from the explained class back to the embeddings.

What is explained is the target's logit minus the mean of the others. A logit alone is known up to a number that all
classes share and that the softmax does not see; with two classes, half of it could be such a number. Where a model bars
classes that are no candidates, they are not among the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from assay import costs
from assay.errors import AssayError
from assay.explainers.needs import demand
from assay.explainers.relevance import transformers
from assay.explainers.relevance.reading import Reading
from assay.explainers.relevance.rules import Rules, attention_aware, epsilon
from assay.explainers.relevance.secants import DEEPLIFT
from assay.explainers.relevance.shapes import Readable, read
from assay.explainers.relevance.shares import Shares, contrast
from assay.models.erasure import baseline
from assay.models.huggingface.body import Body
from assay.models.paired import Paired
from assay.models.projections import family, projection
from assay.types import Attribution, Batch, Model

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]

KNOWN = "flat, hierarchical and paired"


class Propagation(ABC):
    """What the explainers below share: the scores are the tokens' shares, and the gap is known."""

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """What stands in for derivatives."""

    def shares(self, model: Model, batch: Batch, target: Target) -> Shares:
        """The parts of tokens, biases, positions, types, markers and query."""
        if isinstance(model, Body):
            return transformers.propagated(model, batch, target, self.rules)
        return propagated(model, batch, target, self.rules)

    def unfit(self, model: Model) -> str | None:
        return transformers.no_rules(model, self.rules) if isinstance(model, Body) else no_rules(model)

    def attribute(self, model: Model, batch: Batch, target: Target) -> Attribution:
        shares = self.shares(model, batch, target)
        return Attribution(shares.tokens.float(), {"gap": shares.gap.float()})

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
    """Why differences cannot be handed through attention weights; self-attention beneath is asked for as well."""
    assert isinstance(model, Readable)
    inner = projection(model.architecture.inner)
    unknown = family(model.project) is None or family(inner) is None
    return "DeepLIFT has no rule for its attention weights" if unknown else None


def propagated(model: Model, batch: Batch, target: Target, rules: Rules, blank: str | None = None) -> Shares:
    """Gradient × input under these rules; those that compare have a text of blanks beside each text."""
    demand(no_rules(model))
    assert isinstance(model, Readable)
    x, rows = model.embed(batch).detach(), torch.arange(len(batch), device=batch.ids.device)
    if blank is not None:
        x, rows = torch.cat([x, baseline(model, batch, blank)]), rows.repeat(2)
    texts, markers = batch[rows], model.architecture.markers
    longer, encoded = model.surrounded(x, texts.mask) if markers else (x, texts.mask)
    wide = torch.promote_types(x.dtype, torch.float32)
    leaves = [longer.detach().to(wide), *torch.ones(3, len(x), dtype=wide, device=x.device)]
    with torch.enable_grad():
        places, *factors = (leaf.requires_grad_() for leaf in leaves)
        logits = read(replace(Reading(rules, *factors), project=model.project), model, places, encoded, texts)
        margins = contrast(logits, target[rows], texts.candidates if isinstance(model, Paired) else None)
        found, biases, positions, query = _parts(margins, leaves, len(batch))
    costs.add(forward=len(x), backward=len(batch))
    found, inside = found.sum(-1), F.pad(batch.mask, (1, 1)) if markers else batch.mask
    tokens = (found * inside)[:, 1:-1] if markers else found * inside
    explained = _moved(margins.detach(), len(batch))
    types = torch.zeros_like(positions)
    return Shares(tokens, biases, positions, types, (found * ~inside).sum(-1), query, explained)


def _parts(margins: Float[Tensor, " R"], leaves: list[Tensor], texts: int) -> list[Float[Tensor, "B ..."]]:
    """Gradient × input, for each leaf."""
    slopes = torch.autograd.grad(margins[:texts].sum(), leaves, materialize_grads=True)
    return [slope[:texts] * _moved(leaf.detach(), texts) for slope, leaf in zip(slopes, leaves, strict=True)]


def _moved(rows: Float[Tensor, "R ..."], texts: int) -> Float[Tensor, "B ..."]:
    """How far the texts' rows are from those of their baselines, if there are any behind them, or else from 0."""
    return rows if len(rows) == texts else rows[:texts] - rows[texts:]


def _check(stabiliser: float) -> None:
    if stabiliser < 0:
        raise AssayError(f"The stabiliser of relevance propagation is a number from 0, not {stabiliser}.")
