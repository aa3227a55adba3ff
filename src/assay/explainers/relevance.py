"""Explainers by relevance propagation: LRP, AttnLRP, DeepLIFT.

All are a modified backward pass, gradient × input with other local multipliers. What is explained is the target's logit
minus the mean of the others. A logit alone is known up to a number that all classes share and that the softmax does not
see; with two classes, half of it could be such a number. Where a model bars classes that are no candidates, they are
not among the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from assay import costs
from assay.errors import AssayError
from assay.explainers.needs import demand
from assay.explainers.relevance_rules import DEEPLIFT, attention_aware, epsilon, halves, sharing
from assay.explainers.relevance_walk import Factors, Relevance, Tables, unruled
from assay.models.erasure import baseline
from assay.models.hf_attention import NAME, implemented
from assay.models.hf_body import Body
from assay.models.network import Classifier, Paired
from assay.models.networks import Hierarchical, Layout
from assay.models.projections import family, projection
from assay.models.walk import Rules
from assay.stories import Measure, Story
from assay.types import Attribution, Batch, Model, at_least_float32, attended

Scores = Float[Tensor, "B T"]
Target = Int[Tensor, " B"]
Numbers = Float[Tensor, " B"]
Logits = Float[Tensor, "R C"]
Side = Float[Tensor, "B ..."]
ClassLogits = Float[Tensor, "B C"]
Mask = Bool[Tensor, "R S"]
Words = Float[Tensor, "R S D"]
Readable = Classifier | Hierarchical | Paired

KNOWN = "flat, hierarchical and paired"
FLOOR = 0.01  # less than this counts as this much when a gap is related to it
LENGTHS = (3, 2)  # of the texts on which a transformer is tried
SAME = 1e-4  # of the largest logit: what rounding may change


@dataclass(frozen=True)
class Shares:
    """The relevance of tokens, biases, positions, types, markers and query; it sums to `explained` if conserved."""

    tokens: Scores
    biases: Numbers
    positions: Numbers
    types: Numbers  # that say which of two texts a position is in
    markers: Numbers
    query: Numbers  # what it adds; where it multiplies the words, they have it all
    explained: Numbers

    @property
    def gap(self) -> Numbers:
        """The relative conservation error: |sum of parts − explained| / |explained|."""
        parts = self.tokens.sum(-1) + self.biases + self.positions + self.types + self.markers + self.query
        return (parts - self.explained).abs() / self.explained.abs().clamp(min=FLOOR)


def contrast(
    logits: ClassLogits, target: Int[Tensor, " B"], candidates: Bool[Tensor, "B C"] | None = None
) -> Float[Tensor, " B"]:
    """The target's logit minus the mean of the other candidate classes."""
    chosen = F.one_hot(target, logits.shape[1]).bool()
    others = ~chosen if candidates is None else candidates & ~chosen
    return (logits * chosen).sum(-1) - (logits * others).sum(-1) / others.sum(-1).clamp(min=1)


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
            return propagated_in_transformer(model, batch, target, self.rules)
        return propagated(model, batch, target, self.rules)

    def unfit(self, model: Model) -> str | None:
        return no_rules_of_transformer(model, self.rules) if isinstance(model, Body) else no_rules(model)

    def attribute(self, model: Model, batch: Batch, target: Target) -> Attribution:
        shares = self.shares(model, batch, target)
        return Attribution(at_least_float32(shares.tokens), {"gap": at_least_float32(shares.gap)})

    def __call__(self, model: Model, batch: Batch, target: Target) -> Scores:
        return self.attribute(model, batch, target).scores


@dataclass(frozen=True)
class Stabilised(Propagation):
    """With a stabiliser ε of sums: the larger it is, the more relevance is lost."""

    # differs from Arras et al. (2017), who take ε = 0.001: they divide by sums, we multiply with ratios within [0, 1].
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if self.epsilon < 0:
            stabiliser = "epsilon, the stabiliser of relevance propagation,"
            raise AssayError(f"{stabiliser} must be at least 0, got {self.epsilon}.")


@dataclass(frozen=True)
class Lrp(Stabilised):
    """A token's part of the logit by layer-wise relevance propagation, gates and attention held (Arras et al., 2017).

    Of transformers, the deviations of norms are held as well (Ali et al., 2022). Without a stabiliser ε the parts of
    tokens, biases, positions, types, markers and query sum to what is explained.
    """

    @property
    def rules(self) -> Rules:
        return epsilon(self.epsilon)


@dataclass(frozen=True)
class AttnLrp(Stabilised):
    """A token's part of the logit by relevance propagation through attention weights too (Achtibat et al., 2024).

    The rule for attention weights does not conserve relevance, so the parts need not sum to what is explained.
    """

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


# Assay's own networks


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
    if model.vectors.dtype.itemsize < 4:
        model = deepcopy(model).float()
    x, rows, own = model.embed(batch).detach(), torch.arange(len(batch), device=batch.ids.device), None
    if blank is not None:
        blanks, own = _blanks(model, batch)
        x, rows = torch.cat([x, baseline(model, batch[blanks], blank)]), torch.cat([rows, blanks])
    texts, markers = batch[rows], model.architecture.markers
    longer, encoded = model.surrounded(x, texts.mask) if markers else (x, texts.mask)
    words, factors = longer.detach().requires_grad_(), x.new_ones(len(x), 5).requires_grad_()
    with torch.enable_grad(), sharing(own):
        logits = read(Relevance(rules, Factors.of(factors)), model, words, encoded, texts)
        sides = (logits,) if blank is None else halves(logits)
        barred = batch.candidates if isinstance(model, Paired) else None
        margins = [contrast(each, target, barred) for each in sides]
        found, others = _parts(margins[0], [words, factors])
        explained = _moved([margin.detach() for margin in margins])
    costs.add(forward=len(x), backward=len(batch))
    found, inside = found.sum(-1), F.pad(batch.mask, (1, 1)) if markers else batch.mask
    tokens = (found * inside)[:, 1:-1] if markers else found * inside
    biases, positions, types, _, query = others.unbind(1)
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


def _parts(margins: Numbers, leaves: list[Tensor]) -> list[Side]:
    """Gradient × input, for each leaf."""
    gradients = torch.autograd.grad(margins.sum(), leaves, materialize_grads=True)
    count = len(margins)
    moves = (_moved([leaf.detach()] if len(leaf) == count else halves(leaf.detach())) for leaf in leaves)
    return [gradient[:count] * move for gradient, move in zip(gradients, moves, strict=True)]


def _moved(sides: Sequence[Side]) -> Side:
    """The difference from the baselines, if there are any, else from 0."""
    return sides[0] if len(sides) == 1 else sides[0] - sides[1]


def read(walk: Relevance, model: Readable, x: Words, encoded: Mask, batch: Batch) -> Logits:
    """The logits of embeddings that have their markers already, where the model has any; no class is barred."""
    if isinstance(model, Hierarchical):
        return _hierarchical(walk, model, x, batch)
    states = walk.encode(model.encoder, x, encoded)
    if model.architecture.markers:
        states, x = states[:, 1:-1], x[:, 1:-1]  # what stands beyond a text is not attended
    states = model.beside(states, x, batch.mask)
    if isinstance(model, Paired):
        return _paired(walk, model, states, batch)
    return walk.total(walk.mapped(model.decoder, walk.pooled(model.project, model.alignment, states, batch.mask)))


def _hierarchical(walk: Relevance, model: Hierarchical, x: Words, batch: Batch) -> Logits:
    """Words to sentences, each a row with its text's factors, then sentences to logits."""
    layout, real = Layout.of(batch), attended(model, batch)
    words, text = layout.rows(x), real.nonzero(as_tuple=True)[0]
    means = x.new_zeros(len(words), model.width(model.word_encoder))
    for band, longest in layout.bands():  # texts and their baselines have the same lengths, so each is half of a band
        within, mask = Relevance(walk.rules, walk.factors.rows(text[band])), layout.mask[band, :longest]
        encoded = within.encode(model.word_encoder, words[band, :longest], mask)
        states = model.beside(encoded, words[band, :longest], mask)
        means = means.index_put((band,), within.pooled(model.project, model.word_alignment, states, mask))
    sentences = means.new_zeros(*real.shape, means.shape[-1]).masked_scatter(real[..., None], means)
    states = walk.encode(model.encoder, sentences, real)
    return walk.total(walk.mapped(model.decoder, walk.pooled(model.project, model.alignment, states, real)))


def _paired(walk: Relevance, model: Paired, states: Float[Tensor, "R T M"], batch: Batch) -> Logits:
    """W c + U q + V (c ⊙ q) + b as one linear map of the words: the query multiplies weights or adds a term."""
    with torch.no_grad():
        query = model.query_encoding(batch).to(states)
    term = query * walk.factors.query[:, None]
    context = walk.pooled(model.project, model.alignment, states, batch.mask, term)
    there = batch.mask.any(-1, keepdim=True)  # of a text without words nothing is pooled, not even the query
    return walk.total(walk.mapped(model.decoder, torch.cat([context, term * there, context * query], dim=-1)))


# Hugging Face transformers of any architecture
#
# LRP with attention and deviations held is that of Ali et al. (2022), AttnLRP that of Achtibat et al. (2024). The
# library's code runs as it is, and afterwards the autograd graph is searched for an operation without a rule: a network
# that has one is refused.


def propagated_in_transformer(model: Body, batch: Batch, target: Target, rules: Rules) -> Shares:
    """Gradient × input under these rules, in one forward and one backward pass."""
    words, factors, logits = _transformed(model, batch, rules)
    demand(_missing(model, logits, rules))
    with torch.enable_grad():
        margins = contrast(logits, target)
        found, others = _parts(margins, [words, factors])
    biases, positions, types, markers, query = others.unbind(1)
    return Shares(found.sum(-1) * batch.mask, biases, positions, types, markers, query, margins.detach())


def no_rules_of_transformer(model: Body, rules: Rules) -> str | None:
    """Why a transformer has no rules, found by a pass over two short texts, or None."""
    batch = trial(model)
    try:
        _, _, logits = _transformed(model, batch, rules)
    except AssayError as error:
        return str(error).rstrip(".")
    return _missing(model, logits, rules) or changed(model, batch, logits, "relevance is propagated")


def trial(model: Body) -> Batch:
    """Two short texts, on which a transformer is tried."""
    ids = torch.full((len(LENGTHS), max(LENGTHS)), min(model.ordinary, len(_words(model)) - 1))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return Batch(ids, mask, torch.zeros(len(LENGTHS), dtype=torch.long)).to(model.device)


@torch.no_grad()
def changed(model: Body, batch: Batch, logits: ClassLogits, when: str) -> str | None:
    """Why an explainer does not fit, if its own way of computing gives other logits than the model."""
    own = model(model.embed(batch), batch).logits.to(logits)
    near = max(SAME, torch.finfo(_words(model).dtype).eps ** 0.5)
    same = bool((own - logits).abs().max() <= near * max(1.0, float(own.abs().max())))
    return None if same else f"{type(model.inner).__name__} answers otherwise when {when}"


def _words(model: Body) -> nn.Parameter:
    table = model.embedding.weight
    assert isinstance(table, nn.Parameter)
    return table


def _transformed(
    model: Body, batch: Batch, rules: Rules
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B 5"], ClassLogits]:
    """The word embeddings, factors of 1 for all other additive inputs, and the logits that depend on both."""
    words = at_least_float32(model.embed(batch).detach()).requires_grad_()
    factors = words.new_ones(len(batch), 5).requires_grad_()
    types = frozenset(id(table) for name, table in model.named_parameters() if "type" in name)
    tables = Tables(_words(model), types, None if batch.query is None else batch.query.ids)
    with torch.enable_grad(), implemented(model.inner, NAME if model.traits.unedited is None else "eager"):
        walk = Relevance(rules, Factors.of(factors), tables)
        with walk.over(model):
            return words, factors, model(words, batch).logits


def _missing(model: Body, logits: ClassLogits, rules: Rules) -> str | None:
    step = unruled(logits, rules.weighs)
    return None if step is None else f"relevance has no rule for a step of {type(model.inner).__name__} ({step})"
