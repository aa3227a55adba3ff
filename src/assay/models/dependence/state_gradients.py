"""State gradients: how much each hidden state depends on each word, by the fastest algorithm for the network."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from assay.models.dependence.copies import copied
from assay.models.dependence.recurrent import recurrent
from assay.models.dependence.windowed import windowed
from assay.models.encoders import Recurrent, Transformer
from assay.models.network import Classifier, Network, Paired
from assay.types import Batch


def state_gradient_norms(model: Network, x: Float[Tensor, "B T D"], batch: Batch) -> Float[Tensor, "B N T"]:
    """‖∂‖h_n‖₂/∂e_i‖₂ for the state of each item n and each real token i; 0 on padding and where ‖h_n‖ is 0.

    It is equation 5 of Meister et al. (2021) before it is normalised. The state is all that the model attends to: with
    `concat` [h; e], of pairs [h; q; h ⊙ q] for a query q that is held, of a hierarchy the state of a sentence. What
    bars classes from pairs is no part of it. The transformer ends in a layer norm, so only what its scale and shift
    have learnt lets the length of a state vary. A recurrence in half precision is followed in float32.
    """
    x, batch = x.detach(), replace(batch, candidates=None)
    plain = type(model) in (Classifier, Paired)  # a network of another kind may make other states
    if plain and isinstance(model.encoder, Recurrent):
        return recurrent(model, x, batch)
    if plain and not isinstance(model.encoder, Transformer):
        return windowed(model, x, batch)
    return copied(model, x, batch)


def shares(gradients: Float[Tensor, "B N T"]) -> Float[Tensor, "B N T"]:
    """The gradient norms of each state normalised to sum to 1, in float64; 0 for a state that depends on no word."""
    wide = gradients.double()
    total = wide.sum(-1, keepdim=True)
    return torch.where(total > 0, wide / total, 0.0)
