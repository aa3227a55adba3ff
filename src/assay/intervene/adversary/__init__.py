"""Adversarial attention: the most different attention with the same output (Jain and Wallace 2019, section 4.2.2).

The decoder is linear, so the logits under any attention are the weighted mean of the tokens' own logits: every function
here takes those token logits, the observed attention and the mask, and needs no model.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor

from assay.intervene.adversary.bracket import bracket
from assay.intervene.adversary.distance import jsd
from assay.intervene.adversary.exact import exact
from assay.intervene.adversary.many import many
from assay.intervene.adversary.problem import Adversaries
from assay.intervene.adversary.search import Search, search

__all__ = ["Adversaries", "Search", "bracket", "exact", "furthest", "jsd", "many", "search"]


def furthest(
    values: Float[Tensor, "B T C"],
    weights: Float[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float = 0.01,
    k: int = 5,
) -> Adversaries:
    """The best algorithm for the number of classes: exact for two, a bracket for three, else a lower bound."""
    solve = {2: exact, 3: bracket}.get(values.shape[-1], many)
    return solve(values, weights, mask, epsilon, k)
