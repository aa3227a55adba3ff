"""Leave-one-out logits of a pooled model: each token in turn deleted or replaced by a blank, with shared computation.

Where states depend on all tokens through a recurrence, most of the work is shared: one pass over the text carries, for
every token at once, the state of the text without it. Where a state depends on its neighbours at most, only those
within reach are computed again. Where sentences are read one by one, only that of the token is.
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor

from assay.models.deletions.sentences import sentence_deletions
from assay.models.deletions.texts import Logits, word_deletions
from assay.models.encoders import Transformer
from assay.models.network import Classifier, Paired
from assay.models.networks import Hierarchical
from assay.types import Batch, Model

Sharing = Classifier | Hierarchical | Paired


def shares_work(model: Model) -> TypeGuard[Sharing]:
    """Whether `deletion_logits` supports this model."""
    one_by_one = isinstance(model, Classifier | Paired) and not isinstance(model.encoder, Transformer)
    return one_by_one or isinstance(model, Hierarchical)


@torch.no_grad()
def deletion_logits(
    model: Sharing, x: Float[Tensor, "B T D"], batch: Batch, blank: Float[Tensor, " D"] | None = None
) -> Logits:
    """The logits of each text, and of each text with its t-th token deleted or blanked.

    Without any token they are those of the zero context; those on padding mean nothing.
    """
    if isinstance(model, Hierarchical):
        return sentence_deletions(model, x, batch, blank)
    return word_deletions(model, x, batch, blank)
