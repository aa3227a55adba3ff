"""Relevance propagation through Hugging Face transformers of any architecture.

LRP with attention and deviations held is that of Ali et al. (2022), AttnLRP that of Achtibat et al. (2024). The
library's code runs as it is, its operations get rules as they run, and afterwards the autograd graph is searched for
one without a rule: a network that has one is refused.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from assay.errors import AssayError
from assay.explainers.needs import demand
from assay.explainers.relevance.reading import Reading
from assay.explainers.relevance.rules import Rules
from assay.explainers.relevance.shares import Shares, contrast
from assay.explainers.relevance.steps import Lookups, Steps
from assay.explainers.relevance.tracing import unruled
from assay.models.hf_attention import NAME, implemented
from assay.models.hf_body import Body
from assay.types import Batch, at_least_float32

LENGTHS = (3, 2)  # of the texts on which a network is tried
SAME = 1e-4  # of the largest logit: what rounding may change


def propagated(model: Body, batch: Batch, target: Int[Tensor, " B"], rules: Rules) -> Shares:
    """Gradient × input under these rules, in one forward and one backward pass."""
    words, factors, logits = _read(model, batch, rules)
    demand(_missing(model, logits, rules))
    with torch.enable_grad():
        margins = contrast(logits, target)
        total = margins.sum()
    gradients = torch.autograd.grad(total, [words, factors], materialize_grads=True)
    tokens = (gradients[0] * words.detach()).sum(-1) * batch.mask
    biases, positions, types, markers, query = gradients[1]
    return Shares(tokens, biases, positions, types, markers, query, margins.detach())


def no_rules(model: Body, rules: Rules) -> str | None:
    """Why a transformer has no rules, found by a pass over two short texts, or None."""
    ids = torch.full((len(LENGTHS), max(LENGTHS)), min(model.ordinary, len(_table(model)) - 1))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    batch = Batch(ids, mask, torch.zeros(len(LENGTHS), dtype=torch.long)).to(model.device)
    try:
        _, _, logits = _read(model, batch, rules)
    except AssayError as error:
        return str(error).rstrip(".")
    return _missing(model, logits, rules) or _changed(model, batch, logits)


def _read(
    model: Body, batch: Batch, rules: Rules
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "5 B"], Float[Tensor, "B C"]]:
    """The word embeddings, factors of 1 for all other additive inputs, and the logits that depend on both."""
    x = model.embed(batch).detach()
    words = at_least_float32(x).requires_grad_()
    factors = words.new_ones(5, len(batch)).requires_grad_()
    with torch.enable_grad(), implemented(model.inner, NAME if model.traits.unedited is None else "eager"):
        biases, positions, types, markers, query = factors
        kinds = frozenset(id(table) for name, table in model.named_parameters() if "type" in name)
        asked = None if batch.query is None else batch.query.ids
        lookups = Lookups(_table(model), asked, kinds, markers, query, positions, types)
        with Steps(Reading(rules, biases, positions, query), lookups).over(model):
            return words, factors, model(words, batch).logits


def _table(model: Body) -> nn.Parameter:
    table = model.embedding.weight
    assert isinstance(table, nn.Parameter)
    return table


def _missing(model: Body, logits: Float[Tensor, "B C"], rules: Rules) -> str | None:
    step = unruled(logits, rules.weighs)
    kind = type(model.inner).__name__
    return None if step is None else f"relevance has no rule for a step of {kind} ({step})"


@torch.no_grad()
def _changed(model: Body, batch: Batch, logits: Float[Tensor, "B C"]) -> str | None:
    """Why the rules do not fit, if they changed the model's outputs."""
    own = model(model.embed(batch), batch).logits.to(logits)
    near = max(SAME, torch.finfo(model.inner.dtype).eps ** 0.5)
    same = bool((own - logits).abs().max() <= near * max(1.0, float(own.abs().max())))
    return None if same else f"{type(model.inner).__name__} answers otherwise when relevance is propagated"
