"""Contextual decomposition: splits all activations into β, from chosen words, and γ, from the rest.

The model's own code runs, on texts stacked with their parts; each operation is divided as it runs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from assay import costs
from assay.errors import AssayError
from assay.explainers.decomposition_rules import Blocks, Divided, Dividing, plain
from assay.explainers.needs import demand
from assay.explainers.relevance import changed, contrast, trial
from assay.models import budget
from assay.models.hf_attention import NAME, implemented
from assay.models.hf_body import Body
from assay.models.network import Aspect, Classifier, Paired
from assay.models.networks import Hierarchical
from assay.models.parallel import INSIDE
from assay.types import Batch, Model, at_least_float32

Readable = Classifier | Hierarchical | Paired | Aspect
KNOWN = "flat, hierarchical, paired and aspect"
Target = Int[Tensor, " B"]
Chosen = Bool[Tensor, "B S T"]
Versions = Int[Tensor, "B S K T"]
Parts = Float[Tensor, "B S C"]


@dataclass(frozen=True)
class Decomposition:
    """The logits split into β, from the chosen words and without the bias, and γ, from the rest."""

    relevant: Parts
    logits: Float[Tensor, "B C"]  # without the decoder's bias

    @property
    def rest(self) -> Parts:
        return self.logits[:, None] - self.relevant


@torch.no_grad()
def decomposed(model: Model, batch: Batch, chosen: Chosen, versions: Versions | None = None) -> Decomposition:
    """The decomposed logits for each set of chosen words; `versions` are ids of texts with other contexts."""
    demand(undivided(model))
    if isinstance(model, Readable) and model.vectors.dtype.itemsize < 4:
        model = deepcopy(model).float()  # differences of rounded values would be rounding
    rows, sets, tokens = chosen.shape
    samples = 0 if versions is None else versions.shape[2]
    room = budget.room(batch.ids.device, "decomposition", tokens)
    together = max(1, min(sets, room // (1 + samples) - 1))  # sets that a text is read with
    texts = max(1, room // (1 + together * (1 + samples)))
    found = []
    for start in range(0, rows, texts):
        part = slice(start, start + texts)
        parts = [
            _divided(
                model,
                batch[part],
                chosen[part, first : first + together],
                None if versions is None else versions[part, first : first + together],
                outermost(model),
            )
            for first in range(0, max(1, sets), together)
        ]
        found.append((torch.cat([part.relevant for part in parts], dim=1), parts[0].logits))
    relevant, logits = zip(*found, strict=True)
    return Decomposition(torch.cat(relevant), torch.cat(logits))


def _divided(
    model: Any, batch: Batch, chosen: Chosen, versions: Versions | None, outer: frozenset[int]
) -> Decomposition:
    rows, sets, _ = chosen.shape
    blocks = Blocks(sets, 0 if versions is None else versions.shape[2], outer)
    x = at_least_float32(model.embed(batch))
    parts = x * (chosen & batch.mask[:, None]).transpose(0, 1)[..., None]
    stack = [x, parts.flatten(0, 1)]
    if versions is not None:
        ids = versions.permute(1, 2, 0, 3).flatten(0, 2)  # those of a set one sample after the other
        read = batch[torch.arange(rows, device=ids.device).repeat(sets * blocks.samples)]
        stack.append(model.embed(replace(read, ids=ids)).to(x))
    copies = batch[torch.arange(rows, device=chosen.device).repeat(blocks.count)]
    token = INSIDE.set(True)  # blocks belong together: no rows are sent to other devices
    walk, unfused = Dividing(blocks), cast(AbstractContextManager[None], nullcontext())
    if isinstance(model, Body):
        unfused = implemented(model.inner, NAME if model.traits.unedited is None else "eager")
    try:
        with unfused, walk.over(model):
            logits = model(walk.stacked(torch.cat(stack)), copies).logits
    finally:
        INSIDE.reset(token)
    lost = logits.lost if isinstance(logits, Divided) else "a constant"
    kind = type(getattr(model, "inner", model)).__name__
    demand(None if lost is None else f"contextual decomposition has no rule for a step of {kind} ({lost})")
    whole, part, _ = blocks.cut(plain(logits))
    return Decomposition(part.transpose(0, 1), whole)


def outermost(model: Any) -> frozenset[int]:
    """The id of the decoder's bias, which belongs to no part."""
    decoder = getattr(model, "decoder", None)
    if decoder is None:
        layers = [each for each in model.modules() if isinstance(each, nn.Linear)]
        decoder = next((each for each in reversed(layers) if each.out_features == model.inner.config.num_labels), None)
    return frozenset() if decoder is None or decoder.bias is None else frozenset((id(decoder.bias),))


_TRIED: WeakKeyDictionary[Body, str | None] = WeakKeyDictionary()


def undivided(model: Model) -> str | None:
    """Why a model cannot be decomposed, or None; a transformer is tried once on two short texts."""
    if isinstance(model, Readable):
        return None
    if not isinstance(model, Body):
        return f"contextual decomposition is known for assay's own {KNOWN} classifiers and for transformers only"
    if model not in _TRIED:
        with costs.measured():  # it is no part of what an explanation costs
            _TRIED[model] = _tried(model)
    return _TRIED[model]


@torch.no_grad()
def _tried(model: Body) -> str | None:
    batch = trial(model)
    rows, tokens = batch.ids.shape
    chosen = torch.eye(tokens, dtype=torch.bool, device=model.device).expand(rows, -1, -1)
    try:
        found = _divided(model, batch, chosen, None, frozenset())
    except AssayError as error:
        return str(error).removeprefix("This explainer cannot be used here: ").rstrip(".")
    return changed(model, batch, found.logits, "it is divided")


# Phrase scores by contextual decomposition: the contribution of a phrase's words to the logits.


@dataclass(frozen=True)
class ContextualDecomposition:
    """β of the class's margin for the chosen words (Murdoch et al., 2018; Singh et al., 2019).

    β + γ is the margin without the decoder's bias, whatever the set; β of no words is 0, and of all words γ is 0 but
    for what markers and a question give. An LSTM is divided as by Murdoch et al., a GRU by the same rules: gates into
    relevant, other and bias. In other networks a bias, and so the position of a word, is shared as |β| : |β| + |γ|;
    ReLU is that of the part alone; tanh and GELU are divided by Shapley's formula for two.
    """

    # differs from Murdoch et al. (2018), who read the last state: attention weights are as they are, undivided, as the
    # output gate is; so are the deviations of layer norms and what opens a gate in a transformer
    # differs from Murdoch et al. (2018): where a recurrence reads sentences, of which a part can be chosen, the product
    # of biases is shared as the input's |β| : |β| + |γ|, which of a word is 1 or 0
    # differs from Singh et al. (2019): the decoder's bias is not shared

    def unfit(self, model: Model) -> str | None:
        return undivided(model)

    def divided(self, model: Model, batch: Batch, chosen: Chosen) -> Decomposition:
        """β and γ of all logits."""
        return decomposed(model, batch, chosen)

    def __call__(self, model: Model, batch: Batch, target: Target, chosen: Chosen) -> Float[Tensor, "B S"]:
        return margins(self.divided(model, batch, chosen).relevant, model, batch, target)


@dataclass(frozen=True)
class WordDecomposition:
    """Contextual decomposition with each word as its own phrase: a token explainer."""

    def unfit(self, model: Model) -> str | None:
        return undivided(model)

    def __call__(self, model: Model, batch: Batch, target: Target) -> Float[Tensor, "B T"]:
        each = torch.eye(batch.ids.shape[1], dtype=torch.bool, device=batch.ids.device)
        chosen = each & batch.mask[:, None]
        return ContextualDecomposition()(model, batch, target, chosen) * batch.mask


def margins(logits: Parts, model: Model, batch: Batch, target: Target) -> Float[Tensor, "B S"]:
    """The target's logit minus the mean of the other candidate classes."""
    rows, sets, _ = logits.shape
    candidates = batch.candidates if isinstance(model, Paired) else None
    allowed = None if candidates is None else candidates.repeat_interleave(sets, dim=0)
    return contrast(logits.flatten(0, 1), target.repeat_interleave(sets), allowed).reshape(rows, sets)
