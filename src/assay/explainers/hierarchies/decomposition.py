"""Phrase scores by contextual decomposition: the contribution of a phrase's words to the logits.

What is explained is the target's logit minus the mean of the others, without the decoder's bias, which is nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from assay.explainers.hierarchies.decomposed.reading import Decomposition, decomposed, undivided
from assay.explainers.relevance.shares import contrast
from assay.models.network import Paired
from assay.types import Batch, Model


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

    def divided(self, model: Model, batch: Batch, chosen: Bool[Tensor, "B S T"]) -> Decomposition:
        """β and γ of all logits."""
        return decomposed(model, batch, chosen)

    def __call__(
        self, model: Model, batch: Batch, target: Int[Tensor, " B"], chosen: Bool[Tensor, "B S T"]
    ) -> Float[Tensor, "B S"]:
        return margins(self.divided(model, batch, chosen).relevant, model, batch, target)


@dataclass(frozen=True)
class WordDecomposition:
    """Contextual decomposition with each word as its own phrase: a token explainer."""

    def unfit(self, model: Model) -> str | None:
        return undivided(model)

    def __call__(self, model: Model, batch: Batch, target: Int[Tensor, " B"]) -> Float[Tensor, "B T"]:
        each = torch.eye(batch.ids.shape[1], dtype=torch.bool, device=batch.ids.device)
        chosen = each & batch.mask[:, None]
        return ContextualDecomposition()(model, batch, target, chosen) * batch.mask


def margins(
    logits: Float[Tensor, "B S C"], model: Model, batch: Batch, target: Int[Tensor, " B"]
) -> Float[Tensor, "B S"]:
    """The target's logit minus the mean of the other candidate classes."""
    rows, sets, _ = logits.shape
    candidates = batch.candidates if isinstance(model, Paired) else None
    allowed = None if candidates is None else candidates.repeat_interleave(sets, dim=0)
    return contrast(logits.flatten(0, 1), target.repeat_interleave(sets), allowed).reshape(rows, sets)
